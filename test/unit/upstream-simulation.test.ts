import { describe, expect, it, test } from 'vitest'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { createSimulatedWorld } from '../upstream/simulated.ts'
import { DAY, FIVE_MINUTES, HOUR, percentChange } from '../upstream/world.ts'

const registry = loadRegistry()
const NOW = Date.UTC(2026, 10, 20, 12, 3, 20)
const world = createSimulatedWorld(registry, 1)
const launched = world.assets.filter((asset) => world.listing(asset, NOW) !== null)

describe('simulated market', () => {
  test('returns the same values in any order of requests', () => {
    const times = Array.from({ length: 200 }, (_, index) => Date.UTC(2024, 0, 1) + index * 7 * HOUR)
    const [asset] = launched
    const repeated = createSimulatedWorld(registry, 1)
    const newestPriceAt = (which: typeof world, at: number) => asset && which.history(asset)?.lastAt(at)
    const backwards = times.toReversed().map((at) => newestPriceAt(repeated, at))
    expect(times.map((at) => newestPriceAt(world, at))).toEqual(backwards.toReversed())
  })

  test('differs for another seed', () => {
    const second = createSimulatedWorld(registry, 2)
    const same = launched.filter((asset) => second.listing(asset, NOW)?.price === world.listing(asset, NOW)?.price)
    expect(same).toEqual([])
  })

  test('has positive prices and consistent supplies for every token', () => {
    for (const asset of launched) {
      const listing = world.listing(asset, NOW)
      expect(listing?.price).toBeGreaterThan(0)
      expect(listing?.circulatingSupply).toBeLessThanOrEqual(listing?.totalSupply ?? 0)
      expect(listing?.totalSupply).toBeLessThanOrEqual(listing?.maxSupply ?? Number.POSITIVE_INFINITY)
      expect(listing?.marketCap).toBe((listing?.price ?? 0) * (listing?.circulatingSupply ?? 0))
    }
  })

  test('has tokens with and without a maximum supply, a TVL and a full history', () => {
    const listings = launched.map((asset) => world.listing(asset, NOW))
    expect(new Set(listings.map((listing) => listing?.maxSupply === null))).toEqual(new Set([true, false]))
    expect(new Set(listings.map((listing) => listing?.tvl === null))).toEqual(new Set([true, false]))
    const firsts = new Set(world.assets.map((asset) => world.history(asset)?.first))
    expect(firsts.size).toBeGreaterThan(1)
  })

  test('has a realistic distribution of market caps and volumes', () => {
    const listings = registry.tokens.flatMap((token) => world.listing(token, NOW) ?? [])
    const caps = listings.map(({ marketCap }) => marketCap ?? 0)
    const total = caps.reduce((sum, cap) => sum + cap, 0)
    expect(total).toBeGreaterThan(1e10)
    expect(total).toBeLessThan(2e11)
    expect(Math.max(...caps) / total).toBeLessThan(0.25)
    for (const { volume24h, marketCap } of listings) {
      const turnover = (volume24h ?? 0) / (marketCap ?? 1)
      expect(turnover).toBeGreaterThan(0.01)
      expect(turnover).toBeLessThan(0.3)
    }
  })

  test('has prices in the order of magnitude of the real ones', () => {
    const priceOf = (symbol: string) => {
      const token = registry.tokens.find((one) => one.symbol === symbol)
      return token === undefined ? 0 : (world.listing(token, NOW)?.price ?? 0)
    }
    for (const [symbol, price] of Object.entries({ UNI: 7, AAVE: 110, YFI: 7000, CRV: 0.7, LDO: 1.8 })) {
      expect(priceOf(symbol)).toBeGreaterThan(price / 5)
      expect(priceOf(symbol)).toBeLessThan(price * 5)
    }
  })

  test('has positively correlated daily returns', () => {
    const days = Array.from({ length: 365 }, (_, index) => NOW - index * DAY)
    const assets = launched.filter((asset) => (world.history(asset)?.first ?? NOW) < NOW - 400 * DAY).slice(0, 30)
    const returns = assets
      .filter(({ symbol }) => !['USDC', 'USDT', 'DAI'].includes(symbol))
      .map((asset) => {
        const priceAt = (at: number) => world.history(asset)?.lastAt(at)?.price ?? Number.NaN
        return days.map((at) => Math.log(priceAt(at) / priceAt(at - DAY)))
      })
    const pairs = returns.flatMap((a, at) => returns.slice(at + 1).map((b) => correlation(a, b)))
    const mean = pairs.reduce((sum, each) => sum + each, 0) / pairs.length
    expect(mean).toBeGreaterThan(0.35)
    expect(mean).toBeLessThan(0.85)
    const spreads = returns.map((own) => Math.sqrt(own.reduce((sum, each) => sum + each * each, 0) / own.length))
    expect(Math.max(...spreads) / Math.min(...spreads)).toBeGreaterThan(1.5)
  })

  test('has a new price in every 5-minute slot', () => {
    const [asset] = launched
    const history = asset ? world.history(asset) : null
    const prices = Array.from({ length: 288 }, (_, index) => history?.lastAt(NOW - DAY + index * FIVE_MINUTES)?.price)
    expect(new Set(prices).size).toBe(288)
  })

  test('returns prices and changes that match its history', () => {
    for (const asset of launched.slice(0, 20)) {
      const listing = world.listing(asset, NOW)
      const history = world.history(asset)
      const priceAt = (at: number): number | null => history?.lastAt(at)?.price ?? null
      expect(listing?.price).toBe(priceAt(listing?.at ?? 0))
      expect(listing?.change7d).toBe(percentChange(listing?.price ?? null, priceAt((listing?.at ?? 0) - 7 * DAY)))
    }
  })

  test('returns nothing for a token before its launch', () => {
    const late = world.assets.find((asset) => (world.history(asset)?.first ?? 0) > Date.UTC(2022, 0, 1))
    const history = late ? world.history(late) : null
    const first = history?.first ?? 0
    expect(history?.lastAt(first - 1)).toBeNull()
    expect(history?.firstIn(first - DAY, first)).toBeNull()
    expect(history?.firstIn(first - DAY, first + 1)).toMatchObject({ at: first, change1h: null, change30d: null })
  })

  test('has protocols with a TVL that sums up to the TVL of the token', () => {
    const protocols = world.protocols(NOW)
    const children = protocols.filter((protocol) => protocol.parent !== null)
    expect(children.length).toBeGreaterThan(0)
    for (const token of registry.tokens) {
      const tvl = world.listing(token, NOW)?.tvl ?? null
      const { defillama, defillamaSlug } = registry.daoBySlug.get(token.dao) ?? {}
      if (tvl === null || !defillama) continue
      const slug = defillamaSlug ?? defillama
      const parts = protocols.filter((protocol) => protocol.slug === slug || protocol.parent === defillama)
      const sum = parts.reduce((total, part) => total + (part.tvl ?? 0), 0)
      expect(Math.abs(sum - tvl)).toBeLessThanOrEqual(1)
    }
  })
})

function correlation(seriesA: readonly number[], seriesB: readonly number[]): number {
  const meanOf = (values: readonly number[]) => values.reduce((sum, each) => sum + each, 0) / values.length
  const [a, b] = [meanOf(seriesA), meanOf(seriesB)]
  const sumOf = (toTerm: (x: number, y: number) => number) =>
    seriesA.reduce((sum, x, at) => sum + toTerm(x - a, (seriesB[at] ?? 0) - b), 0)
  return sumOf((x, y) => x * y) / Math.sqrt(sumOf((x) => x * x) * sumOf((_, y) => y * y))
}

describe('simulated governance', () => {
  const spaceOf = (slug: string, of = world) => {
    const space = of.space(registry.daoBySlug.get(slug)?.snapshotSpace ?? '', NOW)
    if (space === null) throw new Error(`${slug} has no space`)
    return space
  }

  it('has the same proposals and votes in another world of the same seed', () => {
    expect(spaceOf('hop', createSimulatedWorld(registry, 1))).toEqual(spaceOf('hop'))
    const other = spaceOf('hop', createSimulatedWorld(registry, 2))
    expect(other.votes.map(({ voter }) => voter)).not.toEqual(spaceOf('hop').votes.map(({ voter }) => voter))
  })

  it('has distinct titles, choices of all voting types, and one vote of a voter on a proposal', () => {
    const { proposals, votes } = spaceOf('uniswap')
    const titles = new Set(proposals.map(({ title }) => title))
    expect(titles.size / proposals.length).toBeGreaterThan(0.7)
    const types = ['approval', 'basic', 'quadratic', 'ranked-choice', 'single-choice', 'weighted']
    expect([...new Set(proposals.map(({ type }) => type))].sort()).toEqual(types)
    const cast = votes.map(({ proposal, voter }) => `${proposal} ${voter.toLowerCase()}`)
    expect(new Set(cast).size).toBe(cast.length)
    expect(new Set(votes.map(({ id }) => id)).size).toBe(votes.length)
  })

  it('has hundreds of votes on proposals of large DAOs, with a power law of voting power', () => {
    const { proposals, votes } = spaceOf('uniswap')
    expect(Math.max(...proposals.map((one) => one.votes))).toBeGreaterThan(500)
    const most = proposals.reduce((a, b) => (a.votes > b.votes ? a : b))
    const powers = votes.filter(({ proposal }) => proposal === most.id).map(({ power }) => power)
    const total = powers.reduce((sum, power) => sum + power, 0)
    const strongest = powers.sort((a, b) => b - a).slice(0, 10)
    expect(strongest.reduce((sum, power) => sum + power, 0) / total).toBeGreaterThan(0.4)
  })

  it('has voters that vote in several DAOs', () => {
    const votersOf = (slug: string) => new Set(spaceOf(slug).votes.map(({ voter }) => voter.toLowerCase()))
    const [uniswap, aave] = [votersOf('uniswap'), votersOf('aave')]
    expect([...aave].filter((voter) => uniswap.has(voter)).length).toBeGreaterThan(20)
  })

  it('has power changes of delegates without a break', () => {
    const chain = world.chain('ethereum')
    const token = registry.daoBySlug.get('uniswap')?.votingToken?.address ?? ''
    const logs = chain?.logs(0, chain.headAt(NOW), new Set([token])) ?? []
    const powers = new Map<string, bigint>()
    const changed = logs.filter(({ data }) => data.length === 2 + 128)
    expect(changed.length).toBeGreaterThan(200)
    for (const { topics, data } of changed) {
      const [delegate = ''] = topics.slice(1)
      expect(BigInt(data.slice(0, 66))).toBe(powers.get(delegate) ?? 0n)
      powers.set(delegate, BigInt(`0x${data.slice(66)}`))
    }
  })

  it('has treasuries whose stablecoins are spent monthly and bought back', () => {
    const dao = registry.daoBySlug.get('uniswap')
    const [{ chain = '', address = '' } = {}] = dao?.treasuries ?? []
    const balances = Array.from({ length: 200 }, (_, day) => {
      const held = world.treasury(chain, address, NOW - (200 - day) * DAY) ?? []
      return held.find(({ symbol }) => symbol === 'USDC')?.balance ?? 0n
    })
    const steps = balances.slice(1).map((balance, at) => balance - (balances[at] ?? 0n))
    expect(steps.filter((step) => step < 0n).length).toBeGreaterThan(3)
    expect(steps.filter((step) => step > 0n).length).toBeGreaterThan(1)
    expect(steps.filter((step) => step === 0n).length).toBeGreaterThan(180)
  })
})
