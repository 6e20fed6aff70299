import { JSON_SETTINGS } from '../../api/formats/formats.ts'
import { pointsSql } from '../../api/prices/points.ts'
import { DAY_MS, INTERVAL_SECONDS } from '../../shared/intervals.ts'
import type { Token } from '../../shared/registry/entities.ts'
import { createClient, isGood } from './arrivals.ts'
import { type Day, toDayPath, toShuffled } from './days.ts'
import { atLeast, atMost, type BenchRow } from './define-benchmark.ts'
import type { BenchDatabase } from './engine.ts'
import { createOneReader, load } from './load.ts'
import { compare, timed } from './measure.ts'

const STEP = INTERVAL_SECONDS['5m'] * 1000
const ROUNDS = 7
const CHARTS = 100
/** Days of each token with cached chunks: enough that no 24 hours of them are requested twice. */
const WARM_DAYS = 25
/** Days between these and the days that are first requested by the measurement. */
const MARGIN_DAYS = 3

interface Assembled {
  readonly database: BenchDatabase
  readonly url: string
  readonly tokens: readonly Token[]
  readonly now: number
  /** The number of past days with a point every five minutes. */
  readonly days: number
}

/** New requests: days of 5-minute prices, read for the first time and assembled from chunks, and lists. */
export async function measureAssembled(bench: Assembled): Promise<BenchRow[]> {
  const { url, tokens, now } = bench
  const reader = createOneReader(url, 288 * 100)
  const read = (day: Day) => reader.read(toDayPath(day))
  const midnight = Math.floor(now / DAY_MS) * DAY_MS
  const toDay = (number: number, first: number): Day => ({
    token: tokens[number % tokens.length] as Token,
    from: midnight - (first + Math.floor(number / tokens.length)) * DAY_MS,
  })
  try {
    return [
      ...(await measureCold(bench, read, toDay)),
      await measureWarm(bench, read, midnight),
      await measureList(bench),
    ]
  } finally {
    reader.close()
  }
}

async function measureCold(
  { database, url, tokens, days: stored }: Assembled,
  read: (day: Day) => Promise<void>,
  toDay: (number: number, first: number) => Day,
): Promise<BenchRow[]> {
  const first = WARM_DAYS + MARGIN_DAYS
  const days = toShuffled(tokens.length * (stored - first))
  const next = () => toDay(days.next().value as number, first)
  const straight = async ({ token, from }: Day) => {
    const stream = await database.reader.stream({
      name: 'bench-day',
      sql: pointsSql('5m').rows,
      params: { token: token.key, from, to: from + DAY_MS, limit: 288 },
      settings: { ...JSON_SETTINGS, output_format_json_array_of_rows: 1 },
    })
    for await (const _ of stream);
  }
  const one = await compare({
    what: 'an uncached day of 5-minute prices, one client',
    unit: 'ms',
    a: timed('API', () => read(next()), 15),
    b: timed('its one statement, directly to ClickHouse', () => straight(next()), 15),
    rounds: ROUNDS,
    target: atMost(1.6),
  })
  const all = (readDay: (day: Day) => Promise<unknown>) =>
    Promise.all(Array.from({ length: CHARTS }, () => readDay(next())))
  const client = createClient(url, 0)
  const chart = async (day: Day) => {
    if (!isGood(await client.request(toDayPath(day)))) throw new Error('a chart was not answered')
  }
  const page = await compare({
    what: `a page of ${CHARTS} such days, none of them kept`,
    unit: 'ms',
    a: timed('API', () => all(chart)),
    b: timed('a statement for each, straight to ClickHouse', () => all(straight)),
    rounds: ROUNDS,
  })
  client.disconnect()
  return [one, page]
}

async function measureWarm(
  { url, tokens }: Assembled,
  read: (day: Day) => Promise<void>,
  midnight: number,
): Promise<BenchRow> {
  const oldest = midnight - WARM_DAYS * DAY_MS
  for (const token of tokens)
    for (let day = 0; day < WARM_DAYS; day++) await read({ token, from: oldest + day * DAY_MS })
  const starts = ((WARM_DAYS - 1) * DAY_MS) / STEP
  const places = toShuffled(starts * tokens.length)
  const next = () => {
    const place = places.next().value as number
    return toDayPath({
      token: tokens[place % tokens.length] as Token,
      from: oldest + Math.floor(place / tokens.length) * STEP,
    })
  }
  const cached = next()
  return compare({
    what: 'a new range of a day of 5-minute prices, its chunks cached',
    unit: 'req/s',
    a: load(url, 'API, assembled', next),
    b: load(url, 'API, cached answer of the same size', () => cached),
    rounds: ROUNDS,
    target: atLeast(0.25),
  })
}

/** Sorted and filtered lists that are new each time, after the records were read once. */
async function measureList({ url }: Assembled): Promise<BenchRow> {
  let requestCount = 0
  const toPath = (price: number) =>
    `/data/tokens?limit=100&sort=-financialData.percentChange7d,name&filter=financialData.price!=${price}`
  const next = () => {
    requestCount += 1
    return toPath(1e9 + requestCount)
  }
  return compare({
    what: 'a list with a new sort and filter, its records cached',
    unit: 'req/s',
    a: load(url, 'API, assembled', next),
    b: load(url, 'API, cached answer of the same size', () => toPath(0.5)),
    rounds: ROUNDS,
    target: atLeast(0.25),
  })
}
