import { z } from 'zod'
import { tokenPrices } from '../../../shared/datasets/token-prices.ts'
import { DAY_MS } from '../../../shared/intervals.ts'
import { oneId } from '../../parameters/kinds.ts'
import { pointsSql } from '../../prices/points.ts'
import { Problem } from '../../problem/problem.ts'
import { defineRoute } from '../../route/define-route.ts'
import { tokenKind } from '../../route/entities.ts'
import { nextGridTime } from '../../series/series.ts'
import { toSparkline } from './sparkline.ts'

const POINTS = 288

const pricePoint = z.object({ at: z.int(), value: z.number() })

export const chart24hRoute = defineRoute({
  operation: 'getTokenChart',
  path: '/charts/24h/{tokenId}.svg',
  tag: 'Charts',
  summary: 'The price of a token over the last 24 hours as an image',
  description: 'What `chart24h` of a token points to.',
  query: { tokenId: oneId(tokenKind.noun, tokenKind.example.id) },
  response: z.string().describe('The image as SVG.'),
  contentType: 'image/svg+xml',
  datasets: [tokenPrices],
  handle: async ({ query, db, registry, now }) => {
    const token = tokenKind.byId(registry, query.tokenId)
    if (token === undefined) throw new Problem('not_found', 'There is no token with this id.', { param: 'tokenId' })
    const to = nextGridTime(now())
    const from = to - DAY_MS
    const points = await db.rows({
      name: 'chart-24h',
      sql: `SELECT toUnixTimestamp64Milli(as_of) AS at, price AS value FROM (${pointsSql('5m').columns})`,
      params: { token: token.key, from, to, limit: POINTS },
      settings: { max_threads: 1 },
      schema: pricePoint,
    })
    const asOf = points.at(-1)?.at ?? null
    return { body: Buffer.from(toSparkline(token.name, points, { from, to })), asOf, expiresAt: to }
  },
})
