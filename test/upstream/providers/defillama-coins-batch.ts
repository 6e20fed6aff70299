import { z } from 'zod'
import { jsonReply, type Reply, textReply } from '../exchange.ts'

const Wanted = z.record(z.string(), z.array(z.number().int()))

/** `/batchHistorical`: prices of coins at Unix seconds, those that are known. Source: docs/providers.md, section 3.2. */
export function toBatch(
  text: string | null,
  priceAt: (
    coin: string,
    at: number,
  ) => { symbol: string; price: number; timestamp: number; confidence: number } | null,
): Reply {
  const wanted = Wanted.safeParse(JSON.parse(text ?? 'null'))
  if (!wanted.success) return textReply('Internal server error', 500)
  const coins = Object.entries(wanted.data).flatMap(([coin, seconds]) => {
    const found = seconds.flatMap((second) => priceAt(coin, second * 1000) ?? [])
    const prices = found.map(({ timestamp, price, confidence }) => ({ timestamp, price, confidence }))
    return prices.length === 0 ? [] : [[coin, { symbol: found[0]?.symbol, prices }] as const]
  })
  return jsonReply({ coins: Object.fromEntries(coins) })
}
