import { z } from 'zod'
import { indexPoints, SLOT_PRICES } from '../../shared/datasets/index-points.ts'
import { DAY_MS, INTERVAL_SECONDS } from '../../shared/intervals.ts'
import type { BasketIndex, Composition } from '../../shared/registry/index-records.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import { toStaleAt } from '../../shared/store/freshness.ts'
import { knownAt } from '../lists/past-quotes.ts'

const SLOT_MS = INTERVAL_SECONDS['5m'] * 1000
const STALE_MS = toStaleAt(0, indexPoints)

/** Slots with a value of the index under one composition: the first and the last, by their starts in Unix milliseconds. */
export interface Run {
  readonly composition: Composition
  readonly first: number
  readonly last: number
}

/** A slot with a value of the index: its start, its composition, and the time of its newest price. */
interface Slot {
  readonly at: number
  readonly composition: Composition
  readonly asOf: number
}

const slot = z.object({ at: z.int(), composition: z.string(), asOf: z.int() })
const run = z.object({ composition: z.string(), first: z.int(), last: z.int(), base: z.int() })

const findById = ({ compositions }: BasketIndex, id: string) => compositions.find((one) => one.id === id)

/**
 * The newest slot with a value, or with `asOf` the newest that was known then and not stale. Nothing where there is none, or one
 * of a composition that the registry no longer has: it is about to be computed again.
 * @throws DataError `storage`
 */
export async function findSlot(
  db: Database,
  index: BasketIndex,
  { now, asOf }: { readonly now: number; readonly asOf: number | undefined },
): Promise<Slot | undefined> {
  const isKnown =
    asOf === undefined
      ? "observed_at <= fromUnixTimestamp64Milli({at: Int64}, 'UTC')"
      : knownAt('observed_at', STALE_MS)
  const [found] = await db.rows({
    name: 'index-slot',
    sql: `SELECT toUnixTimestamp64Milli(created_at) AS at, composition, toUnixTimestamp64Milli(observed_at) AS asOf
FROM index_points FINAL
WHERE index_key = {index: UInt64} AND ${isKnown}
ORDER BY index_key DESC, created_at DESC
LIMIT 1`,
    params: { index: index.key, at: asOf ?? now },
    schema: slot,
  })
  const composition = found && findById(index, found.composition)
  return found && composition && { ...found, composition }
}

/**
 * How the index came from its value 24 hours before a slot to that of the slot, in order; the first run begins with the slot 24
 * hours before, or with the last one before that which was not stale. Empty where there is none.
 * @throws DataError `storage`
 */
export async function readRuns(db: Database, index: BasketIndex, at: number): Promise<readonly Run[]> {
  const found = await db.rows({
    name: 'index-runs',
    sql: `SELECT composition, toUnixTimestamp64Milli(min(created_at)) AS first, toUnixTimestamp64Milli(max(created_at)) AS last,
  toUnixTimestamp64Milli(maxIf(created_at, created_at <= fromUnixTimestamp64Milli({dayAgo: Int64}, 'UTC'))) AS base
FROM index_points FINAL
WHERE index_key = {index: UInt64} AND created_at <= fromUnixTimestamp64Milli({at: Int64}, 'UTC')
  AND created_at > fromUnixTimestamp64Milli({dayAgo: Int64} - ${STALE_MS}, 'UTC')
GROUP BY composition
ORDER BY first`,
    params: { index: index.key, at, dayAgo: at - DAY_MS },
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

/** The price of a token in a slot, by its key and the slot's start; undefined where it has none there. */
export type PriceIn = (token: number, slot: number) => number | undefined

/**
 * Prices in some slots as the index is made of them.
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
