import { jsonReply, type Provider, type Reply, rawJsonReply, textReply } from '../exchange.ts'
import type { Protocol, TvlPoint, World } from '../world.ts'
import { toLlamaChain } from './defillama-chains.ts'
import { toTreasury } from './defillama-treasury.ts'

const NOT_FOUND = textReply('Protocol not found', 400)

/** `api.llama.fi`: errors are plain text, a slug that nobody has is a 400. Source: docs/providers.md, section 3.1. */
export const defillama: Provider = {
  name: 'defillama',
  handle({ path, now }, world) {
    if (path === '/protocols') return cached(jsonReply(world.protocols(now).map(toEntry)))
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

/** The protocol of that name, or the children of the parent of that name; the id of a parent that was renamed leads nowhere. */
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

/** Addresses off Ethereum carry their chain's name. */
function toAddress({ address, addressChain }: Protocol): string | null {
  if (address === null || addressChain === null || addressChain === 'ethereum') return address
  return `${toLlamaChain(addressChain)}:${address}`
}

/** The share of each chain is not known, so the TVL of a protocol on several chains is not split. */
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

function sumByDate(series: readonly (readonly TvlPoint[])[]): readonly TvlPoint[] {
  const [only] = series
  if (series.length === 1 && only !== undefined) return only
  const totals = new Map<number, number>()
  for (const point of series.flat()) {
    totals.set(point.date, (totals.get(point.date) ?? 0) + point.totalLiquidityUSD)
  }
  return [...totals]
    .map(([date, totalLiquidityUSD]) => ({ date, totalLiquidityUSD }))
    .sort((left, right) => left.date - right.date)
}

function cached(reply: Reply): Reply {
  return { ...reply, headers: { ...reply.headers, 'cache-control': 'public, max-age=600' } }
}
