import { get, type IncomingMessage } from 'node:http'
import { JSON_SETTINGS } from '../../api/formats/formats.ts'
import { pointsSql } from '../../api/prices/points.ts'
import type { Token } from '../../shared/registry/entities.ts'
import { atMost, type BenchContext, type BenchRow } from './define-benchmark.ts'
import type { BenchDatabase } from './engine.ts'
import { compare, compareWithItself, timed } from './measure.ts'

const STEP = 300_000

/** Reason for the figures of long series; the page explains where the time is spent. */
const ONE_MORE_HOP =
  'the head of the response needs a reading of all data before the first byte (a seventh of the time), and on two cores a third process passes every byte on'

export interface LongSeries {
  readonly database: BenchDatabase
  readonly now: number
  readonly years: readonly Token[]
  readonly long: Token
  /** Points of a year and of a complete history, five minutes apart. */
  readonly sizes: { readonly year: number; readonly long: number }
  readonly rounds: number
  /** URLs of the API with and without a cache. */
  readonly api: string
  readonly uncached: string
}

/** Long series against the engine alone, and cached chunks against uncached ones. */
export async function measureLongSeries(
  { database, now, years, long, sizes, rounds, api, uncached }: LongSeries,
  say: BenchContext['say'],
): Promise<BenchRow[]> {
  const from = (points: number) => now - (points - 1) * STEP
  const read = (base: string, token: Token, points: number) => async () => {
    const url = `${base}/data/tokens/historic-financial?id=${token.id}&interval=5m&start=${from(points)}`
    const response = await open(url)
    const bytes = await drain(response)
    if (response.statusCode !== 200 || bytes < 100 * points) throw new Error(`${url}: ${bytes} bytes`)
  }
  const engine = (token: Token, points: number) => async () =>
    drain(
      await database.reader.stream({
        name: 'bench-series',
        sql: pointsSql('5m').rows,
        params: { token: token.key, from: from(points), to: now + STEP, limit: points },
        settings: { ...JSON_SETTINGS, output_format_json_array_of_rows: 1 },
      }),
    )
  const [warm, year, ...fresh] = years as [Token, Token, ...Token[]]
  const points = (count: number) => `${count.toLocaleString('en-US')} points`
  const against = (count: number, token: Token) => ({
    what: `${points(count)}, nothing cached`,
    unit: 'ms',
    a: timed('API', read(uncached, token, count), 3),
    b: timed('the engine alone', engine(token, count), 3),
    rounds: rounds,
    target: atMost(1.25),
    reason: ONE_MORE_HOP,
  })
  say('long series')
  await read(api, warm, sizes.year)()
  const first = async () => {
    const token = fresh.shift()
    if (token === undefined) throw new Error('more rounds than tokens')
    await read(api, token, sizes.year)()
  }
  return [
    await compare(against(sizes.year, year)),
    await compare(against(sizes.long, long)),
    await compareWithItself(timed('the engine alone', engine(year, sizes.year), 3), 'ms', rounds),
    await compare({
      what: points(sizes.year),
      unit: 'ms',
      a: timed('API, chunks cached', read(api, warm, sizes.year)),
      b: timed('API, first time', first),
      rounds: rounds - 2,
    }),
  ]
}

/** The engine is read with the same client. */
const open = (url: string) => new Promise<IncomingMessage>((resolve, reject) => get(url, resolve).on('error', reject))

async function drain(stream: AsyncIterable<Uint8Array>): Promise<number> {
  let bytes = 0
  for await (const chunk of stream) bytes += chunk.length
  return bytes
}
