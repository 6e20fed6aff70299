import { jsonReply, type Provider, type Reply, rawJsonReply, textReply } from '../exchange.ts'
import { noise, toNoiseKey, unit } from '../noise.ts'
import type { Protocol, TvlPoint, World } from '../world.ts'
import { toLlamaChain } from './defillama-chains.ts'
import { toTreasury } from './defillama-treasury.ts'

const NOT_FOUND = textReply('Protocol not found', 400)

/** `api.llama.fi`: errors are plain text, an unknown slug is a 400. Source: docs/providers.md, section 3.1. */
export const defillama: Provider = {
  name: 'defillama',
  handle({ path, query, now }, world) {
    if (path === '/protocols') return cached(jsonReply(world.protocols(now).map(toEntry)))
    const summary = /^\/summary\/fees\/([^/]+)$/.exec(path)?.[1]
    if (summary !== undefined) return toFees(decodeURIComponent(summary), query, world, now)
    const [, route, slug] = /^\/(protocol|tvl|treasury)\/([^/]+)$/.exec(path) ?? []
    if (route === undefined || slug === undefined) return textReply('Not found', 404)
    if (route === 'treasury') return toTreasury(decodeURIComponent(slug), world, now)
    const members = membersOf(decodeURIComponent(slug), world, now)
    if (members.length === 0) return NOT_FOUND
    return route === 'tvl' ? rawJsonReply(String(toTvl(members) ?? 0)) : jsonReply(toDetail(slug, members, world, now))
  },
  failure: (status) => textReply(status === 429 ? 'Too many requests' : 'Internal server error', status),
  empty: () => jsonReply([]),
}

/**
 * The protocol with this slug, or the children of the parent with this slug. The id of a renamed parent is not found.
 */
function membersOf(slug: string, world: World, now: number): readonly Protocol[] {
  const all = world.protocols(now)
  const own = all.find((protocol) => protocol.slug === slug)
  return own ? [own] : all.filter((protocol) => protocol.parentSlug === slug)
}

function toTvl(members: readonly Protocol[]): number | null {
  return members.reduce<number | null>((sum, { tvl }) => (tvl === null ? sum : (sum ?? 0) + tvl), null)
}

function toEntry(protocol: Protocol) {
  const chain = protocol.chains.length > 1 ? 'Multi-Chain' : (protocol.chains[0] ?? '-')
  return {
    id: protocol.id,
    name: protocol.name,
    address: toAddress(protocol),
    symbol: protocol.symbol,
    url: protocol.url,
    description: '',
    chain,
    logo: `https://icons.llama.fi/${protocol.slug}.png`,
    audits: '0',
    audit_note: null,
    gecko_id: protocol.geckoId,
    cmcId: protocol.cmcId,
    category: protocol.category,
    chains: protocol.chains,
    module: `${protocol.slug}/index.js`,
    twitter: null,
    oracles: [],
    forkedFrom: [],
    listedAt: protocol.listedAt,
    slug: protocol.slug,
    tvl: protocol.tvl,
    chainTvls: toChainTvls(protocol),
    change_1h: protocol.change1h,
    change_1d: protocol.change1d,
    change_7d: protocol.change7d,
    tokenBreakdowns: {},
    mcap: protocol.marketCap,
    ...(protocol.parent === null ? {} : { parentProtocol: `parent#${protocol.parent}` }),
  }
}

/** Addresses outside Ethereum are prefixed with their chain. */
function toAddress({ address, addressChain }: Protocol): string | null {
  if (address === null || addressChain === null || addressChain === 'ethereum') return address
  return `${toLlamaChain(addressChain)}:${address}`
}

/** The share of each chain is unknown, so the TVL of a protocol on several chains is not split. */
function toChainTvls(protocol: Protocol): Record<string, number> {
  const [chain] = protocol.chains
  return chain !== undefined && protocol.chains.length === 1 && protocol.tvl !== null ? { [chain]: protocol.tvl } : {}
}

function toDetail(slug: string, members: readonly Protocol[], world: World, now: number) {
  const [first] = members
  const parent = first !== undefined && first.slug !== slug
  const tvl = sumByDate(members.map((member) => world.tvlSeries(member, now)))
  const chain = first?.chains.length === 1 ? first.chains[0] : undefined
  const current = toTvl(members)
  const { tvl: _tvl, chainTvls: _chainTvls, ...facts } = first ? toEntry(first) : { tvl: null, chainTvls: null }
  return {
    ...facts,
    ...(parent ? { id: `parent#${first.parent}`, slug, isParentProtocol: true, parentProtocol: undefined } : {}),
    chainTvls: chain === undefined ? {} : { [chain]: { tvl, tokensInUsd: [], tokens: [] } },
    tvl,
    tokensInUsd: [],
    tokens: [],
    currentChainTvls: chain === undefined || current === null ? {} : { [chain]: current },
    raises: [],
  }
}

const toDay = (seconds: number) => Math.floor(seconds / 86_400) * 86_400

/** One in seven protocols has no fees, one in five no revenue. */
export const hasFees = (slug: string) => unit(toNoiseKey(7, `fees ${slug}`), 0) >= 1 / 7
const hasRevenue = (slug: string) => unit(toNoiseKey(7, `revenue ${slug}`), 0) >= 1 / 5

/**
 * `/summary/fees/{slug}`: a point per day at its start; the last one is the current day. Fees are some thousandths of
 * the locked value. Source: DefiLlama/defillama-server `defi/src/api2/routes/dimensions.ts`.
 */
function toFees(slug: string, query: URLSearchParams, world: World, now: number): Reply {
  const dataType = query.get('dataType') ?? 'dailyFees'
  const members = membersOf(slug, world, now)
  const points = sumByDate(members.map((member) => world.tvlSeries(member, now)))
  const days = points.filter(({ date }, index) => toDay(date) !== toDay(points[index - 1]?.date ?? 0))
  if (days.length === 0 || !hasFees(slug)) {
    return textReply(`Fees for ${slug} not found, please visit /overview/fees to see available protocols`, 400)
  }
  const key = toNoiseKey(7, `fees ${slug}`)
  const share = dataType === 'dailyRevenue' ? (hasRevenue(slug) ? 0.2 : null) : 1
  const toUsd = ({ date, totalLiquidityUSD }: TvlPoint) =>
    Math.round(totalLiquidityUSD * 0.0004 * (1 + 0.5 * noise(key, date / 172_800)) * (share ?? 0))
  const chart = share === null ? [] : days.map((day) => [toDay(day.date), toUsd(day)] as const)
  const sumBack = (from: number, count: number) =>
    chart.slice(chart.length - 1 - from - count, chart.length - 1 - from).reduce((sum, [, usd]) => sum + usd, 0)
  const [total24h, total48hto24h] = [sumBack(0, 1), sumBack(1, 1)]
  const [first] = members
  return jsonReply({
    ...{ id: first?.id, name: first?.name, slug, chains: first?.chains ?? [], protocolType: 'protocol' },
    ...{ latestFetchIsOk: true, hasLabelBreakdown: false },
    ...(share === null ? {} : { total24h, total48hto24h, total7d: sumBack(0, 7), total30d: sumBack(0, 30) }),
    ...(share === null ? {} : { totalAllTime: sumBack(0, chart.length - 1) }),
    ...(total24h > 0 && total48hto24h > 0
      ? { change_1d: Number((100 * (total24h / total48hto24h - 1)).toFixed(2)) }
      : {}),
    totalDataChart: query.get('excludeTotalDataChart') === 'true' ? [] : chart,
    totalDataChartBreakdown:
      query.get('excludeTotalDataChartBreakdown') === 'true'
        ? []
        : chart.map(([date, usd]) => [date, { Ethereum: { [first?.name ?? slug]: usd } }]),
  })
}

function sumByDate(series: readonly (readonly TvlPoint[])[]): readonly TvlPoint[] {
  const [only] = series
  if (series.length === 1 && only !== undefined) return only
  const totals = new Map<number, number>()
  for (const point of series.flat()) {
    totals.set(point.date, (totals.get(point.date) ?? 0) + point.totalLiquidityUSD)
  }
  return [...totals].map(([date, totalLiquidityUSD]) => ({ date, totalLiquidityUSD })).sort((a, b) => a.date - b.date)
}

function cached(reply: Reply): Reply {
  return { ...reply, headers: { ...reply.headers, 'cache-control': 'public, max-age=600' } }
}
