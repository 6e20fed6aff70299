import { z } from 'zod'
import { DataError } from '../../shared/errors.ts'
import { remembering } from '../../shared/memo.ts'

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
