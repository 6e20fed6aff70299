import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, it } from 'vitest'
import { toOpenApi } from '../../api/openapi/document.ts'
import { routes } from '../../api/routes.ts'

const DATA = join(import.meta.dirname, '../../.data')
/** The generators need 300 MB: this test installs them here on its first run, and keeps them until the version changes. */
const INSTALLED = join(DATA, 'generators')
const GENERATORS2 = join(import.meta.dirname, '../generators')
const UNREACHABLE = /\b(?:ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|ENOTCACHED)\b/

let folder: string
let isInstalled = false

function run(command: string, args: readonly string[], cwd: string): { isDone: boolean; output: string } {
  const env = { ...process.env, DISABLE_TELEMETRY: '1', DO_NOT_TRACK: '1', SCARF_ANALYTICS: 'false' }
  const { status, stdout, stderr } = spawnSync(command, args, { cwd, encoding: 'utf8', env })
  return { isDone: status === 0, output: stdout + stderr }
}

function runNode(args: readonly string[]): void {
  const { isDone, output } = run(process.execPath, args, folder)
  if (!isDone) throw new Error(output)
}

/** Returns false, with a printed line, if the registry cannot be reached. */
function install(): boolean {
  const lock = readFileSync(join(GENERATORS2, 'package-lock.json'), 'utf8')
  const mark = join(INSTALLED, 'installed-lock.json')
  if (existsSync(mark) && readFileSync(mark, 'utf8') === lock) return true
  mkdirSync(INSTALLED, { recursive: true })
  for (const name of ['package.json', 'package-lock.json']) cpSync(join(GENERATORS2, name), join(INSTALLED, name))
  const { isDone, output } = run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], INSTALLED)
  if (isDone) writeFileSync(mark, lock)
  else if (UNREACHABLE.test(output)) console.log('Skipped: npm cannot reach its registry to install the generators.')
  else throw new Error(output)
  return isDone
}

beforeAll(() => {
  isInstalled = install()
  mkdirSync(DATA, { recursive: true })
  folder = mkdtempSync(join(DATA, 'generated-'))
  symlinkSync(join(INSTALLED, 'node_modules'), join(folder, 'node_modules'))
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
  writeFileSync(join(folder, 'openapi.json'), JSON.stringify(toOpenApi([...routes])))
  writeFileSync(join(folder, 'kubb.config.mjs'), KUBB)
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const KUBB = `import { defineConfig } from '@kubb/core'
import { pluginClient } from '@kubb/plugin-client'
import { pluginOas } from '@kubb/plugin-oas'
import { pluginTs } from '@kubb/plugin-ts'
export default defineConfig({
  root: '.',
  input: { path: './openapi.json' },
  output: { path: './kubb', format: false, lint: false },
  plugins: [
    pluginOas({ generators: [] }),
    pluginTs({ output: { path: 'types' } }),
    pluginClient({ output: { path: 'clients' }, client: 'fetch', bundle: true }),
  ],
})
`

const bin = (name: string) => join('node_modules', '.bin', name)

/** The arguments of each generator, and a program whose `List` is the client's return type for a list of tokens. */
const GENERATORS = [
  [
    'hey-api',
    [bin('openapi-ts'), '-i', 'openapi.json', '-o', 'hey-api', '--no-log-file'],
    `import { listTokens, type Token } from './hey-api/index'
type List = NonNullable<Awaited<ReturnType<typeof listTokens>>['data']>`,
  ],
  [
    'orval',
    [bin('orval'), '--input', 'openapi.json', '--output', 'orval.ts', '--client', 'fetch'],
    `import { listTokens, type Token } from './orval'
type List = Extract<Awaited<ReturnType<typeof listTokens>>, { status: 200 }>['data']`,
  ],
  [
    'orval-axios',
    [bin('orval'), '--input', 'openapi.json', '--output', 'orval-axios.ts'],
    `import type { ListTokensResult, Token } from './orval-axios'
type List = ListTokensResult['data']`,
  ],
  [
    'kubb',
    [bin('kubb'), 'generate', '--config', 'kubb.config.mjs'],
    `import { listTokens } from './kubb/clients/listTokens'
import type { Token } from './kubb/types/Token'
type List = Awaited<ReturnType<typeof listTokens>>`,
  ],
  [
    'swagger-typescript-api',
    [bin('swagger-typescript-api'), 'generate', '-p', 'openapi.json', '-o', '.', '-n', 'swagger.ts'],
    `import { Api, type Token } from './swagger'
type List = Awaited<ReturnType<Api<unknown>['data']['listTokens']>>['data']`,
  ],
  [
    'oazapfts',
    [bin('oazapfts'), 'openapi.json', 'oazapfts.ts'],
    `import { listTokens, type Token } from './oazapfts'
type List = Extract<Awaited<ReturnType<typeof listTokens>>, { status: 200 }>['data']`,
  ],
] as const

const CHECK = `
type Is<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
const assert = <Truth extends true>(_truth?: Truth): void => undefined
assert<Is<List, Token[]>>()
assert<Is<Token['symbol'], string>>()
assert<Is<Token['financialData']['marketCap'], number | null>>()
`

describe('generated client', () => {
  it.for(GENERATORS)('has the type of a list from %s', ([name, args, program], { skip }) => {
    skip(!isInstalled, 'the generators are not installed')
    runNode(args)
    writeFileSync(join(folder, `${name}-check.ts`), program + CHECK)
    const target = ['--target', 'es2022', '--lib', 'es2023,dom,dom.iterable', '--module', 'esnext']
    const options = [
      '--noEmit',
      '--strict',
      '--skipLibCheck',
      '--moduleResolution',
      'bundler',
      '--allowImportingTsExtensions',
    ]
    runNode([join('node_modules', 'typescript', 'bin', 'tsc'), ...options, ...target, `${name}-check.ts`])
  })
})
