import { z } from 'zod'
import { tokenPrices } from '../../../shared/datasets/token-prices.ts'
import { daoTreasury } from '../../../shared/datasets/treasury.ts'
import { DAO_ORDER, DAO_PLACE, LISTED_DAOS, selectedDaos } from '../../lists/daos.ts'
import { page } from '../../parameters/kinds.ts'
import { answerRecords } from '../../records/answer.ts'
import { defineRoute } from '../../route/define.ts'
import { daoKind, manyOfKind, selectMany } from '../../route/entities.ts'
import { idValue, numberOrNull, timeValue } from '../../route/values.ts'

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

/**
 * Percent since exactly so many days before, as the same source saw it: two sources do not count the same things. Null
 * where there is no such value (an absent one reads 0), or nothing of value.
 */
const changeSince = (days: number) => `100 * (t.newest.3 / nullIf(
    arrayFirst(past -> past.1 = t.newest.1 - INTERVAL ${days} DAY AND past.2 = t.newest.4, t.history).3, 0) - 1)`

// Only the rows that an answer is made of are read whole, however long the history grows.
const toSql = (after: string) => `
SELECT t.newest.1 AS as_of, ${DAO_PLACE} AS page_key,
  CAST(tuple(d.id, d.name, tuple(t.newest.1, arrayMap(token -> tuple(token.1, token.2, token.3), t.newest.2), t.newest.3,
    ${changeSince(1)}, ${changeSince(7)}, ${changeSince(30)})), $record$${RECORD}$record$) AS record
FROM ${LISTED_DAOS}
INNER JOIN
(
  SELECT dao, argMax(tuple(observed_at, tokens, value_usd, source), observed_at) AS newest,
    groupArray(tuple(observed_at, source, value_usd)) AS history
  FROM dao_treasuries FINAL
  WHERE (dao, observed_at) IN
  (
    SELECT dao, max(observed_at) - INTERVAL arrayJoin([0, 1, 7, 30]) DAY FROM dao_treasuries GROUP BY dao
  )
  GROUP BY dao
) AS t ON t.dao = d.key
WHERE ${selectedDaos(after)}
ORDER BY ${DAO_ORDER}
LIMIT {limit: UInt32}`

export const treasuryRoute = defineRoute({
  path: '/data/daos/treasury',
  tag: 'DAOs',
  summary: 'What the treasuries of DAOs hold',
  description:
    "For all live DAOs with treasury data, or those that `id` and `name` select: everything held, the DAO's own tokens included, by value, largest first, and its total value. `valueUsd` of a token is null where no source has a price for it, and such tokens come last. Changes compare with the same source's value of exactly so many days before, and are null where there is none. Exact name matches come first, then by the token's market cap, largest first, then by name.",
  query: { ...manyOfKind(daoKind), ...page('DAOs', { default: 10, max: 500 }) },
  record: treasuryRecord,
  datasets: [daoTreasury, tokenPrices],
  handle: (call) => {
    const { query, registry } = call
    const selection = selectMany(daoKind, registry, query)
    return answerRecords(call, {
      name: 'dao-treasuries',
      sql: toSql(call.wanted.after),
      params: selection,
      page: query.limit,
    })
  },
})
