import { createHash } from 'node:crypto'
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
} from 'node:fs'
import { extname, join } from 'node:path'
import { DAY_MS } from '../shared/intervals.ts'
import { isMain } from '../shared/process.ts'
import { buildClient } from './build-client.ts'
import { ROOT, run, TSC } from './run.ts'

/** Files that programs read at run time: migrations and their list, the registry, ClickHouse's profiles, samples, pages, weights. */
const READ = new Set(['.sql', '.sha256', '.json', '.xml', '.csv', '.md', '.css', '.js', '.bin', '.sh'])
const FOLDERS = ['api', 'clickhouse', 'shared', 'tools', 'test', 'workers']

/**
 * Compiles every program to JavaScript into `into`, with the layout of the sources, and builds the page. `into` must be
 * inside the project, so that Node finds its packages. With `checksTypes: false`, skips the type check and the client.
 * @throws Error with the compiler's output.
 */
export function build(into: string, options: { checksTypes?: boolean } = {}): void {
  const checksTypes = options.checksTypes !== false
  const args = [TSC, '-p', join(ROOT, 'tsconfig.build.json'), '--outDir', into, ...(checksTypes ? [] : ['--noCheck'])]
  run(args, 'the programs do not compile')
  if (checksTypes) {
    // Generates the types of the interface, which the page is checked against.
    buildClient(join(into, 'clients/typescript'))
    run([TSC, '-p', join(ROOT, 'web')], 'the page does not compile')
  }
  buildPage()
  cpSync(join(ROOT, 'web/dist'), join(into, 'web/dist'), { recursive: true })
  // The API serves the version and the licence of package.json.
  cpSync(join(ROOT, 'package.json'), join(into, 'package.json'))
  const isRead = (path: string) => statSync(path).isDirectory() || READ.has(extname(path))
  for (const folder of FOLDERS) cpSync(join(ROOT, folder), join(into, folder), { recursive: true, filter: isRead })
}

/** Builds `web/dist`, from which the API serves the page. Does nothing if the build there has the same inputs. */
export const buildPage = () => run([join(ROOT, 'tools/build-page.mjs')], 'the page was not built')

/**
 * Returns the folder with the compiled programs, for tests and benchmarks. The folder is named after the content of the
 * sources, so unchanged sources are compiled once. Does not check types. Removes builds that were last used over a day ago.
 */
export function buildIfNeeded(): string {
  const parent = join(ROOT, '.data', 'compiled')
  mkdirSync(parent, { recursive: true })
  buildPage()
  const folder = join(parent, hashSources())
  if (!existsSync(folder)) {
    const next = `${folder}.${process.pid}`
    build(next, { checksTypes: false })
    // A concurrent run may have compiled the same sources.
    if (existsSync(folder)) rmSync(next, { recursive: true })
    else renameSync(next, folder)
  }
  const now = new Date()
  utimesSync(folder, now, now)
  for (const name of readdirSync(parent)) {
    const found = statSync(join(parent, name), { throwIfNoEntry: false })
    if (found && Date.now() - found.mtimeMs > DAY_MS) rmSync(join(parent, name), { recursive: true, force: true })
  }
  return folder
}

function hashSources(): string {
  const isSource = (name: string) => (name.endsWith('.ts') && !name.endsWith('.test.ts')) || READ.has(extname(name))
  const files = FOLDERS.flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter(isSource)
      .map((name) => join(folder, name)),
  )
  const hash = createHash('sha256')
  for (const file of [...files.sort(), 'web/dist/.inputs', 'tsconfig.json', 'tsconfig.build.json', 'package-lock.json'])
    hash
      .update(`${file}\0`)
      .update(readFileSync(join(ROOT, file)))
      .update('\0')
  return hash.digest('hex').slice(0, 16)
}

if (isMain(import.meta.url)) {
  const into = join(ROOT, 'dist')
  // An earlier build may contain files of deleted sources.
  rmSync(into, { recursive: true, force: true })
  build(into)
}
