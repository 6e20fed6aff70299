import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { toOpenApi } from '../../api/openapi/document.ts'
import { defineRoute, type Route, toDeprecated, toDeprecationHeaders } from '../../api/route/define-route.ts'
import { routes } from '../../api/routes.ts'
import { toHead } from '../../api/serving/respond.ts'
import { toSurface } from '../support/surface.ts'

/** The API surface that clients may rely on; lines are only added. `RECORD_SURFACE=1` adds new ones. */
const FILE = join(import.meta.dirname, '../../api/openapi/released-surface.txt')

const surface = toSurface(toOpenApi([...routes]))
const read = () => (existsSync(FILE) ? readFileSync(FILE, 'utf8').split('\n').filter(Boolean) : [])

const toMissing = (released: readonly string[], now: readonly string[]) => {
  const has = new Set(now)
  return released.filter((line) => !has.has(line))
}

const toRoute = (record: z.ZodObject, query: Route['query'] = {}): Route =>
  defineRoute({
    ...{ operation: 'listThings', path: '/data/things', tag: 'Service', summary: '', description: '' },
    ...{ query, response: z.array(record), datasets: [] },
    handle: async () => ({ body: Buffer.from('[]'), asOf: null }),
  })

const surfaceOf = (record: z.ZodObject, query?: Route['query']) => toSurface(toOpenApi([toRoute(record, query)]))

describe('released API surface', () => {
  it('still has all members and parameters with the same types', () => {
    if (process.env.RECORD_SURFACE !== undefined)
      writeFileSync(FILE, `${[...new Set([...read(), ...surface])].sort().join('\n')}\n`)
    const released = read()
    expect(released.length).toBeGreaterThan(500)
    expect(toMissing(released, surface)).toEqual([])
  })

  const before = z.object({ name: z.string(), price: z.number(), inner: z.object({ at: z.string() }) })
  it.each([
    ['a member is removed', before.omit({ price: true })],
    ['a nested member is removed', before.extend({ inner: z.object({}) })],
    ['a number becomes nullable', before.extend({ price: z.number().nullable() })],
    ['a member changes its type', before.extend({ name: z.number() })],
  ])('is incomplete if %s', (_what, after) => {
    expect(toMissing(surfaceOf(before), surfaceOf(after))).not.toEqual([])
  })

  it('is incomplete if a parameter is removed or becomes required, but not after additions', () => {
    const limit = z
      .number()
      .optional()
      .meta({ description: '', examples: [1] })
    const more = before.extend({ volume: z.number() })
    expect(toMissing(surfaceOf(before, { limit }), surfaceOf(before))).toEqual(['/data/things takes limit'])
    expect(toMissing(surfaceOf(before, { limit }), surfaceOf(before, { limit: limit.unwrap() }))).not.toEqual([])
    expect(toMissing(surfaceOf(before), surfaceOf(more, { limit }))).toEqual([])
  })
})

describe('deprecated route', () => {
  const deprecated = { since: '2027-01-01', sunset: '2027-07-01', instead: '/data/others' }

  it('has headers with its dates and its successor', () => {
    expect(toDeprecationHeaders(toDeprecated(deprecated))).toEqual([
      ...['Deprecation', '@1798761600', 'Sunset', 'Thu, 01 Jul 2027 00:00:00 GMT'],
      ...['Link', '</data/others>; rel="successor-version"'],
    ])
  })

  it('sends these headers with every response', () => {
    const route = { ...toRoute(z.object({ name: z.string() })), deprecated }
    const { headers } = toHead(route, { body: Buffer.from('[]'), asOf: null })
    expect(headers.join(' ')).toContain(toDeprecationHeaders(deprecated).join(' '))
  })

  it('is marked as deprecated in OpenAPI', () => {
    const route = { ...toRoute(z.object({ name: z.string() })), deprecated }
    expect(toOpenApi([route]).paths['/data/things']?.get.deprecated).toBe(true)
  })

  it('must stay available for at least 180 days', () => {
    expect(() => toDeprecated({ ...deprecated, sunset: '2027-06-01' })).toThrow('180 days')
  })
})
