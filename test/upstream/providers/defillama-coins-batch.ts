import { z } from 'zod'
import { jsonReply, type Reply, textReply } from '../exchange.ts'

const TimesByCoin = z.record(z.string(), z.array(z.number().int()))

/** `/batchHistorical`: known prices of coins at Unix seconds. Source: docs/providers.md, section 3.2. */
export function toBatch(
  text: string | null,
  priceAt: (
    coin: string,
    at: number,
  ) => { symbol: string; price: number; timestamp: number; confidence: number } | null,
): Reply {
  const times = TimesByCoin.safeParse(JSON.parse(text ?? 'null'))
  if (!times.success) return textReply('Internal server error', 500)
  const coins = Object.entries(times.data).flatMap(([coin, seconds]) => {
    const found = seconds.flatMap((second) => priceAt(coin, second * 1000) ?? [])
    const prices = found.map(({ timestamp, price, confidence }) => ({ timestamp, price, confidence }))
    return prices.length === 0 ? [] : [[coin, { symbol: found[0]?.symbol, prices }] as const]
  })
  return jsonReply({ coins: Object.fromEntries(coins) })
}
