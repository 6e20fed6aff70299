import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { toOpenApi } from '../../api/openapi/document.ts'
import type { Route } from '../../api/route/define-route.ts'
import { routes } from '../../api/routes.ts'
import { toFirstQuery } from '../support/documented.ts'

const ROOT = join(import.meta.dirname, '../..')
const { resolve } = createRequire(import.meta.url)
const packageOf = (name: string) => dirname(resolve(`${name}/package.json`))

/** Inside the project, where the generated code resolves its packages. */
let folder: string

function run(args: readonly string[]): void {
  const env = { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' }
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8', env })
  expect(status, stdout + stderr).toBe(0)
}

/** Compiles with TypeScript's strictest options. */
function compile(file: string, source: string): void {
  writeFileSync(join(folder, file), source)
  const strict = ['--strict', '--exactOptionalPropertyTypes', '--noUncheckedIndexedAccess', '--skipLibCheck', 'false']
  const target = [
    '--target',
    'es2022',
    '--lib',
    'es2023,dom,dom.iterable',
    '--module',
    'nodenext',
    '--types',
    '',
    '--ignoreConfig',
  ]
  run([join(packageOf('typescript'), 'bin', 'tsc'), '--noEmit', ...strict, ...target, file])
}

/** The query as the argument of a call; no JSON route has path parameters. */
const toQuery = (route: Route) => JSON.stringify(toFirstQuery(route))

const takesQuery = ({ query }: Route) => Object.keys(query).length > 0

const ofJson = routes.filter(({ mediaType }) => mediaType === 'application/json')

/** Types without information, which no value of a response may have. */
const DEFINITIONS = `
type IsAny<T> = 0 extends 1 & T ? true : false
type Known<T> = IsAny<T> extends true ? false : unknown extends T ? false
  : T extends readonly (infer Item)[] ? Known<Item>
  : T extends object ? (false extends { [Key in keyof T]-?: Known<T[Key]> }[keyof T] ? false : true)
  : true
type Is<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
const assert = <Truth extends true>(_truth?: Truth): void => undefined
`

beforeAll(() => {
  mkdirSync(join(ROOT, '.data'), { recursive: true })
  folder = mkdtempSync(join(ROOT, '.data', 'clients-'))
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
  writeFileSync(join(folder, 'openapi.json'), JSON.stringify(toOpenApi([...routes])))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('clients generated from the OpenAPI document', () => {
  it('have types for every response with openapi-typescript and openapi-fetch', () => {
    const cli = join(packageOf('openapi-typescript'), 'bin', 'cli.js')
    run(['--import', join(ROOT, 'tools/typescript-5.mjs'), cli, 'openapi.json', '-o', 'schema.d.ts'])
    const calls = ofJson.map((route) => {
      const options = takesQuery(route) ? `, { params: { query: ${toQuery(route)} } }` : ''
      return `{
  const { data, error } = await api.GET('${route.path}'${options})
  assert<Is<NonNullable<typeof data>, Answer<'${route.path}'>>>()
  assert<Known<Answer<'${route.path}'>>>()
  assert<Is<NonNullable<typeof error>['code'], components['schemas']['Problem']['code']>>()
}`
    })
    compile(
      'fetch.ts',
      `import createClient from 'openapi-fetch'
import type { components, paths } from './schema.js'
${DEFINITIONS}
type Answer<Path extends keyof paths> = paths[Path]['get'] extends { responses: { 200: { content: { 'application/json': infer Body } } } } ? Body : never
const api = createClient<paths, 'application/json' | 'application/problem+json'>({ baseUrl: 'http://127.0.0.1:3000' })
${calls.join('\n')}
const { data: tokens = [] } = await api.GET('/data/tokens', { params: { query: { limit: 3, name: ['Uniswap'] } } })
for (const { symbol, financialData } of tokens) {
  assert<Is<typeof symbol, string>>()
  assert<Is<typeof financialData.price, number>>()
  assert<Is<typeof financialData.marketCap, number | null>>()
}
const { data: daos = [] } = await api.GET('/data/daos')
assert<Is<(typeof daos)[number], components['schemas']['Dao']>>()
assert<Is<components['schemas']['Dao']['token'], components['schemas']['DaoToken'] | null>>()
const usual = createClient<paths>({ baseUrl: 'http://127.0.0.1:3000' })
const { data: same = [] } = await usual.GET('/data/tokens')
assert<Is<(typeof same)[number], components['schemas']['Token']>>()
// @ts-expect-error: a parameter that the operation does not have.
await api.GET('/data/tokens', { params: { query: { symbol: 'UNI' } } })
// @ts-expect-error: a start is wanted.
await api.GET('/data/tokens/historic-financial', { params: { query: { name: 'Uniswap', interval: '1d' } } })
`,
    )
  })

  it('have types for every response with Redocly', () => {
    run([join(packageOf('@redocly/cli'), 'bin', 'cli.js'), 'generate-client', 'openapi.json', '-o', 'client.ts'])
    const calls = ofJson.map((route) => {
      const query = takesQuery(route) ? `{ query: ${toQuery(route)} }` : ''
      return `{
  const answer = await api.${route.operation}(${query})
  assert<Known<typeof answer>>()
}`
    })
    compile(
      'redocly.ts',
      `import * as api from './client.js'
${DEFINITIONS}
${calls.join('\n')}
const [token] = await api.listTokens({ query: { limit: 1 } })
assert<Is<typeof token, api.Token | undefined>>()
assert<Is<api.FinancialData['marketCap'], number | null>>()
assert<Is<api.Dao['token'], api.DaoToken | null>>()
`,
    )
  })
})
