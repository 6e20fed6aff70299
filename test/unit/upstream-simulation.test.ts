import { describe, expect, test } from 'vitest'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { createSimulatedWorld } from '../upstream/simulated.ts'
import { DAY, FIVE_MINUTES, HOUR, percentChange } from '../upstream/world.ts'

const registry = loadRegistry()
const NOW = Date.UTC(2026, 10, 20, 12, 3, 20)
const world = createSimulatedWorld(registry, 1)
const launched = world.assets.filter((asset) => world.listing(asset, NOW) !== null)

describe('the simulated market', () => {
  test('says the same whatever was asked before', () => {
    const times = Array.from({ length: 200 }, (_, index) => Date.UTC(2024, 0, 1) + index * 7 * HOUR)
    const [asset] = launched
    const again = createSimulatedWorld(registry, 1)
    const ask = (which: typeof world, at: number) => asset && which.history(asset)?.lastAt(at)
    const backwards = times.toReversed().map((at) => ask(again, at))
    expect(times.map((at) => ask(world, at))).toEqual(backwards.toReversed())
  })

  test('is another market with another seed', () => {
    const other = createSimulatedWorld(registry, 2)
    const same = launched.filter((asset) => other.listing(asset, NOW)?.price === world.listing(asset, NOW)?.price)
    expect(same).toEqual([])
  })

  test('keeps prices positive and supplies in order for every token', () => {
    for (const asset of launched) {
      const listing = world.listing(asset, NOW)
      expect(listing?.price).toBeGreaterThan(0)
      expect(listing?.circulatingSupply).toBeLessThanOrEqual(listing?.totalSupply ?? 0)
      expect(listing?.totalSupply).toBeLessThanOrEqual(listing?.maxSupply ?? Number.POSITIVE_INFINITY)
      expect(listing?.marketCap).toBe((listing?.price ?? 0) * (listing?.circulatingSupply ?? 0))
    }
  })

  test('has tokens with and without a maximum supply, a TVL and a full past', () => {
    const listings = launched.map((asset) => world.listing(asset, NOW))
    expect(new Set(listings.map((listing) => listing?.maxSupply === null))).toEqual(new Set([true, false]))
    expect(new Set(listings.map((listing) => listing?.tvl === null))).toEqual(new Set([true, false]))
    const firsts = new Set(world.assets.map((asset) => world.history(asset)?.first))
    expect(firsts.size).toBeGreaterThan(1)
  })

  test('moves at every 5-minute slot', () => {
    const [asset] = launched
    const history = asset ? world.history(asset) : null
    const prices = Array.from({ length: 288 }, (_, index) => history?.lastAt(NOW - DAY + index * FIVE_MINUTES)?.price)
    expect(new Set(prices).size).toBe(288)
  })

  test("reports changes that its own past confirms, and today's price as the past has it", () => {
    for (const asset of launched.slice(0, 20)) {
      const listing = world.listing(asset, NOW)
      const history = world.history(asset)
      const priceAt = (at: number): number | null => history?.lastAt(at)?.price ?? null
      expect(listing?.price).toBe(priceAt(listing?.at ?? 0))
      expect(listing?.change7d).toBe(percentChange(listing?.price ?? null, priceAt((listing?.at ?? 0) - 7 * DAY)))
    }
  })

  test('knows nothing of a token before its launch', () => {
    const late = world.assets.find((asset) => (world.history(asset)?.first ?? 0) > Date.UTC(2022, 0, 1))
    const history = late ? world.history(late) : null
    const first = history?.first ?? 0
    expect(history?.lastAt(first - 1)).toBeNull()
    expect(history?.firstIn(first - DAY, first)).toBeNull()
    expect(history?.firstIn(first - DAY, first + 1)).toMatchObject({ at: first, change1h: null, change30d: null })
  })

  test("adds a DAO's protocols up to the TVL that its token reports", () => {
    const protocols = world.protocols(NOW)
    const children = protocols.filter((protocol) => protocol.parent !== null)
    expect(children.length).toBeGreaterThan(0)
    for (const token of registry.tokens) {
      const tvl = world.listing(token, NOW)?.tvl ?? null
      const slug = registry.daoBySlug.get(token.dao)?.defillama
      if (tvl === null || !slug) continue
      const parts = protocols.filter((protocol) => protocol.slug === slug || protocol.parent === slug)
      const sum = parts.reduce((total, part) => total + (part.tvl ?? 0), 0)
      expect(Math.abs(sum - tvl)).toBeLessThanOrEqual(1)
    }
  })
})
