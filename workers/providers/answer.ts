import { z } from 'zod'
import { DataError } from '../../shared/errors.ts'
import { EARLIEST_MS, END_OF_TIME } from '../../shared/intervals.ts'
import { remembering } from '../../shared/memo.ts'
import { type Candidate, LEFT_OUT } from '../job/define-job.ts'

/** A member that is passed on as sent: the dataset's row check judges it, so that one bad value costs one row. */
export const asSent = z.unknown().optional()

/**
 * The answer in the shape that the provider documents.
 * @throws DataError `provider_malformed` naming the provider, the path and the first places that differ.
 */
export function checkAnswer<T>(schema: z.ZodType<T>, answer: unknown, source: { provider: string; path: string }): T {
  const checked = schema.safeParse(answer)
  if (checked.success) return checked.data
  const places = checked.error.issues
    .slice(0, 3)
    .map(({ path, message }) => `${path.join('.') || 'answer'}: ${message}`)
  throw new DataError('provider_malformed', `${source.provider} ${source.path}: ${places.join('; ')}`)
}

/** What an unreadable element becomes: the members of such objects may all be absent. */
const UNREADABLE = Object.freeze({})

export const isUnreadable = (element: object): boolean => element === UNREADABLE

/**
 * A list of objects whose members may all be absent. An element that cannot be read costs only itself: it has no members,
 * and the reader of the list reports it. A list of which nothing can be read is not what the provider documents.
 */
export function listOf<T extends z.ZodObject>(element: T) {
  return z.array(z.unknown()).transform((values, context): z.output<T>[] => {
    const read = values.map((value) => element.safeParse(value))
    addIssueOfAll(read, context)
    return read.map(({ data }) => data ?? (UNREADABLE as z.output<T>))
  })
}

/** The same for a map of such objects. */
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

/** The value where the schema takes it, else null: an optional value that cannot be is an absent one. */
export function orNull<T>(schema: z.ZodType<T>, value: unknown): T | null {
  const read = schema.safeParse(value)
  return read.success ? read.data : null
}

/** Whether a value is a time at which something may have been observed, in Unix milliseconds. */
export const isTime = (ms: unknown): ms is number => typeof ms === 'number' && ms >= EARLIEST_MS && ms < END_OF_TIME

/**
 * A part of an answer that cannot be read, for the row check to count by its reason. `known` are the members that are known,
 * such as the entity's key.
 */
export function toUnreadable<Row>(reason: string, known: { readonly [K in keyof Row]?: unknown } = {}): Candidate<Row> {
  return { ...known, [LEFT_OUT]: [reason] } as Candidate<Row>
}

/** What it means that a provider has nothing under an id; `path` names the id. */
export function toUnknown(provider: string, path: string): DataError {
  return new DataError('provider_unknown', `${provider} ${path}: it knows no such thing`)
}

/** An error's body as JSON; undefined where it is a gateway's page. */
export function toJsonValue(body: string): unknown {
  try {
    return JSON.parse(body)
  } catch {
    return undefined
  }
}

/** A provider's time (Unix milliseconds or ISO 8601) in ISO 8601; anything else as it is, for the row check to reject. */
export function toIso(value: unknown): unknown {
  if (typeof value === 'string') return toKnownIso(value)
  return typeof value === 'number' ? toIsoOr(value) : (value ?? null)
}

function toIsoOr<T extends string | number>(value: T): T | string {
  const time = new Date(value)
  return Number.isNaN(time.getTime()) ? value : time.toISOString()
}

const toKnownIso = remembering<string>(toIsoOr)

/** A number that arrives as a decimal string; anything else as it is, for the row check to judge. */
export function toNumber(value: unknown): unknown {
  return typeof value === 'string' && /^-?\d+(\.\d+)?(e[+-]?\d+)?$/i.test(value) ? Number(value) : (value ?? null)
}

const SEPARATED = /^\d{1,3}(?:([ ,.'’])\d{3})(?:\1\d{3})*$/u
const SHORTENED = /^(\d+)(?:[.,](\d{1,2}))? ?([KMB])$/i
const THOUSANDS = { k: 3, m: 6, b: 9 } as const

/**
 * A count as people write it: plain digits, groups of three with one kind of separator, or shortened as in `1.2K`. A
 * separator is any kind of space, a comma, a full stop or an apostrophe. Undefined for a text that is not as a whole such
 * a number: a part of a number is another number.
 */
export function parseCount(text: string): number | undefined {
  const plain = text.replaceAll(/\s/gu, ' ').trim()
  if (/^\d+$/.test(plain)) return toSafe(Number(plain))
  if (SEPARATED.test(plain)) return toSafe(Number(plain.replaceAll(/\D/g, '')))
  const [, whole, fraction = '', unit = ''] = SHORTENED.exec(plain) ?? []
  if (whole === undefined) return undefined
  return toSafe(Number(`${whole}.${fraction}e${THOUSANDS[unit.toLowerCase() as keyof typeof THOUSANDS]}`))
}

const toSafe = (count: number) => (Number.isSafeInteger(count) ? count : undefined)
