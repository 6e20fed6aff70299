import type { Dao, Token } from '../../shared/registry/entities.ts'
import { SIMULATION_START } from './market-process.ts'
import { noise, toNoiseKey, unit } from './noise.ts'
import { toWorth } from './token-facts.ts'
import { DAY, HOUR, type Protocol, percentChange, type TvlPoint, type WorldRegistry } from './world.ts'

const CATEGORIES = ['Dexs', 'Lending', 'Liquid Staking', 'Yield', 'Derivatives', 'CDP', 'Services']
/** Protocols without a DAO in the registry, so that a consumer has entries to skip. */
const STRANGERS = 24

interface Slice {
  readonly protocol: Protocol
  /** Slug of the DAO of which this protocol has a share of the TVL. */
  readonly owner: string
  readonly share: number
}

/** DefiLlama's data in the simulated world. */
export interface SimulatedProtocols {
  list(now: number): readonly Protocol[]
  tvlSeries(protocol: Protocol, now: number): readonly TvlPoint[]
  /** TVL of all protocols of one DAO, null for a DAO that DefiLlama does not know. */
  tvlOfDao(slug: string, at: number): number | null
}

/**
 * One protocol for each DAO with a DefiLlama slug. Every third DAO has two versions under a parent instead, with the
 * DAO's TVL as their sum.
 */
export function createSimulatedProtocols(registry: WorldRegistry, seed: number): SimulatedProtocols {
  const tokens = new Map(registry.tokens.map((token) => [token.id, token]))
  const listed = registry.daos.filter((dao) => dao.defillama !== null)
  const slices = listed.flatMap((dao, index) => toSlices(dao, tokens.get(dao.token ?? ''), seed, index))
  slices.push(...strangers(seed))
  const bySlug = new Map(slices.map((slice) => [slice.protocol.slug, slice]))
  const listedSlugs = new Set(listed.map((dao) => dao.slug))
  const worth = new Map(listed.map((dao) => [dao.slug, toWorth(tokens.get(dao.token ?? '')?.symbol)]))
  const tvlOfOwner = (owner: string, at: number) => toTvl(owner, worth.get(owner) ?? toWorth(undefined), seed, at)
  const tvlOf = (slice: Slice, at: number): number => Math.round(tvlOfOwner(slice.owner, at) * slice.share)

  return {
    list(now) {
      return slices.map((slice) => {
        if (slice.share === 0) return slice.protocol
        const tvl = tvlOf(slice, now)
        return {
          ...slice.protocol,
          tvl,
          change1h: percentChange(tvl, tvlOf(slice, now - HOUR)),
          change1d: percentChange(tvl, tvlOf(slice, now - DAY)),
          change7d: percentChange(tvl, tvlOf(slice, now - 7 * DAY)),
        }
      })
    },
    tvlSeries(protocol, now) {
      const slice = bySlug.get(protocol.slug)
      if (!slice || slice.share === 0) return []
      const points: TvlPoint[] = []
      for (let at = SIMULATION_START; at < now; at += DAY) {
        points.push({ date: at / 1000, totalLiquidityUSD: tvlOf(slice, at) })
      }
      points.push({ date: Math.floor(now / 1000), totalLiquidityUSD: tvlOf(slice, now) })
      return points
    },
    tvlOfDao: (slug, at) => (listedSlugs.has(slug) ? Math.round(tvlOfOwner(slug, at)) : null),
  }
}

/** A tenth to five times the value of the DAO's tokens. TVL changes by the hour, more slowly than prices. */
function toTvl(owner: string, worth: number, seed: number, at: number): number {
  const key = toNoiseKey(seed, `tvl ${owner}`)
  const hours = Math.floor(at / HOUR)
  const logarithm =
    0.02 * noise(key, hours / 5) + 0.1 * noise(key ^ 1, hours / 170) + 0.6 * noise(key ^ 2, hours / 4_000)
  return worth * 0.1 * 50 ** unit(key, -1) * Math.exp(logarithm)
}

/** The time-dependent members, which `list` computes. */
const UNVALUED = { tvl: null, change1h: null, change1d: null, change7d: null, marketCap: null }

function toSlices(dao: Dao, token: Token | undefined, seed: number, index: number): Slice[] {
  const parent = dao.defillama ?? dao.slug
  const slug = dao.defillamaSlug ?? parent
  const key = toNoiseKey(seed, `protocol ${dao.slug}`)
  const unsplit: Protocol = {
    id: String(1_000 + index * 10),
    name: dao.name,
    slug,
    symbol: token?.symbol ?? '-',
    address: token?.contractAddress ?? null,
    addressChain: token?.chain ?? null,
    url: dao.website ?? `https://${slug}.example`,
    category: CATEGORIES[Math.floor(unit(key, -1) * CATEGORIES.length)] ?? 'Services',
    chains: ['Ethereum'],
    geckoId: token?.coingeckoId ?? null,
    cmcId: token?.cmcId ?? null,
    parent: null,
    parentSlug: null,
    listedAt: SIMULATION_START / 1000,
    ...UNVALUED,
  }
  if (index % 3 !== 2) return [{ protocol: unsplit, owner: dao.slug, share: 1 }]
  return [0.7, 0.3].map((share, child) => {
    const version = `V${3 - child}`
    const name = `${dao.name} ${version}`
    const childSlug = `${slug}-${version.toLowerCase()}`
    const id = String(1_001 + index * 10 + child)
    return { protocol: { ...unsplit, id, name, slug: childSlug, parent, parentSlug: slug }, owner: dao.slug, share }
  })
}

function strangers(seed: number): Slice[] {
  return Array.from({ length: STRANGERS }, (_, index) => {
    const slug = `unrelated-protocol-${index + 1}`
    const protocol: Protocol = {
      id: String(100 + index),
      name: `Unrelated Protocol ${index + 1}`,
      slug,
      symbol: '-',
      address: index % 2 === 0 ? '-' : null,
      addressChain: null,
      url: `https://${slug}.example`,
      category: CATEGORIES[index % CATEGORIES.length] ?? 'Services',
      chains: [],
      geckoId: null,
      cmcId: null,
      parent: null,
      parentSlug: null,
      listedAt: SIMULATION_START / 1000,
      ...UNVALUED,
    }
    const owner = `${slug} ${seed}`
    return { protocol, owner, share: index % 4 === 0 ? 0 : 1 }
  })
}
