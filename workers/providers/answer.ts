import { z } from 'zod'
import { DataError } from '../../shared/errors.ts'
import { EARLIEST_MS, END_OF_TIME, remembering } from '../../shared/intervals.ts'
import { type Candidate, OMITTED } from '../job/define-job.ts'

/** A member passed on unchanged: the dataset's row check validates it, so that one bad value affects one row. */
export const asSent = z.unknown().optional()

/**
 * Validates a response against the documented schema.
 * @throws DataError `provider_malformed` with the provider, the path and the first differences.
 */
export function checkAnswer<T>(schema: z.ZodType<T>, answer: unknown, source: { provider: string; path: string }): T {
  const checked = schema.safeParse(answer)
  if (checked.success) return checked.data
  const places = checked.error.issues
    .slice(0, 3)
    .map(({ path, message }) => `${path.join('.') || 'answer'}: ${message}`)
  throw new DataError('provider_malformed', `${source.provider} ${source.path}: ${places.join('; ')}`)
}

/** Replaces an unreadable element; every member of such objects is optional. */
const UNREADABLE = Object.freeze({})

export const isUnreadable = (element: object): boolean => element === UNREADABLE

/**
 * Schema of a list of objects with optional members. An unreadable element affects only itself: it becomes an object
 * without members, and the reader of the list reports it. A list without any readable element is rejected, because it
 * is not the documented format.
 */
export function listOf<T extends z.ZodObject>(element: T) {
  return z.array(z.unknown()).transform((values, context): z.output<T>[] => {
    const read = values.map((value) => element.safeParse(value))
    addIssueOfAll(read, context)
    return read.map(({ data }) => data ?? (UNREADABLE as z.output<T>))
  })
}

/** The same as `listOf` for a map of such objects. */
export function mapOf<T extends z.ZodObject>(element: T) {
  return z.record(z.string(), z.unknown()).transform((values, context): Record<string, z.output<T>> => {
    const read = Object.entries(values).map(([key, value]) => [key, element.safeParse(value)] as const)
    addIssueOfAll(
      read.map(([, one]) => one),
      context,
    )
    return Object.fromEntries(read.map(([key, { data }]) => [key, data ?? (UNREADABLE as z.output<T>)]))
  })
}

function addIssueOfAll(read: readonly z.ZodSafeParseResult<unknown>[], context: z.RefinementCtx): void {
  const [first] = read
  if (first?.success !== false || read.some(({ success }) => success)) return
  for (const { path, message } of first.error.issues) context.addIssue({ code: 'custom', path: [0, ...path], message })
}

/** Returns the value if the schema accepts it, or else null: an invalid optional value counts as absent. */
export function orNull<T>(schema: z.ZodType<T>, value: unknown): T | null {
  const read = schema.safeParse(value)
  return read.success ? read.data : null
}

/** Returns whether a value is a plausible observation time in Unix milliseconds. */
export const isTime = (ms: unknown): ms is number => typeof ms === 'number' && ms >= EARLIEST_MS && ms < END_OF_TIME

/**
 * Marks an unreadable part of a response, which the row check counts by reason. `members` are the readable members, such
 * as the entity's key.
 */
export function toUnreadable<Row>(
  reason: string,
  members: { readonly [K in keyof Row]?: unknown } = {},
): Candidate<Row> {
  return { ...members, [OMITTED]: [reason] } as Candidate<Row>
}

/** The error for an id that the provider does not know; `path` contains the id. */
export function toUnknown(provider: string, path: string): DataError {
  return new DataError('provider_unknown', `${provider} ${path}: it knows no such thing`)
}

/** Parses an error body as JSON; undefined if it is not JSON, such as a gateway's page. */
export function toJsonValue(body: string): unknown {
  try {
    return JSON.parse(body)
  } catch {
    return undefined
  }
}

/**
 * Converts a provider's time (Unix milliseconds or ISO 8601) to ISO 8601. Other values are returned unchanged; the row
 * check rejects them.
 */
export function toIso(value: unknown): unknown {
  if (typeof value === 'string') return toCachedIso(value)
  return typeof value === 'number' ? toIsoOr(value) : (value ?? null)
}

function toIsoOr<T extends string | number>(value: T): T | string {
  const time = new Date(value)
  return Number.isNaN(time.getTime()) ? value : time.toISOString()
}

const toCachedIso = remembering<string>(toIsoOr)

/** Converts a decimal string to a number. Other values are returned unchanged for the row check. */
export function toNumber(value: unknown): unknown {
  return typeof value === 'string' && /^-?\d+(\.\d+)?(e[+-]?\d+)?$/i.test(value) ? Number(value) : (value ?? null)
}

const SEPARATED = /^\d{1,3}(?:([ ,.'’])\d{3})(?:\1\d{3})*$/u
const SHORTENED = /^(\d+)(?:[.,](\d{1,2}))? ?([KMB])$/i
const THOUSANDS = { k: 3, m: 6, b: 9 } as const

/**
 * Parses a count in human notation: plain digits, groups of three with one kind of separator, or shortened as in
 * `1.2K`. A separator is any kind of space, a comma, a full stop or an apostrophe. Returns undefined if the whole text
 * is not such a number: part of a number would be a different number.
 */
export function parseCount(text: string): number | undefined {
  const plain = text.replaceAll(/\s/gu, ' ').trim()
  if (/^\d+$/.test(plain)) return toSafe(Number(plain))
  if (SEPARATED.test(plain)) return toSafe(Number(plain.replaceAll(/\D/g, '')))
  const [, integer, fraction = '', unit = ''] = SHORTENED.exec(plain) ?? []
  if (integer === undefined) return undefined
  return toSafe(Number(`${integer}.${fraction}e${THOUSANDS[unit.toLowerCase() as keyof typeof THOUSANDS]}`))
}

const toSafe = (count: number) => (Number.isSafeInteger(count) ? count : undefined)
