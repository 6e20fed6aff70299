import { toFlowAssets, withPrices } from '../../shared/datasets/treasury-flows.ts'
import { defineKeyset, type Keyset } from '../formats/formats.ts'
import type { FlowSelection } from './selection.ts'

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

const IS_ON_PAGE = 'recorded_at >= farthest'

/**
 * A page of the selected transfers, newest first: `page_key`, `as_of` and `record`. FINAL, which removes replaced rows, reads
 * all columns of a range. The first part therefore finds how far back the page reaches, from the columns of the filters
 * alone. Prices are read only of that range.
 */
export function toNewestPage({ isInRange, isSelected, isWorth }: FlowSelection, after: string, record: string): string {
  const isWanted = `dao = {dao: UInt64} AND ${isInRange} AND ${isSelected}${NEWEST_FLOWS_FIRST.isAfter(after)}`
  // With a least value the page is known only after the join with the prices.
  const [farthest, limit] =
    isWorth === undefined
      ? [
          `SELECT if(count() = 0, toDateTime64('2100-01-01', 3, 'UTC'), min(recorded_at)) FROM
  (
    SELECT recorded_at FROM treasury_flows FINAL WHERE ${isWanted} ORDER BY recorded_at DESC LIMIT {limit: UInt32}
  )`,
          `
    ORDER BY ${NEWEST}
    LIMIT {limit: UInt32}`,
        ]
      : ["SELECT fromUnixTimestamp64Milli({from: Int64}, 'UTC')", '']
  const rows = `
    SELECT *, ${NEWEST_FLOWS_FIRST.place} AS page_key FROM treasury_flows FINAL
    WHERE ${isWanted} AND ${IS_ON_PAGE}${limit}`
  const assets = toFlowAssets('= {dao: UInt64}', `${isInRange} AND ${IS_ON_PAGE}`)
  return `WITH (${farthest}) AS farthest
SELECT f.recorded_at AS as_of, f.page_key AS page_key, ${record} AS record
${withPrices('= {dao: UInt64}', rows, assets, 'farthest')}${isWorth === undefined ? '' : `\nWHERE ${isWorth}`}
ORDER BY page_key DESC
LIMIT {limit: UInt32}`
}
