/**
 * Which tokens every list of tokens holds and in which order (contract section 2): live ones, exact name matches first,
 * then by market cap, then by name. `t` is the token's record, `q` its latest quote. Takes `limit` and the members of a
 * `Selection` as parameters.
 */
export const LISTED_TOKENS = `WHERE t.live AND ({all: Bool} OR has({keys: Array(UInt64)}, t.key))
ORDER BY has({exact: Array(UInt64)}, t.key) DESC, q.market_cap DESC NULLS LAST, t.name, t.key
LIMIT {limit: UInt32}`
