import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { Spectral } from '@stoplight/spectral-core'
import { oas } from '@stoplight/spectral-rulesets'
import { afterAll, describe, expect, it } from 'vitest'
import { toOpenApi } from '../../api/openapi/document.ts'
import { exampleAnswers } from '../../api/openapi/examples.ts'
import { routes } from '../../api/routes.ts'

type Json = Record<string, unknown>
interface Operation {
  operationId: string
  description: string
  summary: string
  tags: string[]
  parameters: { name: string; description?: string; example?: unknown; schema: Json }[]
  responses: Record<string, Json>
}
interface Document {
  info: { version: string; license: { identifier: string } }
  security: unknown[]
  tags: { name: string; description?: string }[]
  paths: Record<string, { get: Operation }>
  components: { schemas: Record<string, Json>; responses: Record<string, Json>; headers: Record<string, Json> }
}

const text = JSON.stringify(toOpenApi([...routes]))
const openApi = JSON.parse(text) as Document
const operations = Object.values(openApi.paths).map(({ get }) => get)

/** Returns every member of every object in a schema with its path. */
function toMembers(schema: unknown, path: string): [string, Json][] {
  if (typeof schema !== 'object' || schema === null) return []
  const members = Object.entries(((schema as Json).properties ?? {}) as Record<string, Json>)
  return [
    ...members.map(([name, member]): [string, Json] => [`${path}.${name}`, member]),
    ...Object.entries(schema).flatMap(([name, one]) =>
      toMembers(one, name === 'properties' ? path : `${path}.${name}`),
    ),
  ]
}

const isSentence = (description: unknown) => typeof description === 'string' && /^[A-Z`].*\.$/s.test(description)

describe('OpenAPI document', () => {
  it('has a sentence for every operation, parameter, member, tag and named schema', () => {
    const { schemas, responses, headers } = openApi.components
    const named = (list: Record<string, Json>) => Object.entries(list).map(([name, one]) => [name, one.description])
    const observed = [
      ...operations.map(({ operationId, description }) => [operationId, description]),
      ...operations.flatMap(({ operationId, parameters }) =>
        parameters.map(({ name, description }) => [`${operationId} ${name}`, description]),
      ),
      ...Object.entries(schemas).flatMap(([name, schema]) =>
        // A member that refers to a named schema is described there.
        toMembers(schema, name).map(([path, member]) => [
          path,
          member.$ref === undefined ? member.description : 'There.',
        ]),
      ),
      ...openApi.tags.map(({ name, description }) => [name, description]),
      ...[schemas, responses, headers].flatMap(named),
    ]
    expect(observed.length).toBeGreaterThan(500)
    expect(observed.filter(([, description]) => !isSentence(description))).toEqual([])
  })

  it('has no members outside the named schemas', () => {
    expect(operations.flatMap((operation) => toMembers(operation, operation.operationId))).toEqual([])
  })

  it('explains null for each member that may be null', () => {
    const mayBeNull = (member: Json) =>
      JSON.stringify(member.type ?? member.anyOf ?? '').includes('"null"') &&
      !/\bnull\b/i.test(String(member.description))
    const members = Object.entries(openApi.components.schemas).flatMap(([name, schema]) => toMembers(schema, name))
    expect(members.filter(([, member]) => mayBeNull(member)).map(([path]) => path)).toEqual([])
  })

  it('has unique operation ids that start with a verb', () => {
    const ids = operations.map(({ operationId }) => operationId)
    expect(new Set(ids).size).toBe(ids.length)
    expect(ids.filter((id) => !/^(get|list|search|stream)([A-Z][a-z0-9]*)*$/.test(id))).toEqual([])
  })

  it('has no schema with a name that generators derive from an operation', () => {
    const suffixes = ['', 'Params', 'Body', 'Result', 'Error', 'Response', 'Query', 'QueryResult', 'QueryError']
    const derived = operations.flatMap(({ operationId }) =>
      suffixes.map((suffix) => operationId.replace(/^./, (letter) => letter.toUpperCase()) + suffix),
    )
    expect(derived).toContain('SearchResult')
    expect(derived.filter((name) => name in openApi.components.schemas)).toEqual([])
  })

  it('documents 409 only for operations with a name parameter', () => {
    const observed = operations.filter(({ responses }) => '409' in responses)
    expect(observed.length).toBeGreaterThan(0)
    expect(observed.filter(({ parameters }) => parameters.every(({ name }) => name !== 'name'))).toEqual([])
  })

  it('has examples only for parameters that a first request needs', () => {
    const filled = operations.flatMap(({ parameters }) =>
      parameters.filter(({ example }) => example !== undefined).map(({ name }) => name),
    )
    expect(new Set(filled)).not.toContain('format')
    expect(new Set(filled)).not.toContain('cursor')
    expect(new Set(filled)).toContain('interval')
  })

  it('has the version and licence of the package, and requires no key', () => {
    const manifest = JSON.parse(readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8'))
    expect(openApi.info).toMatchObject({ version: manifest.version, license: { identifier: manifest.license } })
    expect(openApi.security).toEqual([])
  })
})

it('exampleAnswers contains the example of the README', () => {
  const readme = readFileSync(join(import.meta.dirname, '../../README.md'), 'utf8')
  const [shown = ''] = /^\[\{.*?^\}\]$/ms.exec(readme) ?? []
  expect(exampleAnswers.listTokens?.answer).toMatchObject(JSON.parse(shown))
})

describe('OpenAPI linters', () => {
  const folder = mkdtempSync(join(tmpdir(), 'openapi-'))
  afterAll(() => rmSync(folder, { recursive: true }))

  it('report nothing with the recommended rules of Redocly, examples included', () => {
    const file = join(folder, 'openapi.json')
    writeFileSync(file, text)
    const cli = join(dirname(createRequire(import.meta.url).resolve('@redocly/cli/package.json')), 'bin', 'cli.js')
    const args = [cli, 'lint', file, '--extends=recommended', '--format=json']
    const env = { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' }
    const { stdout, stderr } = spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8', env })
    const report = JSON.parse(stdout.slice(stdout.indexOf('{'))) as { totals: object; problems: unknown[] }
    expect(report.problems, stderr).toEqual([])
    expect(report.totals).toMatchObject({ errors: 0, warnings: 0 })
  })

  it('report with the rules of Spectral only the missing contact', async () => {
    const spectral = new Spectral()
    spectral.setRuleset({ extends: [[oas as never, 'recommended']], rules: {} })
    const found = await spectral.run(text)
    expect(found.map(({ code, path }) => `${code} ${path.join('.')}`)).toEqual(['info-contact info'])
  })
})

/** Names of ratios and changes, which may be in percent, percentage points or fractions. */
const PROPORTION = /share$|percent|weight$|^change|contribution|^complete$/i

it('OpenAPI document names the unit of every ratio and change', () => {
  const proportions = toMembers(openApi, '')
    .map(([path, member]) => ({ name: path.split('.').at(-1) ?? '', path, member }))
    .filter(
      ({ name, member }) => PROPORTION.test(name) && /number|integer/.test(JSON.stringify(member.type ?? member.anyOf)),
    )
  expect(proportions.length).toBeGreaterThan(15)
  const without = proportions.filter(({ member }) => !/percent|fraction|from 0 to 1/i.test(String(member.description)))
  expect(without.map(({ path }) => path)).toEqual([])
})
