import { indexToken, indexTokenRecord, selectIndexToken } from '../../../shared/datasets/index-token.ts'
import { Problem } from '../../problem/problem.ts'
import { defineRoute } from '../../route/define-route.ts'

const NEWEST = '(SELECT max(created_at) FROM index_token WHERE index_key IN {entities: Array(UInt64)})'
const SQL = `SELECT value, total_supply AS totalSupply, value_usd AS valueUsd, created_at AS createdAt
FROM (${selectIndexToken(`created_at = ${NEWEST}`)})`

export const indexTokenRoute = defineRoute({
  operation: 'getIndexToken',
  path: '/data/index/token-data',
  tag: 'Index',
  summary: 'The Index Token now',
  description:
    'The ether locked in the Index Token contract and the tokens in circulation, both read at one block, as exact decimals in texts. The market cap in ETH is `value` divided by `totalSupply`; `valueUsd` is that times the price of ether. `no_data` until the first reading is stored.',
  query: {},
  response: indexTokenRecord,
  datasets: [indexToken],
  mayHaveNoData: true,
  handle: async ({ db, registry }) => {
    const { index } = registry
    const params = { entities: [index.key] }
    const [found] = await db.rows({ name: 'index-token', sql: SQL, params, schema: indexTokenRecord })
    if (found === undefined) {
      const detail = `The Index Token has not been read yet: workers need a node of ${index.token.chain} for it.`
      throw new Problem('no_data', detail)
    }
    return { body: Buffer.from(JSON.stringify(found)), asOf: Date.parse(found.createdAt) }
  },
})
