import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { isMain } from '../shared/process.ts'
import { ROOT, run, TSC } from './run.ts'

const CLIENT = join(ROOT, 'clients/typescript')

/** Generates the types of the API in these sources, for the client and the page. */
export function makeClientTypes(): void {
  const hook = join(ROOT, 'tools/typescript-5.mjs')
  const program = join(ROOT, 'tools/client-types.ts')
  run(['--import', 'tsx', '--import', hook, program], 'the types of the API were not generated')
}

/**
 * Builds the client's package in a folder: JavaScript with its types, ready for `npm pack`.
 * @throws Error with the compiler's output.
 */
export function buildClient(into: string): void {
  makeClientTypes()
  run([TSC, '-p', CLIENT, '--outDir', join(into, 'dist')], 'the client does not compile')
  for (const file of ['package.json', 'README.md']) if (into !== CLIENT) cpSync(join(CLIENT, file), join(into, file))
  cpSync(join(ROOT, 'LICENSE'), join(into, 'LICENSE'))
}

if (isMain(import.meta.url)) buildClient(CLIENT)
