import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { indexCompositionsRoute } from '../../api/routes/index/compositions.ts'
import { indexWeightsRoute } from '../../api/routes/index/weights.ts'
import { type BasketIndex, type Composition, toComposition } from '../../shared/registry/index-records.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import index from '../../workers/jobs/index-points.ts'
import { runJob } from '../../workers/run/runner.ts'
import { getToken } from '../support/entities.ts'
import { storeQuotes } from '../support/quotes.ts'
import { createRandom } from '../support/random.ts'
import { createServedPipeline, type ServedPipeline } from '../support/served-pipeline.ts'

const SEED = 1717
const SLOT = 300_000
const HOUR = 3_600_000
const DAY = 24 * HOUR
const NOW = Date.parse('2024-05-06T07:06:09Z')
const FIRST = NOW - (NOW % SLOT) - 3 * DAY
/** The first two changes: within a slot, and within the 24 hours before the last slot. */
const CHANGES = [FIRST + DAY + 130_000, FIRST + 2 * DAY + 14 * HOUR]
const AHEAD = NOW + HOUR

interface Quote {
  readonly token: number
  readonly at: number
  readonly price: number
}
interface Point {
  readonly at: number
  readonly observed: number
  readonly composition: Composition
  readonly value: number
}
type Weights = z.infer<typeof weights>

const weights = z.array(
  z.object({
    ...{ token: z.string(), symbol: z.string(), quantity: z.number(), priceUsd: z.number().nullable() },
    ...{ valueUsd: z.number().nullable(), weight: z.number().nullable(), contribution24h: z.number().nullable() },
  }),
)
const compositions = z.array(
  z.object({
    ...{ _id: z.string(), from: z.string(), to: z.string().nullable() },
    elements: z.array(z.object({ token: z.string(), symbol: z.string(), quantity: z.number() })),
  }),
)
const series = z.object({ data: z.array(z.object({ quote: z.object({ USD: z.object({ price: z.number() }) }) })) })
const history = z.array(z.object({ valueUsd: z.number(), composition: z.string(), createdAt: z.string() }))

let pipeline: ServedPipeline
let basket: BasketIndex
const random = createRandom(SEED)
const quotes: Quote[] = []
/** The first price of each slot, by token and slot. */
const prices = new Map<string, Quote>()
let points: readonly Point[]

/**
 * UNI and AAVE are members throughout, ENS until its prices end, YFI from the second change on; the last composition is in the
 * future.
 */
function toBasket(): BasketIndex {
  const registry = loadRegistry()
  const elementOf = (symbol: string, quantity: string) => ({ token: getToken(registry, symbol), quantity })
  const [UNI, AAVE, ENS, YFI] = ['UNI', 'AAVE', 'ENS', 'YFI'] as const
  const list = [
    toComposition(registry.index.launch, [elementOf(UNI, '3.5'), elementOf(AAVE, '0.25'), elementOf(ENS, '1')]),
    toComposition(CHANGES[0] as number, [elementOf(UNI, '1.1'), elementOf(AAVE, '0.75'), elementOf(ENS, '2')]),
    toComposition(CHANGES[1] as number, [elementOf(YFI, '0.015'), elementOf(UNI, '2'), elementOf(AAVE, '0.5')]),
    toComposition(AHEAD, [elementOf(UNI, '1')]),
  ]
  return { ...registry.index, compositions: list }
}

/**
 * A random walk of prices, two in each slot; a token has none in one of twenty slots, and ENS has none from the second change
 * on.
 */
function makeQuotes(): void {
  const tokens = [...new Set(basket.compositions.flatMap(({ elements }) => elements.map(({ token }) => token)))]
  for (const [rank, { key, symbol }] of tokens.entries()) {
    let price = 10 * (rank + 1)
    for (let slot = FIRST; slot < NOW; slot += SLOT) {
      if ((symbol === 'ENS' && slot >= (CHANGES[1] as number)) || random.chance(0.05)) continue
      for (const part of [0, 1]) {
        price *= 1 + (random.next() - 0.5) / 50
        const at = slot + part * 150_000 + random.below(60_000)
        if (at <= NOW) quotes.push({ token: key, at, price })
      }
    }
  }
  for (const quote of quotes) {
    const place = `${quote.token} ${quote.at - (quote.at % SLOT)}`
    if (!prices.has(place)) prices.set(place, quote)
  }
}

const priceIn = (token: number, slot: number) => prices.get(`${token} ${slot}`)?.price

/** The index as a plain computation: every slot in which each member has a price. */
function toPoints(): Point[] {
  const slots = Array.from({ length: Math.ceil((NOW - FIRST) / SLOT) }, (_, n) => FIRST + n * SLOT)
  return slots.flatMap((at) => {
    const composition = basket.compositions.findLast(({ validFrom }) => validFrom <= at) as Composition
    const firsts = composition.elements.map(({ token }) => prices.get(`${token.key} ${at}`))
    if (firsts.some((first) => first === undefined)) return []
    const worth = composition.elements.map(({ quantity }, n) => Number(quantity) * (firsts[n]?.price ?? 0))
    const value = worth.reduce((sum, one) => sum + one, 0)
    return [{ at, composition, value, observed: Math.max(...firsts.map((first) => first?.at ?? 0)) }]
  })
}

beforeAll(async () => {
  basket = toBasket()
  pipeline = await createServedPipeline({ now: NOW, registry: { ...loadRegistry(), index: basket } })
  makeQuotes()
  points = toPoints()
  await storeQuotes(pipeline.database.db, quotes)
  const { context } = pipeline
  await runJob(index, index.connect(context), context, { kind: 'range', from: FIRST, to: NOW, interval: '5m' })
  pipeline.changeFeed.commit('index')
})
afterAll(() => pipeline?.close())

const get = async (path: string, query: Record<string, string> = {}) => {
  const response = await fetch(`${pipeline.url}${path}?${new URLSearchParams(query)}`)
  const body: unknown = await response.json()
  expect(response.status, JSON.stringify(body)).toBe(200)
  return { body, headers: response.headers }
}
const iso = (ms: number) => new Date(ms).toISOString()

it('any value of the index can be computed from public data, as in the guide', async () => {
  const { body } = await get('/data/index/compositions')
  const all = compositions.parse(body)
  const moments = [...CHANGES, ...Array.from({ length: 30 }, () => random.pick(points).at)]
  let found = 0
  for (const time of moments) {
    const slot = time - (time % SLOT)
    const range = { start: iso(slot), end: iso(slot + SLOT) }
    const [inForce, ...rest] = all.filter(({ from, to }) => from <= range.start && (to === null || range.start < to))
    expect(rest).toEqual([])
    const own = await Promise.all(
      (inForce?.elements ?? []).map(async ({ token: id, quantity }) => {
        const query = { id, interval: '5m', ...range }
        const [first] = series.parse((await get('/data/tokens/historic-financial', query)).body).data
        return quantity * (first?.quote.USD.price ?? Number.NaN)
      }),
    )
    const value = own.reduce((sum, one) => sum + one, 0)
    const [point] = history.parse((await get('/data/index/historic', range)).body)
    expect(point?.valueUsd, range.start).toEqual(Number.isNaN(value) ? undefined : expect.closeTo(value, 9))
    if (point === undefined) continue
    expect(point.composition).toBe(inForce?._id)
    found++
  }
  expect(found).toBeGreaterThanOrEqual(30)
})

describe('GET /data/index/compositions', () => {
  it('lists each past and current composition with its start and end', async () => {
    const { body } = await get('/data/index/compositions')
    expect(indexCompositionsRoute.response.parse(body)).toEqual(body)
    const past = basket.compositions.slice(0, -1)
    expect(compositions.parse(body).map(({ _id, from, to }) => [_id, from, to])).toEqual(
      past.map(({ id, validFrom }, n) => {
        const next = past[n + 1]
        return [id, iso(validFrom), next === undefined ? null : iso(next.validFrom)]
      }),
    )
    const existing = await get('/data/index/compositions', { asOf: iso((CHANGES[1] as number) - 1) })
    expect(compositions.parse(existing.body).map(({ to }) => to)).toEqual([iso(CHANGES[0] as number), null])
  })

  it('includes the next composition when it becomes active', async () => {
    pipeline.clock.now = AHEAD
    try {
      expect(compositions.parse((await get('/data/index/compositions')).body)).toHaveLength(4)
    } finally {
      pipeline.clock.now = NOW
    }
  })
})

/** Contribution of each token, summed from value to value, with the changes between two compositions. */
function recount(
  last: Point,
  begin = points.findLast(({ at }) => at <= last.at - DAY && at > last.at - DAY - 2 * SLOT),
) {
  if (begin === undefined) return undefined
  const way = points.filter(({ at }) => at >= begin.at && at <= last.at)
  const gains = new Map<string, number>()
  let rebalanced = 0
  for (const [n, to] of way.slice(1).entries()) {
    const from = way[n] as Point
    let cached = from.value
    for (const { token, quantity } of from.composition.elements) {
      const before = priceIn(token.key, from.at) ?? Number.NaN
      const gain = Number(quantity) * ((priceIn(token.key, to.at) ?? before) - before)
      gains.set(token.id, (gains.get(token.id) ?? 0) + gain)
      cached += gain
    }
    rebalanced += to.value - cached
  }
  const percent = (usd: number) => (100 * usd) / begin.value
  const of = new Map([...gains].map(([token, usd]) => [token, percent(usd)]))
  return { change: percent(last.value - begin.value), rebalance: percent(rebalanced), of }
}

function expectExplained(found: Weights, headers: Headers, last: Point) {
  const header = (name: string) => Number(headers.get(`x-index-${name}`) ?? Number.NaN)
  const expected = recount(last)
  const members = new Set(last.composition.elements.map(({ token }) => token.id))
  const ids = new Set([...members, ...(expected?.of.keys() ?? [])])
  expect(found.map(({ token }) => token).sort()).toEqual([...ids].sort())
  expect(header('value')).toBeCloseTo(last.value, 9)
  expect(headers.get('x-data-as-of')).toBe(iso(last.observed))
  const sumOf = (member: 'valueUsd' | 'weight' | 'contribution24h') =>
    found.reduce((sum, one) => sum + (one[member] ?? Number.NaN), 0)
  expect(sumOf('weight')).toBeCloseTo(1, 12)
  expect(sumOf('valueUsd')).toBeCloseTo(last.value, 9)
  for (const { token, quantity, priceUsd, valueUsd, weight, contribution24h } of found) {
    const element = last.composition.elements.find((one) => one.token.id === token)
    const key = pipeline.registry.tokenById.get(token)?.key ?? 0
    expect(quantity).toBe(Number(element?.quantity ?? 0))
    expect(priceUsd).toBe(priceIn(key, last.at) ?? null)
    expect(valueUsd).toBe(quantity === 0 ? 0 : quantity * (priceUsd ?? Number.NaN))
    expect(weight).toBeCloseTo((valueUsd ?? Number.NaN) / last.value, 12)
    if (expected === undefined) expect(contribution24h).toBeNull()
    else expect(contribution24h, token).toBeCloseTo(expected.of.get(token) ?? 0, 9)
  }
  if (expected === undefined) return
  expect(header('change-24h')).toBeCloseTo(expected.change, 9)
  expect(header('rebalance-24h')).toBeCloseTo(expected.rebalance, 9)
  expect(sumOf('contribution24h') + header('rebalance-24h')).toBeCloseTo(header('change-24h'), 9)
}

describe('GET /data/index/weights', () => {
  it('explains the newest value, with a rebalance and a removed member', async () => {
    const { body, headers } = await get('/data/index/weights')
    expect(indexWeightsRoute.response.parse(body)).toEqual(body)
    const found = weights.parse(body)
    expectExplained(found, headers, points.at(-1) as Point)
    const gone = found.find(({ symbol }) => symbol === 'ENS')
    expect(gone).toMatchObject({ quantity: 0, priceUsd: null, valueUsd: 0, weight: 0 })
    expect(gone?.contribution24h).not.toBe(0)
    expect(Math.abs(Number(headers.get('x-index-rebalance-24h')))).toBeGreaterThan(1)
    const values = found.map(({ valueUsd }) => valueUsd ?? 0)
    expect(values).toEqual(values.toSorted((a, b) => b - a))
  })

  it('explains values at random times with the data known then', async () => {
    const moments = Array.from({ length: 25 }, () => FIRST + random.below(NOW - FIRST))
    const [withChange, without] = [new Set<number>(), new Set<number>()]
    for (const time of moments) {
      const last = points.findLast(({ observed }) => observed <= time && observed > time - 2 * SLOT)
      const { body, headers } = await get('/data/index/weights', { asOf: iso(time) })
      if (last === undefined) expect(body).toEqual([])
      else {
        expectExplained(weights.parse(body), headers, last)
        ;(headers.has('x-index-change-24h') ? withChange : without).add(time)
      }
    }
    expect(withChange.size).toBeGreaterThan(5)
    expect(without.size).toBeGreaterThan(2)
  })

  it('explains several days with days, and has no contribution where the history is shorter', async () => {
    const last = points.at(-1) as Point
    const longer = z.array(z.object({ token: z.string(), contribution: z.number().nullable() }))
    const short = await get('/data/index/weights', { days: '7' })
    expect(longer.parse(short.body).every(({ contribution }) => contribution === null)).toBe(true)
    expect(short.headers.has('x-index-change')).toBe(false)
    // The prices of one day a week earlier: the period begins up to a day before its start.
    const [weekAgo, members] = [last.at - 7 * DAY - 5 * HOUR, basket.compositions[0]?.elements ?? []]
    const old = members.map(({ token }, rank) => ({ token: token.key, at: weekAgo + 1000, price: 8 * (rank + 1) }))
    await storeQuotes(pipeline.database.db, old)
    const { context } = pipeline
    await runJob(index, index.connect(context), context, {
      ...{ kind: 'range', from: weekAgo, to: weekAgo + SLOT, interval: '5m' },
    })
    for (const quote of old) prices.set(`${quote.token} ${weekAgo}`, quote)
    const begin: Point = {
      ...{ at: weekAgo, observed: weekAgo + 1000, composition: basket.compositions[0] as Composition },
      value: members.reduce((sum, { quantity }, rank) => sum + Number(quantity) * 8 * (rank + 1), 0),
    }
    points = [begin, ...points]
    pipeline.changeFeed.commit('index')
    const { body, headers } = await get('/data/index/weights', { days: '7' })
    expect(indexWeightsRoute.response.parse(body)).toEqual(body)
    const expected = recount(last, begin)
    const found = longer.parse(body)
    expect(found.map(({ token }) => token).sort()).toEqual([...(expected?.of.keys() ?? [])].sort())
    for (const { token, contribution } of found)
      expect(contribution).toBeCloseTo(expected?.of.get(token) ?? Number.NaN, 9)
    expect(Number(headers.get('x-index-change'))).toBeCloseTo(expected?.change ?? Number.NaN, 9)
    expect(Number(headers.get('x-index-rebalance'))).toBeCloseTo(expected?.rebalance ?? Number.NaN, 9)
    expect(headers.get('x-index-since')).toBe(iso(weekAgo))
    const usual = z.array(z.looseObject({})).parse((await get('/data/index/weights')).body)
    expect(usual.every((one) => !('contribution' in one))).toBe(true)
    points = points.slice(1)
  })

  it('returns an empty list before the launch, and rejects the future', async () => {
    expect((await get('/data/index/weights', { asOf: '2022-03-01' })).body).toEqual([])
    const response = await fetch(`${pipeline.url}/data/index/weights?asOf=2030-01-01`)
    expect(await response.json()).toMatchObject({ code: 'invalid_parameter', param: 'asOf' })
  })

  it('sorts and filters, and is cached until the index changes', async () => {
    const sorted = weights.parse((await get('/data/index/weights', { sort: '-contribution24h' })).body)
    const created = sorted.map(({ contribution24h }) => contribution24h ?? Number.NaN)
    expect(created).toEqual(created.toSorted((a, b) => b - a))
    const { body, headers } = await get('/data/index/weights', { filter: 'symbol=UNI' })
    expect(weights.parse(body).map(({ symbol }) => symbol)).toEqual(['UNI'])
    expect(headers.get('x-total-count')).toBe('1')
    const csv = await fetch(`${pipeline.url}/data/index/weights?format=csv`)
    expect((await csv.text()).split('\n')[0]).toContain('"contribution24h"')
  })
})
