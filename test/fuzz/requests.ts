import { z } from 'zod'
import { toMembers } from '../../api/formats/formats.ts'
import { exampleOf } from '../../api/parameters/parse.ts'
import type { Route } from '../../api/route/define-route.ts'
import { routes } from '../../api/routes.ts'
import type { createRandom } from '../support/random.ts'

type Random = ReturnType<typeof createRandom>

/** Valid values learned from earlier responses. */
export interface RequestValues {
  readonly ids: string[]
  readonly names: string[]
  /** Queries of next pages, by path. */
  readonly next: Map<string, string>
}

export interface FuzzRequest {
  readonly route: Route
  /** Path and query. */
  readonly url: string
}

const NONSENSE = [
  ...[
    '',
    ' ',
    '0',
    '-1',
    '1e9',
    'null',
    'undefined',
    'NaN',
    '%00',
    '\u0000',
    "'",
    '"',
    '`',
    ';--',
    '{}',
    '[]',
    '../..',
  ],
  ...[
    '🦄',
    'İ',
    'ﬁ',
    'e\u0301',
    '\ud800',
    'x'.repeat(300),
    '1'.repeat(40),
    "' OR 1=1 --",
    '{id: String}',
    '\\',
    '\t\n',
  ],
]
const DAY_MS = 86_400_000

/** The schema inside optional and default wrappers. */
function inner(schema: z.ZodType): z.ZodType {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault) return inner(schema.unwrap() as z.ZodType)
  return schema
}

function toTime(random: Random, now: number): string {
  const at = now - Math.floor(random.next() ** 3 * 5 * 365 * DAY_MS) + (random.chance(0.1) ? 2 * DAY_MS : 0)
  const iso = new Date(at).toISOString()
  return random.pick([iso, iso.slice(0, 10), iso.slice(0, 16), String(at), String(Math.floor(at / 1000))])
}

const toNumber = (random: Random) =>
  random.pick([
    String(1 + random.below(20)),
    String(1 + random.below(20)),
    String(random.below(20_000)),
    '0',
    '-3',
    '1.5',
  ])

function toFilter(random: Random, record: z.ZodObject, existing: RequestValues): string {
  const member = random.pick([...toMembers(record).values()])
  const operator = random.pick(['=', '!=', '>', '<', '>=', '<=', '~', ''])
  const value = random.pick([
    toNumber(random),
    'null',
    'true',
    '2026-01-01',
    ...existing.names.slice(0, 3),
    random.pick(NONSENSE),
  ])
  return `${random.chance(0.9) ? member.path : random.pick(NONSENSE)}${operator}${value}`
}

function toSort(random: Random, record: z.ZodObject): string {
  const paths = [...toMembers(record).keys()]
  const words = Array.from({ length: 1 + random.below(random.chance(0.9) ? 3 : 5) }, () => random.pick(paths))
  return words.map((path) => `${random.pick(['', '-', ''])}${path}`).join()
}

/** A plausible value of a parameter. */
function toLikely(random: Random, route: Route, name: string, existing: RequestValues, now: number): string {
  const schema = inner(route.query[name] as z.ZodType)
  const single = schema instanceof z.ZodArray ? inner(schema.element as z.ZodType) : schema
  if (single instanceof z.ZodEnum) return String(random.pick(single.options))
  if (single instanceof z.ZodNumber) return toNumber(random)
  if (name === 'sort' && route.record) return toSort(random, route.record)
  if (name === 'filter' && route.record) return toFilter(random, route.record, existing)
  if (['start', 'end', 'asOf'].includes(name)) return toTime(random, now)
  if (name === 'id' && existing.ids.length > 0) return random.pick(existing.ids)
  if ((name === 'name' || name === 'q') && existing.names.length > 0) {
    const text = random.pick(existing.names)
    return random.chance(0.5) ? text : text.slice(0, 1 + random.below(text.length))
  }
  if (name === 'cursor') return new URLSearchParams(existing.next.get(route.path) ?? '').get('cursor') ?? 'abc'
  const example = exampleOf(route.query[name] as z.ZodType)
  return String(Array.isArray(example) ? example[0] : (example ?? 'x'))
}

/** In UTF-8, half a surrogate pair becomes a replacement character. */
const toEncoded = (text: string) => encodeURIComponent(Buffer.from(text).toString())

const isNeeded = (route: Route, name: string) => route.query[name]?.safeParse(undefined).success === false

/** A random request: mostly valid, sometimes with an invalid part. */
export function toRequest(random: Random, existing: RequestValues, now: number): FuzzRequest {
  const route = random.pick((routes as readonly Route[]).filter(({ isEndless }) => !isEndless))
  const next = existing.next.get(route.path)
  if (next !== undefined && random.chance(0.15)) return { route, url: `${route.path}?${next}` }
  const value = (name: string) =>
    random.chance(0.04) ? random.pick(NONSENSE) : toLikely(random, route, name, existing, now)
  const names = Object.keys(route.query).filter((name) => !route.path.includes(`{${name}}`))
  const parameters = names.flatMap((name): [string, string][] => {
    const share = isNeeded(route, name)
      ? 0.98
      : name === 'id' || name === 'name'
        ? 0.45
        : name === 'cursor'
          ? 0.03
          : 0.25
    if (!random.chance(share)) return []
    const times = random.chance(0.06) ? 2 + random.below(3) : 1
    return Array.from({ length: times }, () => [random.chance(0.02) ? `${name}[]` : name, value(name)])
  })
  if (random.chance(0.02))
    parameters.push([random.pick(['nmae', 'lmit', '__proto__', 'constructor']), random.pick(NONSENSE)])
  const path = route.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => toEncoded(value(name)))
  const query = parameters.map(([name, text]) => `${name}=${toEncoded(text)}`).join('&')
  return { route, url: `${path}?${query}` }
}
