import { z } from 'zod'
import { tokenHolders } from '../../../shared/datasets/holders.ts'
import { tokenPrices } from '../../../shared/datasets/token-prices.ts'
import { listedTokens, TOKEN_PLACE } from '../../lists/tokens.ts'
import { page } from '../../parameters/kinds.ts'
import { answerRecords } from '../../records/answer.ts'
import { defineRoute } from '../../route/define.ts'
import { manyOfKind, selectMany, tokenKind } from '../../route/entities.ts'
import { idValue, numberOrNull } from '../../route/values.ts'

const holdersRecord = z.strictObject({
  _id: idValue,
  name: z.string(),
  holdersData: z.strictObject({
    totalHolders: z.int(),
    top100Share: z.number(),
    topHolders: z.array(
      z.strictObject({ address: z.string(), amount: z.number(), amountUsd: numberOrNull, share: z.number() }),
    ),
  }),
})

/** A token's holders, as the interface document lists them. */
export type HoldersRecord = z.infer<typeof holdersRecord>

const HOLDER = 'Tuple(address String, amount Float64, amountUsd Nullable(Float64), share Float64)'
const RECORD = `Tuple(_id String, name String,
  holdersData Tuple(totalHolders UInt64, top100Share Float64, topHolders Array(${HOLDER})))`

// Tuples are taken apart before the cast: between named tuples it would go by the names, and lose the renamed member.
const toSql = (after: string) => `
SELECT h.observed_at AS as_of, ${TOKEN_PLACE} AS page_key,
  CAST(tuple(t.id, t.name, tuple(h.total_holders, h.top100_share,
    arrayMap(holder -> tuple(holder.1, holder.2, holder.3, holder.4), h.holders))), $record$${RECORD}$record$) AS record
FROM (SELECT * FROM tokens FINAL) AS t
INNER JOIN (SELECT * FROM token_holders_latest FINAL) AS h ON h.token = t.key
LEFT JOIN (SELECT token, market_cap FROM token_quotes FINAL) AS q ON q.token = t.key
${listedTokens(after)}`

export const holdersRoute = defineRoute({
  path: '/data/tokens/holders',
  tag: 'Tokens',
  summary: 'The largest holders of tokens',
  description:
    'For all live tokens with holder data, or those that `id` and `name` select: how many hold the token, the share of the hundred largest in percent of the total supply, and those, largest first. `amountUsd` is the value at the time of the snapshot, null where the source has no price. Exact name matches come first, then by market cap, largest first, then by name.',
  query: { ...manyOfKind(tokenKind), ...page('tokens', { default: 10, max: 500 }) },
  record: holdersRecord,
  datasets: [tokenHolders, tokenPrices],
  handle: (call) => {
    const { query, registry } = call
    const selection = selectMany(tokenKind, registry, query)
    return answerRecords(call, {
      name: 'token-holders',
      sql: toSql(call.wanted.after),
      params: selection,
      page: query.limit,
    })
  },
})
