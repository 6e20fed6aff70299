import { z } from 'zod'
import { indexPoints, SLOT_PRICES } from '../../shared/datasets/index-points.ts'
import { DAY_MS, INTERVAL_SECONDS } from '../../shared/intervals.ts'
import type { BasketIndex, Composition } from '../../shared/registry/index-records.ts'
import { type Database, toStaleAt } from '../../shared/store/store.ts'
import { isCurrentAt } from '../lists/lists.ts'

const SLOT_MS = INTERVAL_SECONDS['5m'] * 1000
const STALE_MS = toStaleAt(0, indexPoints)

/**
 * Consecutive slots with an index value under one composition: start of the first and last slot in Unix milliseconds.
 */
export interface Run {
  readonly composition: Composition
  readonly first: number
  readonly last: number
}

/** A slot with an index value: its start, its composition, and the time of its newest price. */
interface Slot {
  readonly at: number
  readonly composition: Composition
  readonly asOf: number
}

const slot = z.object({ at: z.int(), composition: z.string(), asOf: z.int() })
const run = z.object({ composition: z.string(), first: z.int(), last: z.int(), base: z.int() })

const findById = ({ compositions }: BasketIndex, id: string) => compositions.find((one) => one.id === id)

/**
 * The newest slot with a value; with `asOf`, the newest that was known and not stale at that time. Returns undefined if
 * there is none, or if the registry no longer contains its composition: the slot is about to be computed again.
 * @throws DataError `storage`
 */
export async function findSlot(
  db: Database,
  index: BasketIndex,
  { now, asOf }: { readonly now: number; readonly asOf: number | undefined },
): Promise<Slot | undefined> {
  const isInTime =
    asOf === undefined
      ? "observed_at <= fromUnixTimestamp64Milli({at: Int64}, 'UTC')"
      : isCurrentAt('observed_at', STALE_MS)
  const [found] = await db.rows({
    name: 'index-slot',
    sql: `SELECT toUnixTimestamp64Milli(created_at) AS at, composition, toUnixTimestamp64Milli(observed_at) AS asOf
FROM index_points FINAL
WHERE index_key = {index: UInt64} AND ${isInTime}
ORDER BY index_key DESC, created_at DESC
LIMIT 1`,
    params: { index: index.key, at: asOf ?? now },
    schema: slot,
  })
  const composition = found && findById(index, found.composition)
  return found && composition && { ...found, composition }
}

/** How much earlier than its start the first slot of several days may be: old history may have one value a day. */
const MOST_EARLIER_MS = DAY_MS

/**
 * The runs of the index from some days before a slot up to the slot, in order. The first run begins with the slot at that
 * time, or with the last earlier one: of one day that was not stale, of several days from the day before. Empty if there is none.
 * @throws DataError `storage`
 */
export async function readRuns(db: Database, index: BasketIndex, at: number, days = 1): Promise<readonly Run[]> {
  const start = at - days * DAY_MS
  const found = await db.rows({
    name: 'index-runs',
    sql: `SELECT composition, toUnixTimestamp64Milli(min(created_at)) AS first, toUnixTimestamp64Milli(max(created_at)) AS last,
  toUnixTimestamp64Milli(maxIf(created_at, created_at <= fromUnixTimestamp64Milli({start: Int64}, 'UTC'))) AS base
FROM index_points FINAL
WHERE index_key = {index: UInt64} AND created_at <= fromUnixTimestamp64Milli({at: Int64}, 'UTC')
  AND created_at > fromUnixTimestamp64Milli({earliest: Int64}, 'UTC')
GROUP BY composition
ORDER BY first`,
    params: { index: index.key, at, start, earliest: start - (days === 1 ? STALE_MS : MOST_EARLIER_MS) },
    schema: run,
  })
  const base = Math.max(0, ...found.map((one) => one.base))
  if (base === 0) return []
  const runs = found
    .filter(({ last }) => last >= base)
    .map(({ first, last, ...one }) => ({
      composition: findById(index, one.composition),
      first: Math.max(first, base),
      last,
    }))
  return runs.every((one): one is Run => one.composition !== undefined) ? runs : []
}

const priced = z.object({ token: z.number(), at: z.int(), price: z.number() })

/** The price of a token (by key) in the slot with the given start; undefined if it has none there. */
export type PriceIn = (token: number, slot: number) => number | undefined

/**
 * Reads the slot prices that the index is computed from.
 * @throws DataError `storage`
 */
export async function readSlotPrices(
  db: Database,
  tokens: readonly number[],
  slots: readonly number[],
): Promise<PriceIn> {
  const rows = await db.rows({
    name: 'index-slot-prices',
    sql: `SELECT token, toUnixTimestamp(slot) * 1000 AS at, first_price AS price FROM (${SLOT_PRICES}) WHERE has({slots: Array(Int64)}, at)`,
    params: { tokens, slots, from: Math.min(...slots), to: Math.max(...slots) + SLOT_MS },
    schema: priced,
  })
  const prices = new Map(rows.map(({ token, at, price }) => [`${token} ${at}`, price]))
  return (token, at) => prices.get(`${token} ${at}`)
}
