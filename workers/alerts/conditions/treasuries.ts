import { z } from 'zod'
import { groupBy } from '../../../shared/group-by.ts'
import { DAY_MS } from '../../../shared/intervals.ts'
import { findEntities } from '../rules.ts'
import { formatTime } from '../state.ts'
import { type Evaluate, formatValue, NUMBER, type Result, toEntityFacts } from './condition.ts'

const treasuryRow = z.object({
  dao: z.number(),
  at: z.int(),
  collectedAt: z.int(),
  source: z.string(),
  tokens: z.array(z.tuple([z.string(), z.number(), z.number().nullable()])),
})

/** The largest movement of an asset between two days of a treasury, at the prices of the later day; null without one. */
export function findMovement(
  before: z.infer<typeof treasuryRow>['tokens'],
  after: z.infer<typeof treasuryRow>['tokens'],
  direction: 'in' | 'out' | 'any',
): { readonly symbol: string; readonly usd: number; readonly quantity: number } | null {
  const quantities = new Map<string, { before: number; after: number; price: number | null }>()
  const add = (side: 'before' | 'after', tokens: typeof before) => {
    for (const [symbol, quantity, value] of tokens) {
      const own = quantities.get(symbol) ?? { before: 0, after: 0, price: null }
      const price = value !== null && quantity > 0 ? value / quantity : null
      quantities.set(symbol, { ...own, [side]: own[side] + quantity, price: price ?? own.price })
    }
  }
  add('before', before)
  add('after', after)
  const moves = [...quantities].flatMap(([symbol, own]) => {
    const quantity = own.after - own.before
    const isWanted = direction === 'any' || quantity > 0 === (direction === 'in')
    return own.price === null || quantity === 0 || !isWanted ? [] : { symbol, quantity, usd: quantity * own.price }
  })
  const size = ({ usd }: { readonly usd: number }) => Math.abs(usd)
  return moves.reduce<(typeof moves)[number] | null>(
    (most, one) => (most && size(most) >= size(one) ? most : one),
    null,
  )
}

const TREASURY_WITHIN_MS = 8 * DAY_MS

export const evaluateTreasuries: Evaluate<'treasury'> = async (rules, { db, registry, now }) => {
  const rows = await db.rows({
    name: 'alert-treasuries',
    sql: `SELECT dao, toUnixTimestamp64Milli(observed_at) AS at, toUnixTimestamp64Milli(collected_at) AS collectedAt, source,
  arrayMap(token -> tuple(token.1, token.2, token.3), tokens) AS tokens
FROM dao_treasuries FINAL WHERE observed_at >= fromUnixTimestamp64Milli({since: Int64}, 'UTC') ORDER BY dao, observed_at`,
    params: { since: now - TREASURY_WITHIN_MS },
    schema: treasuryRow,
  })
  const byDao = groupBy(rows, ({ dao }) => dao)
  return new Map(
    rules.map((rule): [string, Result] => {
      const { movedUsd, direction } = rule.what
      const events = (findEntities(rule, registry) ?? []).flatMap((entity) => {
        const days = byDao.get(entity.key) ?? []
        return days.flatMap((day, index) => {
          const before = days[index - 1]
          // Two sources count different assets.
          if (before === undefined || before.source !== day.source) return []
          const moved = findMovement(before.tokens, day.tokens, direction)
          if (moved === null || Math.abs(moved.usd) < movedUsd) return []
          return {
            ...toEntityFacts(entity, '/data/daos/treasury/historic'),
            // A back-fill collects earlier days again, which are no news.
            ...{
              subject: `${entity.id} ${day.at}`,
              at: Math.min(day.collectedAt, day.at + DAY_MS),
              observedAt: day.at,
            },
            ...{ value: moved.usd, before: null, threshold: movedUsd, unit: 'USD' },
            describe: () => ({
              title: `${entity.name}: treasury ${moved.usd > 0 ? 'received' : 'spent'} ${formatValue(Math.abs(moved.usd), 'USD')} of ${moved.symbol}`,
              text: `${NUMBER.format(Math.abs(moved.quantity))} ${moved.symbol} between ${formatTime(before.at)} and ${formatTime(day.at)}.`,
            }),
          }
        })
      })
      return [rule.name, { type: 'events', events }]
    }),
  )
}
