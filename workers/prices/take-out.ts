import { z } from 'zod'
import { toBatches } from '../../shared/group-by.ts'
import { toMs } from '../../shared/intervals.ts'
import { type Database, toAltered } from '../../shared/store/store.ts'
import type { TakenOut } from '../job/define-job.ts'
import type { Quote } from './rule.ts'
import { OWN_MS, type StoredSuspect, writeSuspects } from './state.ts'

/** Stored prices that two other providers contradict: those of a provider since a slot. */
export interface Wrong {
  readonly token: number
  readonly provider: string
  readonly since: number
  readonly others: readonly Quote[]
}

const storedRow = z.object({
  token: z.number(),
  observed_at: z.string(),
  price: z.number(),
  volume_24h: z.number().nullable(),
  market_cap: z.number().nullable(),
  total_supply: z.number().nullable(),
  circulating_supply: z.number().nullable(),
})

/** What a slot has found wrong: stored prices, and suspects that an earlier attempt has not removed completely. */
export interface WrongPrices {
  readonly found: readonly Wrong[]
  readonly unfinished: readonly StoredSuspect[]
}

type WrongRow = Pick<z.infer<typeof storedRow>, 'observed_at' | 'price'>

/**
 * Removes wrong prices from the series, the roll-ups and the newest quotes, and stores them as suspects first. If a run
 * is interrupted, the next run finds its suspects and completes the removal.
 */
export async function takeOutPrices(
  db: Database,
  { found, unfinished }: WrongPrices,
  slot: number,
): Promise<readonly TakenOut[]> {
  if (found.length === 0 && unfinished.length === 0) return []
  const wrong = (await Promise.all(found.map((one) => findStored(db, one, slot)))).flat()
  await writeSuspects(db, wrong, { state: 'taking_out', decidedSlot: slot })
  const all = [...unfinished, ...wrong]
  await removePrices(db, all)
  await writeSuspects(db, all, { state: 'taken_out', decidedSlot: slot })
  return all.map(({ token, provider, at }) => ({ entity: token, provider, at }))
}

async function findStored(db: Database, wrong: Wrong, slot: number): Promise<StoredSuspect[]> {
  const { token, provider, since } = wrong
  const rows = await db.rows({
    name: 'wrong-prices',
    sql: `SELECT p.token AS token, p.observed_at AS observed_at, p.price AS price, p.volume_24h AS volume_24h,
  p.market_cap AS market_cap, p.total_supply AS total_supply, p.circulating_supply AS circulating_supply
FROM (SELECT token, observed_at, price, volume_24h, market_cap, total_supply, circulating_supply FROM token_prices FINAL WHERE ${WITHIN}) AS p
INNER JOIN (SELECT token, observed_at FROM price_sources FINAL WHERE ${WITHIN} AND provider = {provider: String}) AS s
  ON s.token = p.token AND s.observed_at = p.observed_at
ORDER BY observed_at`,
    params: { token, provider, from: since - OWN_MS, to: slot - OWN_MS },
    schema: storedRow,
  })
  return rows.map((row) => toTakenOut(wrong, row))
}

/** A stored price that was found wrong, as a suspect. */
export function toTakenOut({ token, provider, others }: Wrong, row: WrongRow): StoredSuspect {
  const named = others.map((one) => `${one.provider} ${one.price}`).join(', ')
  const at = toMs(row.observed_at)
  return {
    ...{ token, provider, others, slot: at, at, price: row.price },
    ...{ isWithheld: false, row: { ...row, is_latest: false }, lastPrice: null, lastAt: null },
    reason: `stored price not confirmed: ${provider} ${row.price}, ${named}`,
  }
}

const WITHIN = `token = {token: UInt64} AND observed_at >= fromUnixTimestamp64Milli({from: Int64}, 'UTC')
  AND observed_at < fromUnixTimestamp64Milli({to: Int64}, 'UTC')`

/** Prices per statement: few statements for a replay of a day, and short lists of parameters. */
const PRICES_PER_STATEMENT = 500

/** SQL: removed prices as tuples of token and time in Unix milliseconds. */
const REMOVED = 'arrayZip({tokens: Array(UInt64)}, {times: Array(Int64)})'
const isRemoved = (at: string) => `token IN {tokens: Array(UInt64)} AND has(${REMOVED}, (token, ${at}))`
const OBSERVED = 'toUnixTimestamp64Milli(observed_at)'
const toMoment = (name: string) => `fromUnixTimestamp64Milli({${name}: Int64}, 'UTC')`
const toBucketStartOf = (second: string) => `${second} - (${second} - 345600) % interval_seconds`

/** The roll-up's view as a query over the stored rows of the buckets of removed prices, without these prices. */
const ROLLUPS = `INSERT INTO token_price_rollups (token, interval_seconds, bucket_at, rank, price_code, volume_24h_code, market_cap_code,
  total_supply, circulating_supply)
WITH
  toInt64(toUnixTimestamp(observed_at)) AS second,
  ${toBucketStartOf('second')} AS bucket
SELECT token, interval_seconds, toDateTime(bucket, 'UTC') AS bucket_at,
  max(bitShiftLeft(toUInt64((bucket + interval_seconds) * 1000 - ${OBSERVED}), 31) + version) AS rank,
  argMin(price_code, observed_at), argMin(tuple(volume_24h_code), observed_at).1, argMin(tuple(market_cap_code), observed_at).1,
  argMin(tuple(total_supply), observed_at).1, argMin(tuple(circulating_supply), observed_at).1
FROM
(
  SELECT token, observed_at, version, price_code, volume_24h_code, market_cap_code, total_supply, circulating_supply
  FROM token_prices FINAL
  WHERE token IN {tokens: Array(UInt64)} AND NOT has(${REMOVED}, (token, ${OBSERVED}))
    AND observed_at >= ${toMoment('first')} - INTERVAL 7 DAY AND observed_at < ${toMoment('last')} + INTERVAL 7 DAY
)
ARRAY JOIN [1800, 3600, 14400, 86400, 604800] AS interval_seconds
WHERE (token, interval_seconds, bucket) IN
(
  SELECT one.1, interval_seconds, ${toBucketStartOf('intDiv(one.2, 1000)')}
  FROM (SELECT arrayJoin(${REMOVED}) AS one) ARRAY JOIN [1800, 3600, 14400, 86400, 604800] AS interval_seconds
)
GROUP BY token, interval_seconds, bucket`

/**
 * Removes prices from all tables. Each step may be repeated. The observations themselves are removed last, because the
 * others read what remains.
 */
export async function removePrices(
  db: Database,
  prices: readonly Pick<StoredSuspect, 'token' | 'at'>[],
): Promise<void> {
  // In the order of time, because a statement reads the prices of its tokens within a week of its first and last one.
  for (const batch of toBatches(
    prices.toSorted((a, b) => a.at - b.at),
    PRICES_PER_STATEMENT,
  ))
    await removeBatch(db, batch)
}

async function removeBatch(db: Database, prices: readonly Pick<StoredSuspect, 'token' | 'at'>[]): Promise<void> {
  const params = { tokens: prices.map(({ token }) => token), times: prices.map(({ at }) => at) }
  const remove = (table: string, at: string) =>
    db.command({
      name: 'take-out-price',
      sql: `ALTER TABLE ${toAltered(table, db.cluster)} DELETE WHERE ${isRemoved(at)}`,
      params,
      settings: { mutations_sync: 2 },
    })
  const [first = 0, last = 0] = [prices[0]?.at, prices.at(-1)?.at]
  await remove(
    'token_price_rollups',
    '(toInt64(toUnixTimestamp(bucket_at)) + interval_seconds) * 1000 - toInt64(bitShiftRight(rank, 31))',
  )
  await db.command({ name: 'take-out-price', sql: ROLLUPS, params: { ...params, first, last } })
  for (const table of ['token_quotes', 'price_sources', 'token_prices']) await remove(table, OBSERVED)
}
