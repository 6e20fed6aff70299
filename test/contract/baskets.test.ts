import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { routes } from '../../api/routes.ts'
import { createApiDatabase, createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { createTestConfig } from '../support/database.ts'
import { getToken } from '../support/entities.ts'
import { storeQuotes } from '../support/quotes.ts'

const DAY = 86_400_000
const FIRST = Date.parse('2024-02-27T00:00:00Z')
const NOW = Date.parse('2024-03-16T09:00:00Z')
/** 27 February to 16 March. */
const DAYS = 19

const config = createTestConfig()
let database: Awaited<ReturnType<typeof createApiDatabase>>
let api: TestApi

/** Price and supply of a token by day; RBN ends on 13 March and UNI has no price on 5 March. */
const MARKET: Readonly<Record<string, { price: (day: number) => number | undefined; supply: number }>> = {
  UNI: { price: (day) => (day === 7 ? undefined : 10 + day), supply: 600 },
  AAVE: { price: (day) => 100 - day, supply: 15 },
  RBN: { price: (day) => (day < 15 ? 0.5 : undefined), supply: 2000 },
}

beforeAll(async () => {
  database = await createApiDatabase(config)
  const quotes = Object.entries(MARKET).flatMap(([symbol, { price, supply }]) =>
    Array.from({ length: DAYS }, (_, day) => ({ day, value: price(day) })).flatMap(({ day, value }) => {
      const token = getToken(database.registry, symbol).key
      if (value === undefined) return []
      const [first, second] = [FIRST + day * DAY + 60_000, FIRST + day * DAY + 7_200_000]
      const market_cap = value * supply
      return [
        { token, at: first, price: value, market_cap },
        { token, at: second, price: value * 3, market_cap },
      ]
    }),
  )
  await storeQuotes(database.writer, quotes)
  await database.writer.command({
    name: 'index',
    sql: `INSERT INTO index_points SELECT {index: UInt64}, at, at, 100 + number, {composition: String}, 0, now64(3)
FROM (SELECT number, toDateTime64('2024-02-27 00:00:00', 3, 'UTC') + INTERVAL number DAY AS at FROM numbers(19))`,
    params: {
      index: database.registry.index.key,
      composition: database.registry.index.compositions[0]?.id ?? '',
    },
  })
  api = await startApi({ config, ...database, changeFeed: createHandFeed(), now: () => NOW })
})
afterAll(async () => {
  await api?.close()
  await database?.drop()
})

const get = (leaf: string, query: string) => fetch(`${api.url}/data/baskets/${leaf}?${query}`)
const idOf = (symbol: string) => getToken(database.registry, symbol).id

interface Point {
  readonly recordedAt: string
  readonly nav: number | null
  readonly return: number | null
  readonly turnover: number
  readonly members: number
}

async function read(leaf: string, query: string) {
  const response = await get(leaf, query)
  expect(response.status, await response.clone().text()).toBe(200)
  const body: unknown = await response.json()
  routes.find(({ path }) => path === `/data/baskets/${leaf}`)?.response.parse(body)
  return { body, response }
}
const readPoints = async (query: string) => (await read('historic', query)).body as Point[]

describe('/data/baskets/historic', () => {
  it('has a point per day from the first allocation on, at the first prices of the days', async () => {
    const points = await readPoints('of=UNI:0.5,AAVE:0.5&start=2024-02-28&end=2024-03-02')
    const navOf = (day: number) => 50 * ((10 + day) / 11) + 50 * ((100 - day) / 99)
    expect(points.map(({ recordedAt }) => recordedAt.slice(0, 10))).toEqual(['2024-02-28', '2024-02-29', '2024-03-01'])
    points.forEach(({ nav }, place) => {
      expect(nav).toBeCloseTo(navOf(1 + place), 9)
    })
    expect(points[0]).toMatchObject({ nav: 100, return: null, turnover: 0, members: 2 })
    expect(points[1]?.return).toBeCloseTo(navOf(2) / 100 - 1, 12)
  })

  it('has no value on a day without a price of a held token, and counts it as missing', async () => {
    const { body, response } = await read('historic', 'of=UNI:1&start=2024-02-28')
    const points = body as Point[]
    expect(points.find(({ recordedAt }) => recordedAt.startsWith('2024-03-05'))).toMatchObject({
      nav: null,
      return: null,
    })
    expect(points.at(-1)?.recordedAt.slice(0, 10)).toBe('2024-03-16')
    expect(response.headers.get('x-series-points')).toBe('17')
    expect(response.headers.get('x-series-missing')).toBe('1')
    expect(response.headers.get('x-series-interval')).toBe('1d')
  })

  it('starts a year back, or with the first possible day', async () => {
    expect((await readPoints('of=AAVE:1'))[0]?.recordedAt.slice(0, 10)).toBe('2024-02-28')
  })

  it('has table formats and fields', async () => {
    const response = await get('historic', 'of=AAVE:1&start=2024-02-28&end=2024-03-01&format=csv&fields=recordedAt,nav')
    expect((await response.text()).split('\n').slice(0, 2)).toEqual([
      '"recordedAt","nav"',
      '"2024-02-28T00:00:00.000Z",100',
    ])
    const parquet = await get('historic', 'of=AAVE:1&format=parquet')
    expect(
      Buffer.from(await parquet.arrayBuffer())
        .subarray(0, 4)
        .toString(),
    ).toBe('PAR1')
  })
})

interface Report {
  readonly rebalances: readonly {
    readonly scheduledAt: string
    readonly executedAt: string
    readonly turnover: number
    readonly cost: number
    readonly nav: number
    readonly decidedWith: string
    readonly members: readonly { readonly token: string; readonly weight: number; readonly price: number }[]
    readonly excluded: readonly { readonly symbol: string; readonly reason: string }[]
  }[]
  readonly [member: string]: unknown
}
const readReport = async (query: string) => (await read('report', query)).body as Report

describe('/data/baskets/report', () => {
  it('decides with market caps of the day before', async () => {
    // On 27 February the market caps are 6,000, 1,500 and 1,000.
    const { rebalances, universe } = await readReport('top=2&weights=marketCap&start=2024-02-28&end=2024-03-03')
    const [first, second] = rebalances
    expect(first?.decidedWith).toBe('2024-02-27T00:00:00.000Z')
    const weights = Object.fromEntries(first?.members.map(({ token, weight }) => [token, weight]) ?? [])
    expect(weights[idOf('UNI')]).toBeCloseTo(0.8, 12)
    expect(weights[idOf('AAVE')]).toBeCloseTo(0.2, 12)
    expect(first?.excluded).toContainEqual({ token: idOf('RBN'), symbol: 'RBN', reason: 'belowTop' })
    expect(second?.scheduledAt).toBe('2024-03-01T00:00:00.000Z')
    expect(universe).toEqual({ candidates: database.registry.tokens.length, ended: 0 })
  })

  it('pays out a token that ended', async () => {
    const report = await readReport('of=AAVE:0.5,RBN:0.5&start=2024-02-28')
    expect(report.exits).toEqual([
      { token: idOf('RBN'), symbol: 'RBN', at: '2024-03-13T00:00:00.000Z', reason: 'ended', price: 0.5 },
    ])
    expect(report.missingPriceDays).toEqual([])
    expect(report.nav).toBeCloseTo(50 + (50 * (100 - 18)) / 99, 9)
  })

  it('compares its returns with those of the Index', async () => {
    const report = await readReport('of=AAVE:1&start=2024-02-28')
    expect(report).toMatchObject({ returns: 17, returnsWithIndex: 17, periodsPerYear: 365 })
    expect(report.maxDrawdown).toMatchObject({ peakAt: '2024-02-28T00:00:00.000Z', recoveredAt: null })
    expect(report.correlation).toBeGreaterThan(0.9)
  })
})

describe('the tables of a report', () => {
  const RULE = 'of=UNI,AAVE,RBN&weights=equal&costBps=30&start=2024-02-28'
  const readCsv = async (table: string, more = '') => {
    const response = await get('report', `${RULE}&format=csv${table === '' ? '' : `&table=${table}`}${more}`)
    expect(response.status, await response.clone().text()).toBe(200)
    expect(response.headers.get('content-disposition')).toMatch(/\.csv"$/)
    const [header = '', ...lines] = (await response.text()).trimEnd().split('\n')
    const names = header.replaceAll('"', '').split(',')
    return lines.map((line) =>
      Object.fromEntries(line.split(',').map((value, at) => [names[at], value.replaceAll('"', '')])),
    )
  }
  const day = (time: string | undefined) => time?.slice(0, 10)

  it('have the rows of the JSON answer', async () => {
    const { rebalances } = await readReport(RULE)
    const holdings = await readCsv('')
    const members = rebalances.flatMap(({ scheduledAt, members }) =>
      members.map(({ token, weight, price }) => [scheduledAt, token, weight, price]),
    )
    expect(members.length).toBeGreaterThan(3)
    expect(holdings.map((row) => [row.scheduledAt, row.token, Number(row.weight), Number(row.price)])).toEqual(members)
    expect(holdings.map(({ entered }) => entered)).toEqual(['true', 'true', 'true', 'false', 'false', 'false'])
    const trades = await readCsv('rebalances')
    expect(
      trades.map(({ at, turnover, cost, nav, members }) => [at, ...[turnover, cost, nav, members].map(Number)]),
    ).toEqual(rebalances.map((one) => [one.executedAt, one.turnover, one.cost, one.nav, one.members.length]))
  })

  it('list exits, days without a price and exclusions with their tokens', async () => {
    expect(await readCsv('exits')).toEqual([
      { at: '2024-03-13T00:00:00.000Z', token: idOf('RBN'), symbol: 'RBN', price: '0.5', reason: 'ended' },
    ])
    expect((await readCsv('missingPriceDays')).map(({ at, symbol }) => [day(at), symbol])).toEqual([
      ['2024-03-05', 'UNI'],
    ])
    const response = await get('report', 'top=2&start=2024-02-28&end=2024-03-01&table=exclusions&format=ndjson')
    const rows = (await response.text())
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as object)
    expect(rows).toContainEqual(expect.objectContaining({ symbol: 'RBN', reason: 'belowTop' }))
    expect(Object.keys(rows[0] ?? {})).toEqual(['at', 'scheduledAt', 'token', 'symbol', 'reason'])
  })

  it('have the named members, as Parquet too', async () => {
    expect((await readCsv('rebalances', '&fields=at,nav'))[0]).toEqual({ at: '2024-02-28T00:00:00.000Z', nav: '100' })
    const parquet = await get('report', `${RULE}&format=parquet&table=exits`)
    expect(
      Buffer.from(await parquet.arrayBuffer())
        .subarray(0, 4)
        .toString(),
    ).toBe('PAR1')
  })

  it('reject an unknown table', async () => {
    const problem = (await (await get('report', `${RULE}&format=csv&table=days`)).json()) as { detail: string }
    expect(problem.detail).toContain('must be one of holdings, rebalances, exclusions, exits, missingPriceDays')
  })
})

describe('a basket that cannot be computed', () => {
  it.each([
    ['', 'missing_parameter', 'Give the tokens with of, or their number with top.'],
    ['of=UNI:1&top=3', 'invalid_parameter', 'of and top exclude each other'],
    ['of=UNI:1&category=defi', 'invalid_parameter', 'select tokens only with top'],
    ['of=UNIX:1', 'not_found', 'There is no token with the id or symbol "unix". Did you mean UNI?'],
    ['of=DYDX:1', 'ambiguous_name', '2 tokens have the symbol DYDX'],
    ['of=UNI:1,uni:2', 'invalid_parameter', 'of has UNI twice.'],
    ['of=UNI:0,AAVE:1', 'invalid_parameter', 'The share of "uni:0" must be a number above 0.'],
    ['of=UNI:1,AAVE', 'invalid_parameter', 'AAVE has no share: write AAVE:0.5'],
    ['of=UNI:1&weights=equal', 'invalid_parameter', 'has no shares'],
    ['top=3&weights=fixed', 'invalid_parameter', 'weights=fixed needs of'],
    ['of=UNI,AAVE&weights=equal&cap=0.6', 'invalid_parameter', 'cap works only with weights=marketCap.'],
    ['of=UNI,AAVE&cap=0.4', 'invalid_parameter', 'do not sum to 1'],
    [
      'of=UNI:1&start=2024-02-20',
      'invalid_parameter',
      'The prices of these tokens begin on 2024-02-27: the earliest start is 2024-02-28.',
    ],
    ['of=UNI:1&start=2024-03-10&end=2024-03-01', 'invalid_parameter', 'end must be after start'],
    ['of=RBN:1&start=2024-03-14', 'invalid_parameter', 'There is nothing to hold on the first day: RBN ended.'],
    ['of=UNI:1&costBps=1001', 'invalid_parameter', 'must be a whole number from 0 to 1000'],
    ['of=UNI:1&base=0', 'invalid_parameter', 'must be a number above 0'],
    ['top=101', 'invalid_parameter', 'at most 100'],
    [`of=${Array.from({ length: 101 }, (_, at) => `T${at}`)}`, 'invalid_parameter', 'must have at most 100 values'],
  ])('%s: %s', async (query, code, detail) => {
    for (const leaf of ['historic', 'report']) {
      const problem = (await (await get(leaf, query)).json()) as { code: string; detail: string }
      expect(problem).toMatchObject({ code, detail: expect.stringContaining(detail) })
    }
  })
})
