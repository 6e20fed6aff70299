import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { routes } from '../../api/routes.ts'
import { hasBrowser, startBrowser } from '../support/browser.ts'
import { createBusyStream } from '../support/busy-stream.ts'
import { type ClientPackage, loadClientPackage } from '../support/client-package.ts'
import { type Demo, startDemo } from '../support/demo.ts'
import { toFirstQuery } from '../support/documented.ts'
import { startStubService } from '../support/stub-service.ts'

const ROOT = join(import.meta.dirname, '../..')
const { resolve } = createRequire(import.meta.url)
const COMPILERS = ['typescript-5', 'typescript'] as const

/** Calls of every operation except streams. */
/** The demo does not serve the answers of providers. */
const calls = routes
  .filter(({ isEndless, mediaType }) => !isEndless && mediaType !== 'application/octet-stream')
  .map((route) => ({ tag: route.tag.toLowerCase(), name: route.operation, query: toFirstQuery(route) }))

const changeStream = createBusyStream()
let demo: Demo
let built: ClientPackage
/** A project that contains only the package, from its tarball. */
let project: string

function npm(args: readonly string[], cwd: string): void {
  const { status, stdout, stderr } = spawnSync('npm', args, { cwd, encoding: 'utf8' })
  expect(status, stdout + stderr).toBe(0)
}

beforeAll(async () => {
  demo = await startDemo({ changeStream })
  built = await loadClientPackage()
  project = mkdtempSync(join(tmpdir(), 'dao-data-project-'))
  writeFileSync(join(project, 'package.json'), '{"type":"module"}')
  npm(['pack', '--ignore-scripts', '--pack-destination', project], built.folder)
  const tarball = readdirSync(project).find((name) => name.endsWith('.tgz'))
  npm(['install', '--offline', '--no-audit', '--no-fund', `./${tarball}`], project)
  // File functions that the samples use.
  mkdirSync(join(project, 'node_modules/@types'))
  for (const name of ['@types/node', 'undici-types'])
    cpSync(dirname(resolve(`${name}/package.json`)), join(project, 'node_modules', name), { recursive: true })
  await writePrograms()
})
afterAll(async () => {
  if (project !== undefined) rmSync(project, { recursive: true })
  built?.remove()
  await demo?.close()
  changeStream.close()
})

/** Compiles all programs of the project with the strictest TypeScript options. */
function compile(compiler: string) {
  const strict = ['--strict', '--exactOptionalPropertyTypes', '--noUncheckedIndexedAccess', '--skipLibCheck', 'false']
  const target = ['--target', 'es2022', '--module', 'nodenext', '--types', 'node']
  const tsc = join(dirname(resolve(`${compiler}/package.json`)), 'bin/tsc')
  const files = readdirSync(project).filter((name) => name.endsWith('.ts'))
  const args = [tsc, ...strict, ...target, ...files]
  const { status, stdout } = spawnSync(process.execPath, args, { cwd: project, encoding: 'utf8' })
  expect(status, stdout).toBe(0)
  return files
}

/** Output of a compiled program. */
async function runProgram(file: string): Promise<string> {
  const child = spawn(process.execPath, [file], { cwd: project, stdio: ['ignore', 'pipe', 'inherit'] })
  const [output, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')])
  expect(code).toBe(0)
  return output
}

/** The TypeScript samples of a page as one program: each sample in a separate block, after the first one. */
function toProgram(page: string): string {
  const samples = [...page.matchAll(/```ts\n(?<code>.*?)```/gs)].map(({ groups }) => groups?.code ?? '')
  const isImport = (line: string) => line.startsWith('import ')
  const lines = samples.map((sample) => sample.split('\n'))
  const imports = lines.flatMap((sample) => sample.filter(isImport))
  const [first, ...rest] = lines.map((sample) => sample.filter((line) => !isImport(line)).join('\n'))
  const program = [...imports, first, ...rest.map((sample) => `{\n${sample}\n}`), 'export {}\n'].join('\n')
  return program.replaceAll(/http:\/\/127\.0\.0\.1:\d+/g, demo.url)
}

/** A call of every operation. */
const toCalls = () => `import { createDaoData } from 'dao-data-client'
const api = createDaoData({ baseUrl: '${demo.url}' })
const print = (answer: object | string) => console.log(JSON.stringify(answer).length)
${calls.map(({ tag, name, query }) => `print(await api.${tag}.${name}(${JSON.stringify(query)}))`).join('\n')}
for await (const { type } of api.service.streamChanges()) { print(type); break }
`

/** The programs of the project: type assertions, every operation, and the samples of the documents. */
async function writePrograms(): Promise<void> {
  const guide = await (await fetch(`${demo.url}/guides/typescript.md`)).text()
  const programs = {
    types: readFileSync(join(ROOT, 'test/fixtures/client-types.ts.txt'), 'utf8'),
    calls: toCalls(),
    guide: toProgram(guide),
    readme: toProgram(readFileSync(join(project, 'node_modules/dao-data-client/README.md'), 'utf8')),
  }
  for (const [name, program] of Object.entries(programs)) writeFileSync(join(project, `${name}.ts`), program)
}

describe('npm package of the client', () => {
  it('is small and has no dependencies', () => {
    const folder = join(project, 'node_modules/dao-data-client')
    const code = readdirSync(join(folder, 'dist')).filter((name) => name.endsWith('.js'))
    const size = gzipSync(Buffer.concat(code.map((name) => readFileSync(join(folder, 'dist', name))))).length
    expect(size).toBeLessThan(8_500)
    const { dependencies, version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
    expect(dependencies).toBeUndefined()
    expect(version).toBe(JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')).version)
    expect(readdirSync(folder).sort()).toEqual(['LICENSE', 'README.md', 'dist', 'package.json'])
  })

  it.each(COMPILERS)('has types for every request and response under %s, in its documents too', (compiler) => {
    expect(compile(compiler)).toEqual(['calls.ts', 'guide.ts', 'readme.ts', 'types.ts'])
  })

  it('calls every operation from a project without other packages', async () => {
    const sizes = (await runProgram('calls.js')).trim().split('\n').map(Number)
    // One line more for the stream.
    expect(sizes.length).toBe(calls.length + 1)
    // The records of an example address may be an empty list.
    expect(sizes.every((size) => size >= 2)).toBe(true)
  })

  it.each(['guide', 'readme'])('runs the samples of its %s', async (name) => {
    expect((await runProgram(`${name}.js`)).split('\n').length).toBeGreaterThan(10)
  })

  it.skipIf(!hasBrowser)('calls every operation from a page of another origin without a bundler', async () => {
    const folder = join(project, 'node_modules/dao-data-client/dist')
    const site = await startStubService((response, { url = '' }) => {
      const isPage = url === '/'
      const body = isPage ? PAGE : readFileSync(join(folder, url.slice(1)))
      response.writeHead(200, { 'content-type': isPage ? 'text/html' : 'text/javascript' }).end(body)
    })
    const browser = await startBrowser()
    const { page } = await browser.open(site.url)
    const answers = await page.evaluate(request, { baseUrl: demo.url, calls })
    const same = built.client.createDaoData({ baseUrl: demo.url })
    const volatile = new Set(routes.filter((route) => route.volatile).map(({ operation }) => operation as string))
    for (const [index, { tag, name, query }] of calls.entries()) {
      const expected = await Reflect.get(Reflect.get(same, tag), name)(query)
      if (volatile.has(name)) expect(Object.keys(answers.all[index] as object), name).toEqual(Object.keys(expected))
      else expect(answers.all[index], name).toEqual(expected)
    }
    expect(answers).toMatchObject({
      total: expect.any(Number),
      again: true,
      code: 'invalid_parameter',
      event: 'change',
    })
    expect(answers.csv).toBe(await (await same.daos.listDaos.download('csv', { limit: 3 })).text())
    await browser.close()
    await site.close()
  })
})

/** A page that imports the package's files unbundled. */
const PAGE = `<!doctype html><link rel="icon" href="data:,">
<script type="module">import * as client from './index.js'; globalThis.client = client</script>`

/** Runs in the page. */
async function request({ baseUrl, calls }: { baseUrl: string; calls: { tag: string; name: string; query: object }[] }) {
  const { createDaoData, ProblemError } = (globalThis as unknown as { client: ClientPackage['client'] }).client
  const api = createDaoData({ baseUrl })
  const all: unknown[] = []
  for (const { tag, name, query } of calls) all.push(await Reflect.get(Reflect.get(api, tag), name)(query))
  const first = await api.tokens.listTokens.answer({ limit: 2 })
  const second = await api.tokens.listTokens.answer({ limit: 2 })
  const refused = await api.tokens.listTokens({ limit: 501 }).catch((error: unknown) => error)
  const csv = await (await api.daos.listDaos.download('csv', { limit: 3 })).text()
  const { value } = await api.service.streamChanges().next()
  return {
    all,
    total: second.facts.total,
    again: JSON.stringify(first.data) === JSON.stringify(second.data) && first.facts.tag === second.facts.tag,
    code: refused instanceof ProblemError ? refused.code : refused,
    csv,
    event: value?.type,
  }
}
