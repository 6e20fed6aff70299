import { z } from 'zod'
import { tokenPrices } from '../../shared/datasets/token-prices.ts'
import { daoTreasury } from '../../shared/datasets/treasury.ts'
import {
  FLOW_KINDS,
  toDayPrices,
  toFlowAssets,
  toFlowDays,
  treasuryFlows,
} from '../../shared/datasets/treasury-flows.ts'
import { DAY_MS } from '../../shared/intervals.ts'
import type { Database } from '../../shared/store/store.ts'
import type { CacheReader, Sized } from '../cache/cache.ts'
import { type AssetFlows, type AssetKey, FLOW_SIDES, toAssetKey } from './sums.ts'

/** The datasets whose change events change sums of transfers: prices value them. */
export const FLOW_SOURCES = [treasuryFlows, tokenPrices, daoTreasury] as const

/** The transfers of one or more DAOs by day. */
interface CachedFlows extends Sized {
  readonly byDao: ReadonlyMap<number, readonly AssetFlows[]>
}

const dayRow = z.object({
  dao: z.number(),
  chain: z.string(),
  contract: z.string(),
  symbol: z.string(),
  decimals: z.int().nullable(),
  days: z.array(z.int()),
  kinds: z.array(z.int()),
  sides: z.array(z.int()),
  swapped: z.array(z.coerce.boolean()),
  units: z.array(z.string()),
  transfers: z.array(z.int()),
})

const SIDE = `indexOf(['${FLOW_SIDES.join("', '")}'], multiIf(direction = 'internal', 'internal', direction = 'in' OR leg = 'in', 'in', 'out')) - 1`
const KIND = `indexOf(['${FLOW_KINDS.join("', '")}'], kind) - 1`

/** SQL for the transfers of DAOs by asset, and within an asset by day, kind, side and whether they are part of a swap. */
const toDaysSql = (isWanted: string, isSelected: string) => `
SELECT dao, chain, contract_address AS contract, argMax(symbol, last_at) AS symbol, max(decimals) AS decimals,
  groupArray(toUInt32(day)) AS days, groupArray(${KIND}) AS kinds, groupArray(${SIDE}) AS sides,
  groupArray(direction = 'swap') AS swapped, groupArray(toString(base_units)) AS units, groupArray(transfers) AS transfers
FROM (${toFlowDays(isWanted)})
WHERE ${isSelected}
GROUP BY dao, chain, contract_address`

const priceRow = z.object({
  chain: z.string(),
  contract: z.string(),
  days: z.array(z.int()),
  prices: z.array(z.number()),
})

/** Longer lists of assets do not fit in a request: the statement then selects them itself. */
const MOST_ASSETS = 500

/** SQL like that of `toFlowAssets`, with its parameters, for a list of assets; undefined without a list or if it is too long. */
export function toNamedAssets(assets: readonly AssetKey[] | undefined) {
  if (assets === undefined || assets.length > MOST_ASSETS) return undefined
  return {
    sql: 'SELECT pair.1 AS chain, pair.2 AS contract_address FROM (SELECT arrayJoin(arrayZip({asset_chains: Array(String)}, {asset_contracts: Array(String)})) AS pair)',
    params: {
      asset_chains: assets.map(({ chain }) => chain),
      asset_contracts: assets.map(({ contract }) => contract),
    },
  }
}

/** Estimated memory of an entry, in bytes. */
const [FLOW_BYTES, ASSET_BYTES] = [160, 400]

/** Prices of assets by day, in days since 1970. */
async function readPrices(
  db: Database,
  assets: readonly z.infer<typeof dayRow>[],
  ofOwners: { readonly isOwner: string; readonly params: Readonly<Record<string, unknown>> },
): Promise<ReadonlyMap<string, ReadonlyMap<number, number>>> {
  if (assets.length === 0) return new Map()
  const named = toNamedAssets(assets)
  const rows = await db.rows({
    name: 'treasury-flow-prices',
    sql: `SELECT chain, contract_address AS contract, groupArray(toUInt32(day)) AS days, groupArray(assumeNotNull(price_usd)) AS prices
FROM (${toDayPrices(named?.sql ?? toFlowAssets(ofOwners.isOwner))})
GROUP BY chain, contract_address`,
    params: named?.params ?? ofOwners.params,
    settings: { max_threads: 1 },
    schema: priceRow,
  })
  const toPrices = ({ days, prices }: z.infer<typeof priceRow>) =>
    new Map(days.map((day, at) => [day, prices[at] ?? Number.NaN]))
  return new Map(rows.map((row) => [toAssetKey(row), toPrices(row)]))
}

function toAssetFlows(
  { chain, contract, symbol, decimals, ...row }: z.infer<typeof dayRow>,
  prices: ReadonlyMap<number, number> | undefined,
): AssetFlows {
  const days = row.days.map((day, at) => ({
    day: day * DAY_MS,
    kind: FLOW_KINDS[row.kinds[at] ?? 0] ?? 'spam',
    side: FLOW_SIDES[row.sides[at] ?? 0] ?? 'in',
    isSwapped: row.swapped[at] ?? false,
    units: BigInt(row.units[at] ?? 0),
    transfers: row.transfers[at] ?? 0,
    priceUsd: prices?.get(day) ?? null,
  }))
  return { chain, contract, symbol, decimals, days }
}

async function readFlows(
  db: Database,
  select: {
    readonly isOwner: string
    /** Conditions on the day and on the kind. */
    readonly isInRange?: string
    readonly isSelected?: string
    readonly params: Readonly<Record<string, unknown>>
  },
): Promise<CachedFlows> {
  const { isOwner, isInRange = 'true', isSelected = 'true', params } = select
  const rows = await db.rows({
    name: 'treasury-flow-days',
    sql: toDaysSql(`dao ${isOwner} AND ${isInRange}`, isSelected),
    params,
    settings: { max_threads: 1 },
    schema: dayRow,
  })
  const prices = await readPrices(db, rows, { isOwner, params })
  const byDao = new Map<number, AssetFlows[]>()
  for (const row of rows) {
    const own = byDao.get(row.dao) ?? []
    byDao.set(row.dao, own)
    own.push(toAssetFlows(row, prices.get(toAssetKey(row))))
  }
  const size = rows.reduce((sum, { days }) => sum + ASSET_BYTES + FLOW_BYTES * days.length, 0)
  return { size, byDao }
}

const sources = { datasets: FLOW_SOURCES.map(({ name }) => name) }

/**
 * All transfers of a DAO by asset and day, without spam. All sums are computed from these transfers until a source
 * changes.
 */
export async function loadFlows(reader: CacheReader, dao: number): Promise<readonly AssetFlows[]> {
  const load = (db: Database) => readFlows(db, { isOwner: '= {dao: UInt64}', params: { dao } })
  const { byDao } = await reader.cache.get(`treasury-flows of ${dao}`, sources, load, reader)
  return byDao.get(dao) ?? []
}

/** Income and spending of all DAOs since the start of a day in Unix milliseconds, by asset and day. */
export async function loadIncomeAndSpending(
  reader: CacheReader,
  from: number,
): Promise<ReadonlyMap<number, readonly AssetFlows[]>> {
  const load = (db: Database) =>
    readFlows(db, {
      isOwner: 'IS NOT NULL',
      isInRange: 'day >= toDate({from: UInt32})',
      isSelected: "kind IN ('income', 'spending')",
      params: { from: from / DAY_MS },
    })
  return (await reader.cache.get(`treasury-flows since ${from}`, sources, load, reader)).byDao
}
