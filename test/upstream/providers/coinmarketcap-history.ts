import type { Reply, UpstreamRequest } from '../exchange.ts'
import { type Asset, type History, type Quote, toSlug, type World } from '../world.ts'
import { toAnswer, toFailure } from './coinmarketcap-reply.ts'
import { toSelection } from './coinmarketcap-selection.ts'
import { toWindow, type Window } from './coinmarketcap-window.ts'

const DEFAULT_AUX = 'price,volume,market_cap,circulating_supply,total_supply,quote_timestamp,is_active,is_fiat'
const AUX = new Set([...DEFAULT_AUX.split(','), 'search_interval'])

/**
 * `quotes/historical`, oldest first: for each step the quote closest to it in time; for a word such as `daily` the
 * first quote of the period. Steps without a quote are omitted. Coins are keyed by id, or by symbol with an array
 * value. Source: docs/providers.md, section 1.2.
 */
export function answerHistory(request: UpstreamRequest, world: World): Reply {
  const { query, now } = request
  const selection = toSelection(query, world, (asset) => toSlug(asset.name))
  if ('invalid' in selection) return toFailure(400, now, selection.invalid)
  const aux = new Set((query.get('aux') ?? DEFAULT_AUX).split(','))
  if (![...aux].every((name) => AUX.has(name))) return toFailure(400, now, 'Invalid value for "aux"')
  const window = toWindow(query, now)
  if ('invalid' in window) return toFailure(400, now, window.invalid)

  const members = new Map<string, string[]>()
  let points = 0
  for (const { key, asset } of selection.coins) {
    const quotes = toQuotes(asset, world, window, aux)
    if (quotes === null) continue
    points += quotes.length
    const coin = toCoin(asset, quotes, aux)
    const member = selection.by === 'symbol' ? key : String(asset.cmcId)
    members.set(member, [...(members.get(member) ?? []), coin])
  }
  const data = [...members].map(([member, coins]) => {
    return `${JSON.stringify(member)}:${selection.by === 'symbol' ? `[${coins.join(',')}]` : coins[0]}`
  })
  return toAnswer(`{${data.join(',')}}`, Math.max(1, Math.ceil(points / 100)), now)
}

function toCoin(asset: Asset, quotes: readonly string[], aux: ReadonlySet<string>): string {
  const active = aux.has('is_active') ? '"is_active":1,' : ''
  const fiat = aux.has('is_fiat') ? '"is_fiat":0,' : ''
  const facts = `"id":${asset.cmcId},"name":${JSON.stringify(asset.name)},"symbol":${JSON.stringify(asset.symbol)}`
  return `{${facts},${active}${fiat}"quotes":[${quotes.join(',')}]}`
}

/** Quotes as JSON texts; null for a coin without history. */
function toQuotes(asset: Asset, world: World, window: Window, aux: ReadonlySet<string>): string[] | null {
  const history = world.history(asset)
  if (history === null) return null
  const render = createQuoteWriter(aux)
  const quotes: string[] = []
  for (const [index, step] of window.steps.entries()) {
    const quote = window.isCalendar
      ? history.firstIn(step, window.to(index))
      : closestTo(step, history, window.from(index), window.to(index))
    if (quote !== null) quotes.push(render(quote, step))
  }
  return quotes
}

/** The quote closest to `at` of those at or after `from` and before `to`. */
function closestTo(at: number, history: History, from: number, to: number): Quote | null {
  const after = history.firstIn(at, to)
  if (after?.at === at) return after
  const last = history.lastAt(Math.min(at, to - 1))
  const before = last !== null && last.at >= from ? last : null
  if (before === null || after === null) return before ?? after
  return at - before.at <= after.at - at ? before : after
}

/** Writes text instead of objects: a back-fill requests hundreds of thousands of points from this single process. */
function createQuoteWriter(aux: ReadonlySet<string>): (quote: Quote, searched: number) => string {
  const [price, volume, marketCap, circulating, total, timestamp, searchInterval] = [
    aux.has('price'),
    aux.has('volume'),
    aux.has('market_cap'),
    aux.has('circulating_supply'),
    aux.has('total_supply'),
    aux.has('quote_timestamp'),
    aux.has('search_interval'),
  ]
  return (quote, searched) => {
    const at = new Date(quote.at).toISOString()
    let usd = `"percent_change_1h":${quote.change1h},"percent_change_24h":${quote.change24h},"percent_change_7d":${quote.change7d},"percent_change_30d":${quote.change30d}`
    if (price) usd += `,"price":${quote.price}`
    if (volume) usd += `,"volume_24h":${quote.volume24h}`
    if (marketCap) usd += `,"market_cap":${quote.marketCap}`
    if (total) usd += `,"total_supply":${quote.totalSupply}`
    if (circulating) usd += `,"circulating_supply":${quote.circulatingSupply}`
    if (timestamp) usd += `,"timestamp":"${at}"`
    const search = searchInterval ? `"search_interval":"${new Date(searched).toISOString()}",` : ''
    return `{${search}"timestamp":"${at}","quote":{"USD":{${usd}}}}`
  }
}
