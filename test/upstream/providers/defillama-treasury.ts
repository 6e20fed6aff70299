import { jsonReply, type Reply, textReply } from '../exchange.ts'
import { DAY, type World } from '../world.ts'

const CHAIN_NAMES: Readonly<Record<string, string>> = { bnb: 'Binance' }
const HISTORY_DAYS = 120

interface Series {
  tvl: { date: number; totalLiquidityUSD: number }[]
  tokensInUsd: { date: number; tokens: Record<string, number> }[]
  tokens: { date: number; tokens: Record<string, number> }[]
}

/** Series of the provider that are not chains: staked tokens, pool tokens, and debts. */
const NOT_CHAINS: readonly string[] = ['staking', 'pool2', 'borrowed']

/**
 * `/treasury/{slug}`: holdings by chain, and the DAO's own tokens separately. Source: docs/providers.md, section 3.1.
 */
export function toTreasury(slug: string, world: World, now: number): Reply {
  const wallets = world.treasuries(slug)
  if (wallets.length === 0) return textReply('Protocol not found', 400)
  const chainTvls: Record<string, Series> = {}
  const today = Math.floor(now / DAY) * DAY
  const times = Array.from({ length: HISTORY_DAYS }, (_, day) => today - (HISTORY_DAYS - 1 - day) * DAY)
  for (const at of [...times, now]) {
    const date = Math.floor(at / 1000)
    for (const { chain, address } of wallets) {
      for (const { symbol, balance, decimals, price, isOwn, isSpam } of world.treasury(chain, address, at) ?? []) {
        if (price === null || isSpam || balance === 0n) continue
        const quantity = Number(balance) / 10 ** decimals
        const name = CHAIN_NAMES[chain] ?? `${chain.charAt(0).toUpperCase()}${chain.slice(1)}`
        for (const key of isOwn ? ['OwnTokens', `${name}-OwnTokens`] : [name]) {
          chainTvls[key] ??= { tvl: [], tokensInUsd: [], tokens: [] }
          addTo(chainTvls[key], date, symbol, quantity, quantity * price)
        }
        for (const key of isOwn ? [] : NOT_CHAINS) {
          chainTvls[key] ??= { tvl: [], tokensInUsd: [], tokens: [] }
          addTo(chainTvls[key], date, symbol, quantity / 3, (quantity * price) / 3)
        }
      }
    }
  }
  const currentChainTvls = Object.fromEntries(
    Object.entries(chainTvls).map(([key, { tvl }]) => [key, tvl.at(-1)?.totalLiquidityUSD ?? 0]),
  )
  return jsonReply({ name: slug, slug, treasury: `${slug}.js`, currentChainTvls, chainTvls, raises: [] })
}

/** Dates are sorted, so a point is always added to the last one. */
function addTo(series: Series, date: number, symbol: string, quantity: number, usd: number): void {
  if (series.tvl.at(-1)?.date !== date) {
    series.tvl.push({ date, totalLiquidityUSD: 0 })
    series.tokens.push({ date, tokens: {} })
    series.tokensInUsd.push({ date, tokens: {} })
  }
  const [total, tokens, values] = [series.tvl.at(-1), series.tokens.at(-1)?.tokens, series.tokensInUsd.at(-1)?.tokens]
  if (!total || !tokens || !values) return
  total.totalLiquidityUSD += usd
  tokens[symbol] = (tokens[symbol] ?? 0) + quantity
  values[symbol] = (values[symbol] ?? 0) + usd
}
