import { z } from 'zod'
import { Problem } from '../problem/problem.ts'
import { isEmptyAllowed, MAX_VALUES, nearestWord, unsplitValues } from './kinds.ts'

export type QueryShape = Readonly<Record<string, z.ZodType>>

/** The schema inside optional and default wrappers. */
function inner(schema: z.ZodType): z.ZodType {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault) return inner(schema.unwrap() as z.ZodType)
  return schema
}

/** Whether a parameter takes several values. */
export function takesSeveral(schema: z.ZodType): boolean {
  return inner(schema) instanceof z.ZodArray
}

/** The first documented example of a parameter. */
export function exampleOf(schema: z.ZodType): unknown {
  const own = schema.meta()?.examples ?? inner(schema).meta()?.examples
  return Array.isArray(own) ? own[0] : undefined
}

/** Whether a request without this parameter is rejected. */
export function isRequired(schema: z.ZodType): boolean {
  return !schema.safeParse(undefined).success
}

/** One parameter of a shape, how its text is read, and its value if a request omits it. */
interface Expected {
  readonly name: string
  readonly schema: z.ZodType
  readonly takesSeveral: boolean
  readonly isNumber: boolean
  readonly isEmptyAllowed: boolean
  /** The default value; undefined if the parameter stays absent. */
  readonly otherwise: unknown
  readonly isRequired: boolean
}

const expectations = new WeakMap<QueryShape, readonly Expected[]>()

/**
 * The parameters of a shape, computed once per shape: reading the schema of each parameter takes longer than its text,
 * and most parameters are absent in a request, so their defaults are reused.
 */
function toExpected(shape: QueryShape): readonly Expected[] {
  const cached = expectations.get(shape)
  if (cached !== undefined) return cached
  const expected = Object.entries(shape).map(([name, schema]) => {
    const { success, data } = schema.safeParse(undefined)
    const [bare, isRequired] = [inner(schema), !success]
    const reading = { isNumber: bare instanceof z.ZodNumber, isEmptyAllowed: isEmptyAllowed(bare) }
    return { name, schema, takesSeveral: takesSeveral(schema), ...reading, otherwise: data, isRequired }
  })
  expectations.set(shape, expected)
  return expected
}

/** The allowed words of an enumerated parameter. */
function toWords(schema: z.ZodType): { allowed?: readonly string[] } {
  const outer = inner(schema)
  const bare = outer instanceof z.ZodArray ? outer.element : outer
  return bare instanceof z.ZodEnum ? { allowed: bare.options.map(String) } : {}
}

/** The decoded values of each parameter, in order. `bracketed` are those written as `name[]`. */
export interface RawParameters {
  readonly values: ReadonlyMap<string, readonly string[]>
  readonly bracketed: ReadonlySet<string>
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch (cause) {
    throw new Problem('invalid_parameter', 'The query has a malformed percent-encoding.', { cause })
  }
}

/** Browsers' libraries add `_` with a changing value to bypass caches (docs/contract.md, section 2). */
const CACHE_BREAKER = /[?&]_(?:[=&]|$)/

/** Removes the parameter `_` from a URL, so that it changes neither answers nor cache keys. */
export function withoutCacheBreaker(url: string): string {
  const mark = url.indexOf('?')
  if (mark < 0 || !CACHE_BREAKER.test(url)) return url
  const pairs = url.slice(mark + 1).split('&')
  const rest = pairs.filter((pair) => pair !== '_' && !pair.startsWith('_=')).join('&')
  return rest === '' ? url.slice(0, mark) : `${url.slice(0, mark)}?${rest}`
}

/** More than all parameters of any route have values. */
const MAX_PAIRS = 1_000

/**
 * The parameters in the query of a URL.
 * @throws Problem `invalid_parameter` for malformed percent-encoding, or too many parameters.
 */
export function readQuery(url: string): RawParameters {
  const mark = url.indexOf('?')
  const query = mark < 0 ? '' : url.slice(mark + 1)
  const values = new Map<string, string[]>()
  const bracketed = new Set<string>()
  const pairs = query.split('&', MAX_PAIRS + 1)
  if (pairs.length > MAX_PAIRS)
    throw new Problem('invalid_parameter', `The query must have at most ${MAX_PAIRS} parameters.`)
  for (const pair of pairs) {
    if (pair === '') continue
    const equals = pair.indexOf('=')
    const written = decode(equals < 0 ? pair : pair.slice(0, equals))
    const name = written.endsWith('[]') ? written.slice(0, -2) : written
    if (name !== written) bracketed.add(name)
    const list = values.get(name)
    const value = equals < 0 ? '' : decode(pair.slice(equals + 1))
    if (list) list.push(value)
    else values.set(name, [value])
  }
  return { values, bracketed }
}

function refuseUnknown(raw: RawParameters, expected: readonly Expected[], inPath: Readonly<Record<string, string>>) {
  const isKnown = (name: string) => !(name in inPath) && expected.some((one) => one.name === name)
  for (const name of raw.values.keys()) {
    if (isKnown(name)) continue
    const names = expected.flatMap((one) => (one.name in inPath ? [] : [one.name]))
    const nearest = nearestWord(name, names)
    const hint = nearest === undefined ? '' : ` Did you mean "${nearest}"?`
    const shown = name.slice(0, 60)
    throw new Problem('unknown_parameter', `"${shown}" is not a parameter of this path.${hint}`, {
      param: shown,
      allowed: names,
    })
  }
}

/**
 * The values of an array parameter. Ids and members contain no commas, so one text may list several.
 * @throws Problem `invalid_parameter` for more than `MAX_VALUES`, before the rest is read.
 */
function toValues(name: string, schema: z.ZodType, texts: readonly string[]): readonly string[] {
  const isSplit = !unsplitValues.has(inner(schema))
  const values: string[] = []
  for (const text of texts) {
    if (isSplit) values.push(...text.split(',', MAX_VALUES + 1))
    else values.push(text)
    if (values.length > MAX_VALUES)
      throw new Problem('invalid_parameter', `${name} must have at most ${MAX_VALUES} values.`, {
        param: name,
        ...toWords(schema),
      })
  }
  return values
}

function toValue(expected: Expected, raw: RawParameters): unknown {
  const { name, schema } = expected
  const texts = raw.values.get(name)
  if (texts === undefined) return undefined
  const values = expected.takesSeveral ? toValues(name, schema, texts) : texts
  if (values.includes('') && !expected.isEmptyAllowed)
    throw new Problem('invalid_parameter', `${name} must not be empty.`, { param: name })
  if (expected.takesSeveral) return [...new Set(values)].sort()
  if (values.length > 1 || raw.bracketed.has(name)) {
    throw new Problem('invalid_parameter', `${name} takes one value here.`, { param: name })
  }
  return expected.isNumber ? toNumber(values[0] ?? '') : values[0]
}

/** Converts decimal digits to a number. Other text is returned unchanged, for the schema to reject. */
function toNumber(text: string): number | string {
  return /^-?\d{1,15}$/.test(text) ? Number(text) : text
}

/** The allowed values of a parameter, by its schema or from the issue. */
function toAllowed(schema: z.ZodType, issue: z.core.$ZodIssue): { allowed?: readonly string[] } {
  const allowed: unknown = issue.code === 'custom' ? issue.params?.allowed : undefined
  return Array.isArray(allowed) && allowed.length > 0 ? { allowed: allowed.map(String) } : toWords(schema)
}

function toParameterProblem(name: string, schema: z.ZodType, issue: z.core.$ZodIssue): Problem {
  const detail = `${name} ${issue.message}`
  return new Problem('invalid_parameter', /[.?]$/.test(detail) ? detail : `${detail}.`, {
    param: name,
    ...toAllowed(schema, issue),
  })
}

function toParsed({ name, schema, otherwise, isRequired: isNeeded }: Expected, value: unknown): unknown {
  if (value === undefined && isNeeded)
    throw new Problem('missing_parameter', `${name} is required.`, { param: name, ...toWords(schema) })
  if (value === undefined) return otherwise
  const { error, data } = schema.safeParse(value)
  const [issue] = error?.issues ?? []
  if (issue !== undefined) throw toParameterProblem(name, schema, issue)
  return data
}

/**
 * The typed values of a request's parameters (docs/contract.md, section 2): those of the query, and those in the path,
 * which the query cannot set.
 * @throws Problem `unknown_parameter`, `missing_parameter` or `invalid_parameter`, naming the parameter.
 */
export function parseParameters<Shape extends QueryShape>(
  shape: Shape,
  raw: RawParameters,
  inPath: Readonly<Record<string, string>> = {},
): z.output<z.ZodObject<Shape>> {
  const expected = toExpected(shape)
  refuseUnknown(raw, expected, inPath)
  const parsed: Record<string, unknown> = {}
  for (const one of expected) {
    const value = toParsed(one, inPath[one.name] ?? toValue(one, raw))
    if (value !== undefined) parsed[one.name] = value
  }
  return parsed as z.output<z.ZodObject<Shape>>
}
