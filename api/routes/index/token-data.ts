import { z } from 'zod'
import { indexToken } from '../../../shared/datasets/index-token.ts'
import { timeValue } from '../../formats/formats.ts'
import { Problem } from '../../problem/problem.ts'
import { defineRoute } from '../../route/define-route.ts'

const decimalText = z.string().regex(/^\d+(\.\d+)?$/)

const tokenData = z
  .strictObject({
    value: decimalText.meta({ description: 'Ether locked in the Index Token contract: an exact decimal.' }),
    totalSupply: decimalText.meta({ description: 'Index Tokens in circulation: an exact decimal.' }),
    valueUsd: z.number().meta({ description: 'Price of one Index Token in USD.' }),
    createdAt: timeValue.meta({ description: 'Time of the block that was read.' }),
  })
  .meta({ id: 'IndexToken', description: 'The Index Token as it was last read.' })

const SQL = `
SELECT value, total_supply AS totalSupply, value_usd AS valueUsd, created_at AS createdAt
FROM index_token FINAL
WHERE index_key = {index: UInt64}
  AND created_at = (SELECT max(created_at) FROM index_token WHERE index_key = {index: UInt64})`

export const indexTokenRoute = defineRoute({
  operation: 'getIndexToken',
  path: '/data/index/token-data',
  tag: 'Index',
  summary: 'The Index Token now',
  description:
    'The ether locked in the Index Token contract and the tokens in circulation, both read at one block, as exact decimals in texts. The market cap in ETH is `value` divided by `totalSupply`; `valueUsd` is that times the price of ether. `no_data` until the first reading is stored.',
  query: {},
  response: tokenData,
  datasets: [indexToken],
  mayHaveNoData: true,
  handle: async ({ db, registry }) => {
    const { index } = registry
    const params = { index: index.key }
    const [found] = await db.rows({ name: 'index-token', sql: SQL, params, schema: tokenData })
    if (found === undefined) {
      const detail = `The Index Token has not been read yet: workers need a node of ${index.token.chain} for it.`
      throw new Problem('no_data', detail)
    }
    return { body: Buffer.from(JSON.stringify(found)), asOf: Date.parse(found.createdAt) }
  },
})
