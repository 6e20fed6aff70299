import { z } from 'zod'
import { IS_WHOLE } from '../../shared/datasets/treasury.ts'
import { DataError } from '../../shared/errors.ts'
import { DAY_MS, HOUR_MS } from '../../shared/intervals.ts'
import type { Database } from '../../shared/store/store.ts'
import type { PlausibilityCheck } from '../job/define-job.ts'

/**
 * A value that differs from the last one by more than this factor is not stored on one provider's evidence. A wrong
 * price of one asset or wrong decimals usually give more; a real change of a treasury or protocol in a day is less.
 */
const MOST_TIMES = 5
/** Two providers agree if their values differ by at most this share of the larger one. */
const SAME_SHARE = 0.2

/** The checked value, and the table of the last stored values. */
interface CheckedValue {
  /** Name in messages. */
  readonly what: string
  readonly table: string
  /** Columns of the table and members of the rows. */
  readonly entity: string
  readonly value: string
  /** SQL condition on the stored values. */
  readonly where?: string
  /**
   * Longest age difference to the stored value for the check. A value that persists longer than this is therefore
   * accepted.
   */
  readonly believedMs: number
  /** The error code decides whether the provider is retried in the same slot. */
  readonly code: 'provider_malformed' | 'provider_unknown'
}

const last = z.object({ entity: z.number(), value: z.number(), at: z.int() })
type Last = z.infer<typeof last>

/**
 * Reads the last stored values of entities once, and compares the values of a run's providers with them. A value that
 * is over 5 times larger or smaller is not stored: the entity is refused, and the next provider is queried. The value is
 * accepted if that provider agrees within 20 %, or if it persists for `believedMs` without any other value being
 * stored.
 */
const openCheckOf = (checkedValue: CheckedValue) => async (db: Database, entities: readonly number[]) => {
  const { what, table, entity, value, where = 'true' } = checkedValue
  const stored = await db.rows({
    name: `last-${what}`,
    sql: `SELECT ${entity} AS entity, argMax(${value}, observed_at) AS value, toUnixTimestamp64Milli(max(observed_at)) AS at
FROM ${table} FINAL WHERE ${entity} IN {entities: Array(UInt64)} AND ${value} > 0 AND ${where} GROUP BY ${entity}`,
    params: { entities },
    schema: last,
  })
  return createCheck(checkedValue, stored)
}

/** A treasury provider bills each call and returns the same value on a retry, so it is not retried in the slot. */
export const openTreasuryCheck = openCheckOf({
  ...{ what: 'treasury', table: 'dao_treasuries', entity: 'dao', value: 'value_usd', where: IS_WHOLE },
  ...{ believedMs: 3 * DAY_MS, code: 'provider_unknown' },
})

export const openTvlCheck = openCheckOf({
  ...{ what: 'value locked', table: 'protocol_tvl', entity: 'dao', value: 'tvl_usd' },
  ...{ believedMs: 6 * HOUR_MS, code: 'provider_unknown' },
})

/** Creates the check from values already read; `at` is in Unix milliseconds. */
function createCheck(
  { what, entity, value, believedMs, code }: CheckedValue,
  stored: readonly Last[],
): PlausibilityCheck {
  const lastOf = new Map(stored.map((one) => [one.entity, one]))
  const implausible = new Map<number, number[]>()
  return (provider, checked, { log, onRejected }) => {
    const refused = new Map(checked.refused)
    const rows = checked.rows.filter((row) => {
      const [key, now] = [Number(Reflect.get(row, entity)), Number(Reflect.get(row, value))]
      const before = lastOf.get(key)
      const at = Date.parse(String(Reflect.get(row, 'observed_at')))
      if (before === undefined || isNear(now, before.value) || Math.abs(at - before.at) > believedMs) return true
      const implausibleValues = implausible.get(key) ?? []
      if (implausibleValues.some((earlier) => isSame(earlier, now))) return true
      implausible.set(key, [...implausibleValues, now])
      const since = new Date(before.at).toISOString()
      const times = toTimes(now / before.value)
      const reason = `${provider}: a ${what} of ${now} is ${times} the last ${what}, ${before.value} at ${since}`
      refused.set(key, new DataError(code, reason))
      log.warn({ provider, [entity]: key, [value]: now, last: before.value, since }, `${what} not believed`)
      return false
    })
    const count = checked.rows.length - rows.length
    if (count > 0) onRejected?.(`${provider}: ${value}: over ${MOST_TIMES} times, or under a fifth of, the last`, count)
    return { ...checked, rows, rejected: checked.rejected + count, refused }
  }
}

const isNear = (value: number, before: number) => value < before * MOST_TIMES && value > before / MOST_TIMES

const isSame = (a: number, b: number) => Math.abs(a - b) <= SAME_SHARE * Math.max(a, b)

/** Formats a factor: `100x`, or `1/100x` for a fall. */
function toTimes(ratio: number): string {
  if (ratio === 0) return '0x'
  const toText = (times: number) => (times < 10 ? times.toFixed(1) : Math.round(times))
  return ratio >= 1 ? `${toText(ratio)}x` : `1/${toText(1 / ratio)}x`
}
