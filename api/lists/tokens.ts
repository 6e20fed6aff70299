import { defineKeyset } from '../records/keyset.ts'

const ORDER = defineKeyset(
  ['toUInt8(NOT has({exact: Array(UInt64)}, t.key))', 'UInt8'],
  ['toUInt8(isNull(q.market_cap))', 'UInt8'],
  ['-ifNull(q.market_cap, 0)', 'Float64'],
  ['t.name', 'String'],
  ['t.key', 'UInt64'],
)

/** Where a list of tokens may go on; a SELECT of one has it as `page_key`. */
export const TOKEN_PLACE = ORDER.place

/**
 * Which tokens every list of tokens holds and in which order (contract section 2): live ones, exact name matches first,
 * then by market cap, then by name. `t` is the token's record, `q` its latest quote. Takes `limit`, `after` and the
 * members of a `Selection` as parameters.
 */
export const listedTokens = (
  after: string,
) => `WHERE t.live AND ({all: Bool} OR has({keys: Array(UInt64)}, t.key))${ORDER.isAfter(after)}
ORDER BY ${ORDER.order}
LIMIT {limit: UInt32}`
