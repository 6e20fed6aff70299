/**
 * What every list of DAOs reads and how it is ordered (contract section 2): live ones, exact name matches first, then by
 * their token's market cap, then by name. Join more onto it; `d` is the DAO's record, `q` its token's latest quote.
 * Takes the members of a `Selection` as parameters.
 */
export const LISTED_DAOS = `(SELECT * FROM daos FINAL) AS d
LEFT JOIN (SELECT token, market_cap FROM token_quotes FINAL) AS q ON q.token = d.token_key`

export const DAO_SELECTED = 'd.live AND ({all: Bool} OR has({keys: Array(UInt64)}, d.key))'

export const DAO_ORDER = 'has({exact: Array(UInt64)}, d.key) DESC, q.market_cap DESC NULLS LAST, d.name, d.key'
