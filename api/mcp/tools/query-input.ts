import { z } from 'zod'
import type { Call } from '../define-tool.ts'

/** Each entity is a separate request if a resource is about one entity. */
const MOST_ENTITIES = 20

const text = z.string().optional()

export const input = z.strictObject({
  topic: z.string().max(80).describe('Such as tokens, daos/treasury, index/weights.'),
  of: z
    .array(z.string().min(1).max(200))
    .max(MOST_ENTITIES)
    .optional()
    .describe('Up to 20 names, symbols or ids. Topics about one take each in turn; limit, sort, filter hold for each.'),
  fields: z.array(z.string().max(120)).max(30).optional().describe('Member paths: name, financialData.price.'),
  sort: z.string().max(300).optional().describe('Paths with commas between; - before one: descending.'),
  filter: z
    .array(z.string().max(300))
    .max(10)
    .optional()
    .describe('All must hold: financialData.marketCap>=1000000, name!=null. >= <= != > < ='),
  where: z
    .object({
      ...{ category: text, chain: text, asOf: text, start: text, end: text, interval: text, order: text },
      ...{ source: text, state: text, proposal: text, basis: text, dataset: text, endsBefore: text, address: text },
      ...{ of: text, top: text, weights: text, cap: text, rebalance: text, costBps: text, base: text },
      ...{ include: text, exact: text, rule: text, kind: text, period: text, days: text, points: text, fill: text },
      ...{ asset: text, assets: text, burn: text, by: text, counterparty: text, direction: text, minUsd: text },
      ...{ proposals: text, spam: text, table: text, title: text, wallet: text, window: text },
    })
    .catchall(z.string())
    .optional()
    .describe('Other parameters of the topic.'),
  limit: z.int().min(1).max(500).default(20).describe('Up to 500, default 20.'),
  cursor: z.string().max(2000).optional().describe('`next` of an answer.'),
})

export type QueryCall = Call<z.output<typeof input>>
