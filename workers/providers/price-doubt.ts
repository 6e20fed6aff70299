import { z } from 'zod'
import { DataError } from '../../shared/errors.ts'
import { HOUR_MS } from '../../shared/intervals.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import type { Doubt } from '../job/define-job.ts'

/** A price this many times the last one, or less than the last one divided by it, is not taken on one provider's word. */
const MOST_TIMES = 100
/** Two providers say the same when their prices are this close, as a share of the larger. */
const SAME_SHARE = 0.2
/** A stored price says nothing of what comes later than this, so a price that stays where it is gets in. */
const BELIEVED_MS = HOUR_MS

const lastPrice = z.object({ token: z.number(), price: z.number(), at: z.int() })
const quote = z.object({ token: z.number(), price: z.number(), observed_at: z.string() })

/**
 * Reads the last stored prices of tokens once, and holds the latest quotes of a run's providers against them. A price a
 * hundred times or a hundredth of one of the hour before is not stored: the token is refused as `provider_malformed`, so
 * the next provider is asked. It is believed when that one says the same within 20 %, or when it is still so after an
 * hour in which no other price came.
 */
export async function openPriceDoubt(db: Database, tokens: readonly number[]): Promise<Doubt> {
  const stored = await db.rows({
    name: 'last-prices',
    sql: `SELECT token, price, toUnixTimestamp64Milli(observed_at) AS at FROM token_quotes FINAL
WHERE token IN {tokens: Array(UInt64)}`,
    params: { tokens },
    schema: lastPrice,
  })
  return createPriceDoubt(stored)
}

/** The same, of prices that were read before; `at` is Unix milliseconds. */
function createPriceDoubt(stored: readonly z.infer<typeof lastPrice>[]): Doubt {
  const lastOf = new Map(stored.map((last) => [last.token, last]))
  const doubted = new Map<number, number[]>()
  return (provider, checked, { log, onRejected }) => {
    const refused = new Map(checked.refused)
    const rows = checked.rows.filter((row) => {
      const { token, price, observed_at } = quote.parse(row)
      const last = lastOf.get(token)
      if (last === undefined || isNear(price, last.price) || isOld(last.at, observed_at)) return true
      const others = doubted.get(token) ?? []
      if (others.some((other) => isSame(other, price))) return true
      doubted.set(token, [...others, price])
      const since = new Date(last.at).toISOString()
      const reason = `${provider}: a price of ${price} is ${toTimes(price / last.price)} the last price, ${last.price} at ${since}`
      refused.set(token, new DataError('provider_malformed', reason))
      log.warn({ provider, token, price, last: last.price, since }, 'price not believed')
      return false
    })
    const count = checked.rows.length - rows.length
    if (count > 0)
      onRejected?.(`${provider}: price: over ${MOST_TIMES} times, or under a hundredth of, the last`, count)
    return { ...checked, rows, rejected: checked.rejected + count, refused }
  }
}

const isNear = (price: number, last: number) => price < last * MOST_TIMES && price > last / MOST_TIMES

const isOld = (at: number, observedAt: string) => Math.abs(Date.parse(observedAt) - at) > BELIEVED_MS

const isSame = (one: number, other: number) => Math.abs(one - other) <= SAME_SHARE * Math.max(one, other)

/** `100x`, or `1/100x` for a fall. */
const toTimes = (ratio: number) => (ratio >= 1 ? `${Math.round(ratio)}x` : `1/${Math.round(1 / ratio)}x`)
