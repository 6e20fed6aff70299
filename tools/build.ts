import { cpSync, mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { extname, join } from 'node:path'
import { isMain } from '../shared/process.ts'
import { buildClient } from './build-client.ts'
import { ROOT, run, TSC, VITE } from './run.ts'

/** What programs read beside themselves: migrations and their list, the registry, ClickHouse's profiles, samples, pages. */
const READ = new Set(['.sql', '.sha256', '.json', '.xml', '.csv', '.md', '.css', '.js'])
const FOLDERS = ['api', 'clickhouse', 'shared', 'tools', 'test', 'workers']

/**
 * Compiles every program to JavaScript in a folder inside the project, where Node finds its packages, with the same layout
 * as the sources, and builds the page. Types are checked, and the client is built, unless that is said to be done elsewhere.
 * @throws Error with the compiler's output.
 */
export function build(into: string, options: { checksTypes?: boolean } = {}): void {
  const checksTypes = options.checksTypes !== false
  const args = [TSC, '-p', join(ROOT, 'tsconfig.build.json'), '--outDir', into, ...(checksTypes ? [] : ['--noCheck'])]
  run(args, 'the programs do not compile')
  if (checksTypes) {
    // Makes the types of the interface that these sources have, which the page is checked against.
    buildClient(join(into, 'clients/typescript'))
    run([TSC, '-p', join(ROOT, 'web')], 'the page does not compile')
  }
  run([VITE, 'build', join(ROOT, 'web'), '--outDir', join(into, 'web/dist'), '--emptyOutDir'], 'the page was not built')
  // Its version and licence are those that the API tells.
  cpSync(join(ROOT, 'package.json'), join(into, 'package.json'))
  const isRead = (path: string) => statSync(path).isDirectory() || READ.has(extname(path))
  for (const folder of FOLDERS) cpSync(join(ROOT, folder), join(into, folder), { recursive: true, filter: isRead })
}

/** The programs compiled into a folder of their own, for tests and benchmarks; types are checked elsewhere. */
export function buildForThisRun() {
  const parent = join(ROOT, '.data')
  mkdirSync(parent, { recursive: true })
  const folder = mkdtempSync(join(parent, 'compiled-'))
  const again = () => build(folder, { checksTypes: false })
  again()
  return { folder, again, remove: () => rmSync(folder, { recursive: true, force: true }) }
}

if (isMain(import.meta.url)) {
  const into = join(ROOT, 'dist')
  // What was compiled of files that are gone since would stay.
  rmSync(into, { recursive: true, force: true })
  build(into)
}
