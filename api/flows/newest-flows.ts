import { z } from 'zod'
import { toFlowAssets, toFlowDays, withPrices } from '../../shared/datasets/treasury-flows.ts'
import { DAY_MS } from '../../shared/intervals.ts'
import type { Database } from '../../shared/store/store.ts'
import { defineKeyset, type Keyset } from '../formats/formats.ts'
import { toNamedAssets } from './day-flows.ts'
import type { FlowSelection } from './selection.ts'
import type { AssetKey } from './sums.ts'

/** The columns that identify a transfer of a DAO: the sorting key of the table. */
export const FLOW_IDENTITY = [
  'recorded_at',
  'chain',
  'transaction_hash',
  'contract_address',
  'sender',
  'recipient',
  'base_units',
  'occurrence',
] as const

/** An integer of 256 bits as a text with the same order: the types of cursors end at 64 bits. */
const UNITS = "leftPad(toString(base_units), 78, '0')"

/** Newest first: the sorting key of the table from its end. */
export const NEWEST_FLOWS_FIRST: Keyset = defineKeyset(
  ['toUnixTimestamp64Milli(recorded_at)', 'Int64', 'descending'],
  ['toString(chain)', 'String', 'descending'],
  ['transaction_hash', 'String', 'descending'],
  ['contract_address', 'String', 'descending'],
  ['sender', 'String', 'descending'],
  ['recipient', 'String', 'descending'],
  [UNITS, 'String', 'descending'],
  ['occurrence', 'UInt32', 'descending'],
)

const NEWEST = FLOW_IDENTITY.map((column) => `${column} DESC`).join(', ')

/** What the prices of a page depend on. */
interface PageBounds {
  /** No transfer of the page is before this moment, in Unix milliseconds. */
  readonly since: number
  readonly assets: readonly AssetKey[]
}

/** The bounds of an empty page: a time after every transfer, within the range of ClickHouse's DateTime. Nothing is read for it. */
export const NO_TRANSFERS: PageBounds = { since: Date.UTC(2100, 0), assets: [] }

const boundsRow = z.object({
  since: z.int(),
  assets: z.array(z.tuple([z.string(), z.string()])),
})

/**
 * Reads a transfer from the end of the sorting key at a time, and no further than the page reaches. FINAL would read and merge
 * all columns of the key of all transfers. Rows are read newest version first, so the first row of a transfer is its newest
 * version. Larger blocks, and blocks that are read ahead, would be most of the work.
 */
const FROM_THE_END = { max_threads: 1, max_block_size: 1024, read_in_order_use_buffering: 0 }

/** SQL for the order of insertion of a row's part, `all_<first block>_<last block>_<level>`: of equal versions, FINAL takes the last. */
const BLOCK = "toUInt64(splitByChar('_', _part)[2])"

const dayRow = z.object({ date: z.string(), transfers: z.int() })

/**
 * Selects transfers of the days that a page needs, if the sums of days have columns of its filters: a filter that selects
 * few transfers would otherwise read all others. Returns undefined if the page is empty.
 */
export async function onPageDays(
  db: Database,
  selection: FlowSelection,
  { dao, limit }: { readonly dao: number; readonly limit: number },
): Promise<FlowSelection | undefined> {
  const { isPossible, isOnDay, isCounted, params } = selection
  if (isOnDay === undefined) return selection
  const rows = await db.rows({
    name: 'treasury-flows-days',
    sql: `SELECT toString(day) AS date, sum(transfers) AS transfers FROM (${toFlowDays('dao = {dao: UInt64}')})
WHERE ${isOnDay} AND day >= toDate32(fromUnixTimestamp64Milli({from: Int64}, 'UTC')) AND day <= toDate32(fromUnixTimestamp64Milli({to: Int64} - 1, 'UTC'))
GROUP BY day ORDER BY day DESC`,
    params: { ...params, dao },
    settings: { max_threads: 1 },
    schema: dayRow,
  })
  const days: string[] = []
  let open = limit
  for (const { date, transfers } of rows) {
    if (open <= 0) break
    days.push(date)
    // Of a day that the range ends in, some transfers may be after it.
    if (isCounted && Date.parse(date) + DAY_MS <= Number(params.to)) open -= transfers
  }
  if (days.length === 0) return undefined
  const isOnPage = `${isPossible} AND toDate(recorded_at) IN {days: Array(Date)}`
  return { ...selection, isPossible: isOnPage, params: { ...params, days } }
}

/** Finds the oldest time and the assets of a page. Reads only the columns of the sorting key and of the filters. */
export async function findPageBounds(
  db: Database,
  { isPossible, isSelected, isWorth, params }: FlowSelection,
  { after, ...page }: { readonly after: string; readonly dao: number; readonly limit: number },
): Promise<PageBounds | undefined> {
  // With a least value the page is known only after the join with the prices.
  if (isWorth !== undefined) return undefined
  const [bounds] = await db.rows({
    name: 'treasury-flows-bounds',
    sql: `SELECT toUnixTimestamp64Milli(min(recorded_at)) AS since, groupUniqArray((toString(chain), contract_address)) AS assets FROM
(
  SELECT recorded_at, chain, contract_address FROM
  (
    SELECT * FROM treasury_flows WHERE dao = {dao: UInt64} AND ${isPossible}${NEWEST_FLOWS_FIRST.isAfter(after)}
    ORDER BY dao DESC, ${NEWEST}, collected_at DESC, ${BLOCK} DESC
    LIMIT 1 BY dao, ${FLOW_IDENTITY.join(', ')}
  )
  WHERE ${isSelected}
  LIMIT {limit: UInt32}
)`,
    params: { ...params, ...page, ...(after === '' ? {} : { after }) },
    settings: FROM_THE_END,
    schema: boundsRow,
  })
  const { since = 0, assets = [] } = bounds ?? {}
  if (assets.length === 0) return NO_TRANSFERS
  return { since, assets: assets.map(([chain, contract]) => ({ chain, contract })) }
}

/**
 * A page of the selected transfers, newest first: its SQL, with `page_key`, `as_of` and `record`, and the parameters. FINAL,
 * which removes replaced rows, and the prices are read only of the range of the page.
 */
export function toNewestPage(
  { isPossible, isSelected, isWorth }: FlowSelection,
  {
    after,
    record,
    bounds,
  }: { readonly after: string; readonly record: string; readonly bounds: PageBounds | undefined },
): { readonly sql: string; readonly params: Readonly<Record<string, unknown>> } {
  const since = bounds === undefined ? '{from: Int64}' : '{since: Int64}'
  const farthest = `fromUnixTimestamp64Milli(${since}, 'UTC')`
  const limit =
    isWorth === undefined
      ? `
    ORDER BY ${NEWEST}
    LIMIT {limit: UInt32}`
      : ''
  const isOnPage = `${isPossible} AND recorded_at >= ${farthest}`
  const rows = `
    SELECT *, ${NEWEST_FLOWS_FIRST.place} AS page_key FROM treasury_flows FINAL
    WHERE dao = {dao: UInt64} AND ${isOnPage} AND ${isSelected}${NEWEST_FLOWS_FIRST.isAfter(after)}${limit}`
  const named = toNamedAssets(bounds?.assets)
  const assets = named?.sql ?? toFlowAssets('= {dao: UInt64}', isOnPage)
  return {
    sql: `SELECT f.recorded_at AS as_of, f.page_key AS page_key, ${record} AS record
${withPrices('= {dao: UInt64}', rows, assets, farthest)}${isWorth === undefined ? '' : `\nWHERE ${isWorth}`}
ORDER BY page_key DESC
LIMIT {limit: UInt32}`,
    params: { ...named?.params, ...(bounds === undefined ? {} : { since: bounds.since }) },
  }
}
