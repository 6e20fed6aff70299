import { z } from 'zod'
import { DAY_MS } from '../../shared/intervals.ts'
import type { Database } from '../../shared/store/store.ts'
import { nextGridTime } from '../series/series.ts'
import { pointsSql } from './points.ts'

const POINTS = 288

const pricePoint = z.object({ at: z.int(), value: z.number() })
const quoted = z.object({ change: z.number().nullable() })

/** The value of the token's `financialData.percentChange24h`. */
const CHANGE = 'SELECT percent_change_24h AS change FROM token_quotes FINAL WHERE token = {token: UInt64}'

/** The prices of a token over the last 24 hours, and their change in percent; null if it is unknown. */
export async function readDay(db: Database, token: { readonly key: number }, now: number) {
  const to = nextGridTime(now)
  const from = to - DAY_MS
  const params = { token: token.key, from, to, limit: POINTS }
  const settings = { max_threads: 1 }
  const [points, [quote]] = await Promise.all([
    db.rows({
      name: 'chart-24h',
      sql: `SELECT toUnixTimestamp64Milli(as_of) AS at, price AS value FROM (${pointsSql('5m').columns})`,
      params,
      settings,
      schema: pricePoint,
    }),
    db.rows({ name: 'chart-24h-change', sql: CHANGE, params: { token: token.key }, settings, schema: quoted }),
  ])
  return { points, change: quote?.change ?? null, range: { from, to } }
}
