import { defineKeyset } from '../records/keyset.ts'

/**
 * What every list of DAOs reads and how it is ordered (contract section 2): live ones, exact name matches first, then by
 * their token's market cap, then by name. Join more onto it; `d` is the DAO's record, `q` its token's latest quote.
 * Takes `limit`, `after` and the members of a `Selection` as parameters.
 */
export const LISTED_DAOS = `(SELECT * FROM daos FINAL) AS d
LEFT JOIN (SELECT token, market_cap FROM token_quotes FINAL) AS q ON q.token = d.token_key`

const ORDER = defineKeyset(
  ['toUInt8(NOT has({exact: Array(UInt64)}, d.key))', 'UInt8'],
  ['toUInt8(isNull(q.market_cap))', 'UInt8'],
  ['-ifNull(q.market_cap, 0)', 'Float64'],
  ['d.name', 'String'],
  ['d.key', 'UInt64'],
)

/** Where a list of DAOs may go on; a SELECT of one has it as `page_key`. */
export const DAO_PLACE = ORDER.place

export const selectedDaos = (after: string) =>
  `d.live AND ({all: Bool} OR has({keys: Array(UInt64)}, d.key))${ORDER.isAfter(after)}`

export const DAO_ORDER = ORDER.order
