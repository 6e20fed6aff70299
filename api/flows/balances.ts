import { z } from 'zod'
import { IS_WHOLE, NATIVE_COIN } from '../../shared/datasets/treasury.ts'
import { isWallet } from '../../shared/datasets/treasury-flows.ts'
import { DAY_MS, isWithin, type TimeRange } from '../../shared/intervals.ts'
import type { Dao } from '../../shared/registry/entities.ts'
import type { Database } from '../../shared/store/store.ts'
import { type AssetKey, toAssetKey } from './sums.ts'

/** A day of a treasury. */
interface BalanceDay {
  readonly source: string
  /** Whether every holding of every wallet is known with its address. */
  readonly isWhole: boolean
}

/** Balances of a DAO's wallets at the starts of days, by asset. */
export interface Balances {
  readonly days: ReadonlyMap<number, BalanceDay>
  readonly assets: ReadonlyMap<
    string,
    AssetKey & { readonly symbol: string; readonly byDay: ReadonlyMap<number, number> }
  >
}

const dayRow = z.object({ day: z.int(), source: z.string(), isWhole: z.coerce.boolean() })
const assetRow = z.object({
  chain: z.string(),
  contract: z.string(),
  symbol: z.string(),
  days: z.array(z.int()),
  quantities: z.array(z.number()),
})

const DAY = 'toUInt32(toDate(observed_at))'
const ROWS = `FROM dao_treasuries FINAL WHERE dao = {dao: UInt64} AND ${isWithin('observed_at')}`

/**
 * The balances of the DAO's wallets on the days of a range. Transfers of its other addresses, which collect revenue or
 * have a separate budget, are not transfers of the treasury.
 */
export async function readBalances(db: Database, dao: Dao, range: TimeRange): Promise<Balances> {
  const wallets = dao.treasuries.filter(isWallet).map(toPlace)
  const params = { dao: dao.key, ...range, wallets, has_others: wallets.length < dao.treasuries.length }
  const [days, assets] = await Promise.all([
    db.rows({
      name: 'treasury-balance-days',
      sql: `SELECT ${DAY} AS day, source, notEmpty(holdings) AND ${IS_WHOLE} AND (arrayAll(one -> isNotNull(one.contract), holdings))
  AND (NOT {has_others: Bool} OR arrayAll(one -> isNotNull(one.address), holdings)) AS isWhole ${ROWS}`,
      params,
      schema: dayRow,
    }),
    db.rows({
      name: 'treasury-balances',
      sql: `SELECT chain, contract, any(symbol) AS symbol, groupArray(day) AS days, groupArray(quantity) AS quantities FROM
(
  SELECT ${DAY} AS day, one.chain AS chain, if(one.contract = '${NATIVE_COIN}', '', assumeNotNull(one.contract)) AS contract,
    any(one.symbol) AS symbol, sum(one.quantity) AS quantity
  FROM (SELECT observed_at, holdings ${ROWS}) ARRAY JOIN holdings AS one
  WHERE isNotNull(one.contract) AND (isNull(one.address) OR has({wallets: Array(String)}, concat(one.chain, '/', lower(assumeNotNull(one.address)))))
  GROUP BY day, chain, contract
)
GROUP BY chain, contract`,
      params,
      schema: assetRow,
    }),
  ])
  return {
    days: new Map(days.map(({ day, ...one }) => [day * DAY_MS, one])),
    assets: new Map(
      assets.map((row) => {
        const byDay = new Map(row.days.map((day, at) => [day * DAY_MS, row.quantities[at] ?? 0]))
        return [toAssetKey(row), { chain: row.chain, contract: row.contract, symbol: row.symbol, byDay }]
      }),
    ),
  }
}

const toPlace = ({ chain, address }: Dao['treasuries'][number]) => `${chain}/${address.toLowerCase()}`
