import { daoTreasury, HOLDING_KINDS } from '../../../../../shared/datasets/treasury.ts'
import { dailyHolding, selectDailyHoldings, toChainParams } from '../../../../../shared/datasets/treasury-holdings.ts'
import { END_OF_TIME } from '../../../../../shared/intervals.ts'
import { answerRecords, defineKeyset, inTables, type SortPart, toOwned } from '../../../../formats/formats.ts'
import { oneOf, page, time } from '../../../../parameters/kinds.ts'
import { defineRoute } from '../../../../route/define-route.ts'
import { daoKind } from '../../../../route/entities.ts'
import { checkRange, order } from '../../../../series/series.ts'

/** The position of the owner among the requested ones, from 1. */
const POSITION = 'toUInt32(indexOf({owners: Array(UInt64)}, dao))'
/** Within a day: the largest value first, assets without a price last. */
const IN_DAY: readonly SortPart[] = [
  ['-ifNull(value_usd, -1)', 'Float64'],
  ['symbol', 'String'],
  ['chain_name', 'String'],
  ['asset', 'String'],
]
const ORDERS = {
  desc: {
    keyset: defineKeyset([POSITION, 'UInt32'], ['-toUnixTimestamp64Milli(observed_at)', 'Int64'], ...IN_DAY),
    days: 'observed_at DESC',
  },
  asc: {
    keyset: defineKeyset([POSITION, 'UInt32'], ['toUnixTimestamp64Milli(observed_at)', 'Int64'], ...IN_DAY),
    days: 'observed_at',
  },
} as const

const IS_OF_KIND = "({kind: String} = '' OR one.6 = {kind: String})"

/**
 * A page of assets. Each stored day has at least one, so a page needs at most one day more than it has rows: the day in which
 * the page before ended.
 */
function toSql({ keyset, days }: (typeof ORDERS)['asc' | 'desc'], after: string, toRecord: string): string {
  const sign = days === 'observed_at' ? '' : '-'
  const place = `tuple(${POSITION}, ${sign}toUnixTimestamp64Milli(observed_at))`
  const rows = `SELECT dao, observed_at, holdings, tokens
FROM dao_treasuries FINAL
WHERE dao IN {owners: Array(UInt64)}
  AND observed_at >= fromUnixTimestamp64Milli({from: Int64}, 'UTC') AND observed_at < fromUnixTimestamp64Milli({to: Int64}, 'UTC')
  AND ({kind: String} = '' OR arrayExists(one -> one.kind = {kind: String}, holdings))
  ${after === '' ? '' : `AND ${place} >= tuple({position: UInt32}, {day: Int64})`}
ORDER BY ${POSITION}, ${days}
LIMIT {limit: UInt32} + 1`
  return `SELECT observed_at AS as_of, ${keyset.place} AS page_key, ${toRecord} AS record
FROM (${selectDailyHoldings(rows, IS_OF_KIND)})
WHERE true${keyset.isAfter(after)}
ORDER BY ${keyset.order}
LIMIT {limit: UInt32}`
}

const VALUES = 'observed_at, symbol, token, contract, chain, kind, quantity, price_usd, value_usd'

export const holdingsHistoricRoute = defineRoute({
  operation: 'getDaoHoldingsHistory',
  path: '/data/daos/treasury/holdings/historic',
  tag: 'DAOs',
  summary: 'Assets of the treasury of a DAO over time',
  description:
    'For each day the assets of the treasury by chain, newest day first, or with `order=asc` oldest first; within a day largest value first, assets without a price last. All addresses are added up; `/data/daos/treasury/holdings` separates them. The values of a day add up to `valueUsd` of `/data/daos/treasury/historic`. Days without a reading are absent. Values from different sources are not comparable. `limit` is in assets. ' +
    inTables(daoKind.noun),
  one: daoKind,
  severalInTables: true,
  query: {
    start: time('First moment, inclusive; default: the first day.', '2026-01-01').optional(),
    end: time('Last moment, exclusive; default: now.', '2026-02-01').optional(),
    kind: oneOf(HOLDING_KINDS, 'Only assets of this kind.', 'stable').optional(),
    order: order('desc'),
    ...page('assets', { default: 1_000, max: 10_000 }),
  },
  record: dailyHolding,
  datasets: [daoTreasury],
  handle: async (call) => {
    const { query, now, registry, representation } = call
    const { after } = representation
    checkRange(query)
    const way = ORDERS[query.order ?? 'desc']
    const [position = 1, day = 0] = after === '' ? [] : way.keyset.read(after)
    const owned = toOwned(call, dailyHolding, 'dao')
    const params = {
      ...owned.params,
      ...{ from: query.start ?? 0, to: query.end ?? END_OF_TIME },
      ...{ kind: query.kind ?? '', position, day, ...toChainParams(registry) },
    }
    const answer = await answerRecords(
      { ...call, representation: owned.representation },
      { name: 'holdings-history', sql: toSql(way, after, owned.toRecord(VALUES)), params, page: query.limit },
    )
    const isOpen = (query.end === undefined || query.end > now()) && query.order !== 'asc' && after === ''
    return isOpen ? answer : { ...answer, staleAt: null }
  },
})
