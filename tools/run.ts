import { spawnSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

export const ROOT = join(import.meta.dirname, '..')

const packageFile = (name: string, file: string) =>
  join(dirname(createRequire(import.meta.url).resolve(`${name}/package.json`)), file)

export const TSC = packageFile('typescript', 'bin/tsc')

/** Runs Node with these arguments. @throws Error with `failure` and all output. */
export function run(args: readonly string[], failure: string): void {
  const { status, stdout, stderr, error } = spawnSync(process.execPath, args, { cwd: ROOT, encoding: 'utf8' })
  if (status !== 0) throw new Error(`${failure}: ${error?.message ?? stdout + stderr}`)
}
