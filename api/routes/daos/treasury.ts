import { z } from 'zod'
import { tokenPrices } from '../../../shared/datasets/token-prices.ts'
import { daoTreasury } from '../../../shared/datasets/treasury.ts'
import { DAO_ORDER, DAO_SELECTED, LISTED_DAOS } from '../../dao-lists.ts'
import { defineRoute } from '../../define.ts'
import { daoKind, manyOfKind, selectMany } from '../../entities.ts'
import { limit } from '../../parameters/kinds.ts'
import { idValue, numberOrNull, timeValue } from '../../values.ts'
import { writeArray } from '../../written-json.ts'

const treasuryRecord = z.strictObject({
  _id: idValue,
  name: z.string(),
  treasuryData: z.strictObject({
    lastUpdated: timeValue,
    tokens: z.array(z.strictObject({ token: z.string(), quantity: z.number(), valueUsd: numberOrNull })),
    valueUsd: z.number(),
    percentChange24h: numberOrNull,
    percentChange7d: numberOrNull,
    percentChange30d: numberOrNull,
  }),
})

const TOKEN = 'Tuple(token String, quantity Float64, valueUsd Nullable(Float64))'
const RECORD = `Tuple(_id String, name String, treasuryData Tuple(lastUpdated DateTime64(3, 'UTC'), tokens Array(${TOKEN}),
  valueUsd Float64, percentChange24h Nullable(Float64), percentChange7d Nullable(Float64),
  percentChange30d Nullable(Float64)))`

const changeSince = (before: string) => `100 * (t.value_usd / nullIf(${before}.value_usd, 0) - 1)`

/** The value of exactly so many days before, as the same source saw it: two sources do not count the same things. */
const joinDaysBefore = (alias: string, days: number) =>
  `LEFT JOIN (SELECT dao, source, observed_at + INTERVAL ${days} DAY AS later, toNullable(value_usd) AS value_usd
  FROM dao_treasuries FINAL) AS ${alias} ON ${alias}.dao = t.dao AND ${alias}.source = t.source AND ${alias}.later = t.observed_at`

const SQL = `
SELECT t.observed_at AS as_of,
  CAST(tuple(d.id, d.name, tuple(t.observed_at, arrayMap(token -> tuple(token.1, token.2, token.3), t.tokens), t.value_usd,
    ${changeSince('day')}, ${changeSince('week')}, ${changeSince('month')})), $record$${RECORD}$record$) AS record
FROM ${LISTED_DAOS}
INNER JOIN
(
  SELECT * FROM dao_treasuries FINAL
  WHERE (dao, observed_at) IN (SELECT dao, max(observed_at) FROM dao_treasuries GROUP BY dao)
) AS t ON t.dao = d.key
${joinDaysBefore('day', 1)}
${joinDaysBefore('week', 7)}
${joinDaysBefore('month', 30)}
WHERE ${DAO_SELECTED}
ORDER BY ${DAO_ORDER}
LIMIT {limit: UInt32}`

export const treasuryRoute = defineRoute({
  path: '/data/daos/treasury',
  tag: 'DAOs',
  summary: 'What the treasuries of DAOs hold',
  description:
    "For all live DAOs with treasury data, or those that `id` and `name` select: everything held, the DAO's own tokens included, by value, largest first, and its total value. `valueUsd` of a token is null where no source has a price for it, and such tokens come last. Changes compare with the same source's value of exactly so many days before, and are null where there is none. Exact name matches come first, then by the token's market cap, largest first, then by name.",
  query: { ...manyOfKind(daoKind), limit: limit('DAOs', { default: 10, max: 500 }) },
  response: z.array(treasuryRecord),
  datasets: [daoTreasury, tokenPrices],
  handle: ({ query, db, registry }) => {
    const selection = selectMany(daoKind, registry, query)
    return writeArray(db, { name: 'dao-treasuries', sql: SQL, params: { ...selection, limit: query.limit } })
  },
})
