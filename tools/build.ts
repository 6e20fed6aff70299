import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, extname, join } from 'node:path'
import { isMain } from '../shared/process.ts'

const ROOT = join(import.meta.dirname, '..')
const packageFile = (name: string, file: string) =>
  join(dirname(createRequire(import.meta.url).resolve(`${name}/package.json`)), file)
const TSC = packageFile('typescript', 'bin/tsc')
const VITE = packageFile('vite', 'bin/vite.js')

/** What programs read beside themselves: migrations and their list, the registry, ClickHouse's profiles, samples, pages. */
const READ = new Set(['.sql', '.sha256', '.json', '.xml', '.csv', '.md', '.css', '.js'])
const FOLDERS = ['api', 'clickhouse', 'shared', 'tools', 'test', 'workers']

function run(args: readonly string[], failure: string): void {
  const { status, stdout, stderr, error } = spawnSync(process.execPath, args, { cwd: ROOT, encoding: 'utf8' })
  if (status !== 0) throw new Error(`${failure}: ${error?.message ?? stdout + stderr}`)
}

/** Checks the page against the interface that these sources have. */
function checkPage(): void {
  const hook = join(ROOT, 'tools/typescript-5.mjs')
  run(
    ['--import', 'tsx', '--import', hook, join(ROOT, 'tools/web-types.ts')],
    'the types of the interface were not made',
  )
  run([TSC, '-p', join(ROOT, 'web')], 'the page does not compile')
}

/**
 * Compiles every program to JavaScript in a folder inside the project, where Node finds its packages, with the same layout
 * as the sources, and builds the page. Types are checked unless that is said to be done elsewhere.
 * @throws Error with the compiler's output.
 */
export function build(into: string, options: { checksTypes?: boolean } = {}): void {
  const checksTypes = options.checksTypes !== false
  const args = [TSC, '-p', join(ROOT, 'tsconfig.build.json'), '--outDir', into, ...(checksTypes ? [] : ['--noCheck'])]
  run(args, 'the programs do not compile')
  if (checksTypes) checkPage()
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
