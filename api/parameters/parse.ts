import { z } from 'zod'
import { Problem } from '../problem/problem.ts'
import { MAX_VALUES } from './kinds.ts'
import { nearestWord } from './nearest.ts'
import { wholeValues } from './whole-values.ts'

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

/** Whether a request without this parameter is refused. */
export function isRequired(schema: z.ZodType): boolean {
  return !schema.safeParse(undefined).success
}

/** One parameter of a shape, and what it means that a request does not have it. */
interface Expected {
  readonly name: string
  readonly schema: z.ZodType
  /** Undefined where it stays away. */
  readonly otherwise: unknown
  readonly isRequired: boolean
}

const expectations = new WeakMap<QueryShape, readonly Expected[]>()

/** The parameters of a shape, which every request of a route has in common: what is absent is most of them. */
function toExpected(shape: QueryShape): readonly Expected[] {
  const known = expectations.get(shape)
  if (known !== undefined) return known
  const expected = Object.entries(shape).map(([name, schema]) => {
    const { success, data } = schema.safeParse(undefined)
    return { name, schema, otherwise: data, isRequired: !success }
  })
  expectations.set(shape, expected)
  return expected
}

/** The words that a parameter takes, where it takes a few. */
function toWords(schema: z.ZodType): { allowed?: readonly string[] } {
  const outer = inner(schema)
  const bare = outer instanceof z.ZodArray ? outer.element : outer
  return bare instanceof z.ZodEnum ? { allowed: bare.options.map(String) } : {}
}

/** The values of each parameter as they came, in order, decoded. `bracketed` are those written as `name[]`. */
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

/** More than all parameters of any route have values. */
const MAX_PAIRS = 1_000

/**
 * The parameters in the query of a request's URL.
 * @throws Problem `invalid_parameter` for a malformed percent-encoding, or too many parameters.
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

function refuseUnknown(raw: RawParameters, known: readonly string[]): void {
  for (const name of raw.values.keys()) {
    if (known.includes(name)) continue
    const nearest = nearestWord(name, known)
    const hint = nearest === undefined ? '' : ` Did you mean "${nearest}"?`
    const shown = name.slice(0, 60)
    throw new Problem('unknown_parameter', `"${shown}" is not a parameter of this path.${hint}`, {
      param: shown,
      allowed: known,
    })
  }
}

/**
 * The values of a parameter that takes several. Those of ids and members hold no commas, so that one text may list them.
 * @throws Problem `invalid_parameter` for more than `MAX_VALUES`, before the rest of them is read.
 */
function toValues(name: string, schema: z.ZodType, given: readonly string[]): readonly string[] {
  const isSplit = !wholeValues.has(inner(schema))
  const values: string[] = []
  for (const text of given) {
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

function toValue(name: string, schema: z.ZodType, raw: RawParameters): unknown {
  const given = raw.values.get(name)
  if (given === undefined) return undefined
  const several = takesSeveral(schema)
  const values = several ? toValues(name, schema, given) : given
  if (values.includes('')) throw new Problem('invalid_parameter', `${name} must not be empty.`, { param: name })
  if (several) return [...new Set(values)].sort()
  if (values.length > 1 || raw.bracketed.has(name)) {
    throw new Problem('invalid_parameter', `${name} takes one value here.`, { param: name })
  }
  return inner(schema) instanceof z.ZodNumber ? toNumber(values[0] ?? '') : values[0]
}

/** Decimal digits as a number; anything else stays as it is, for the schema to refuse. */
function toNumber(text: string): number | string {
  return /^-?\d{1,15}$/.test(text) ? Number(text) : text
}

/** What a parameter takes, by its schema or by what found the mistake. */
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
 * The typed values of a request's parameters (docs/contract.md, section 2): those of the query, and those that stand in the
 * path, which the query cannot give.
 * @throws Problem `unknown_parameter`, `missing_parameter` or `invalid_parameter`, naming the parameter.
 */
export function parseParameters<Shape extends QueryShape>(
  shape: Shape,
  raw: RawParameters,
  inPath: Readonly<Record<string, string>> = {},
): z.output<z.ZodObject<Shape>> {
  const expected = toExpected(shape)
  refuseUnknown(
    raw,
    expected.flatMap(({ name }) => (name in inPath ? [] : [name])),
  )
  const parsed: Record<string, unknown> = {}
  for (const one of expected) {
    const value = toParsed(one, inPath[one.name] ?? toValue(one.name, one.schema, raw))
    if (value !== undefined) parsed[one.name] = value
  }
  return parsed as z.output<z.ZodObject<Shape>>
}
