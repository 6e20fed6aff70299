import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { toOpenApi } from '../../api/openapi/document.ts'
import { defineRoute, type Route } from '../../api/route/define-route.ts'
import { toDeprecated, toDeprecationHeaders } from '../../api/route/deprecation.ts'
import { routes } from '../../api/routes.ts'
import { toHead } from '../../api/serving/ready.ts'
import { toSurface } from '../support/surface.ts'

/** What clients may rely on since some release: it only grows. `RECORD_SURFACE=1` adds what is new. */
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

describe('what was released', () => {
  it('is still there: members and parameters of the same types', () => {
    if (process.env.RECORD_SURFACE !== undefined)
      writeFileSync(FILE, `${[...new Set([...read(), ...surface])].sort().join('\n')}\n`)
    const released = read()
    expect(released.length).toBeGreaterThan(500)
    expect(toMissing(released, surface)).toEqual([])
  })

  const before = z.object({ name: z.string(), price: z.number(), inner: z.object({ at: z.string() }) })
  it.each([
    ['a member is gone', before.omit({ price: true })],
    ['a member within is gone', before.extend({ inner: z.object({}) })],
    ['a number may be null', before.extend({ price: z.number().nullable() })],
    ['a member has another type', before.extend({ name: z.number() })],
  ])('is missed when %s', (_what, after) => {
    expect(toMissing(surfaceOf(before), surfaceOf(after))).not.toEqual([])
  })

  it('is missed when a parameter is gone or has become required, and not when something is added', () => {
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

describe('a route that others replace', () => {
  const deprecated = { since: '2027-01-01', sunset: '2027-07-01', instead: '/data/others' }

  it('says since when, until when, and where to go', () => {
    expect(toDeprecationHeaders(toDeprecated(deprecated))).toEqual([
      ...['Deprecation', '@1798761600', 'Sunset', 'Thu, 01 Jul 2027 00:00:00 GMT'],
      ...['Link', '</data/others>; rel="successor-version"'],
    ])
  })

  it('says so with every answer', () => {
    const route = { ...toRoute(z.object({ name: z.string() })), deprecated }
    const { headers } = toHead(route, { body: Buffer.from('[]'), asOf: null })
    expect(headers.join(' ')).toContain(toDeprecationHeaders(deprecated).join(' '))
  })

  it('is told as such to generators of clients', () => {
    const route = { ...toRoute(z.object({ name: z.string() })), deprecated }
    expect(toOpenApi([route]).paths['/data/things']?.get.deprecated).toBe(true)
  })

  it('stays for 180 days at least', () => {
    expect(() => toDeprecated({ ...deprecated, sunset: '2027-06-01' })).toThrow('180 days')
  })
})
