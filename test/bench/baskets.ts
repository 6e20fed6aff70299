import { DAY_MS } from '../../shared/intervals.ts'
import { storeMarket } from '../support/market.ts'
import { withApi } from './api-process.ts'
import { type Client, createClient, type RecordedRequest, requireGood, toP95 } from './arrivals.ts'
import { atMost, type BenchContext, type Benchmark, type Findings } from './define-benchmark.ts'
import { type BenchDatabase, withDatabase, withEngine } from './engine.ts'
import { readPeakBytes, readResidentBytes } from './processes.ts'

interface Sizes {
  readonly days: number
  readonly top: number
  /** Reports, one after the other. */
  readonly reports: number
  /** Reports at once of one client, and cached answers of another client meanwhile. */
  readonly flood: number
}
const FULL: Sizes = { days: 3 * 365, top: 100, reports: 20, flood: 64 }
const SMALL: Sizes = { days: 90, top: 10, reports: 3, flood: 8 }
const CACHED = '/data/categories'
const MEGABYTE = 2 ** 20

export const baskets: Benchmark = {
  name: 'baskets',
  about: 'Reports of baskets: three years of daily prices, the 100 largest tokens by market cap, rebalanced monthly.',
  run: (context) => withEngine((engine) => withDatabase(engine, 'baskets', (database) => measure(context, database))),
}

async function measure({ quick, say }: BenchContext, database: BenchDatabase): Promise<Findings> {
  const { days, top, reports, flood } = quick ? SMALL : FULL
  const tokens = database.registry.tokens.filter(({ live }) => live)
  const until = Math.floor(Date.now() / DAY_MS) * DAY_MS
  say(`storing ${days} days of ${tokens.length} tokens`)
  await storeMarket(database.db, { keys: tokens.map(({ key }) => key), until, points: days, stepMs: DAY_MS })
  await database.db.command({ name: 'merge', sql: 'OPTIMIZE TABLE token_price_rollups FINAL' })
  const start = new Date(until - (days - 2) * DAY_MS).toISOString().slice(0, 10)
  let requests = 0
  /** Every report has costs of its own, so none is cached. */
  const toPath = () =>
    `/data/baskets/report?top=${top}&weights=marketCap&rebalance=monthly&start=${start}&costBps=${requests++}`
  return withApi(database, {}, async (api) => {
    const [analyst, reader] = [createClient(api.url, 0), createClient(api.url, 1)]
    try {
      say(`${reports} reports, one after the other`)
      await requireGood(analyst, toPath())
      const before = readResidentBytes(api.pid)
      const taken: RecordedRequest[] = []
      for (let at = 0; at < reports; at += 1) taken.push(await requireGood(analyst, toPath()))
      const [after, peak] = [readResidentBytes(api.pid), readPeakBytes(api.pid)]
      say(`${flood} reports at once`)
      await requireGood(reader, CACHED)
      const alone = await readWhile(reader, new Promise((resolve) => setTimeout(resolve, 2_000)))
      const running = Array.from({ length: flood }, () => analyst.request(toPath()))
      const beside = await readWhile(reader, Promise.all(running))
      const statuses = (await Promise.all(running)).map(({ status }) => status)
      const served = statuses.filter((status) => status === 200).length
      const more = (readPeakBytes(api.pid) - before) / MEGABYTE
      const a = { name: `${reports} reports, p95`, value: toP95(taken), unit: 'ms' }
      return {
        rows: [
          { what: 'a report, not cached', a, target: atMost(1000, ' ms') },
          {
            what: `memory of ${flood} reports at once`,
            a: { name: 'more than before, at most', value: more, unit: 'MB' },
            target: atMost(300, ' MB'),
          },
          {
            what: "another client's cached answer, p95",
            a: { name: `beside ${flood} reports`, value: toP95(beside), unit: 'ms' },
            b: { name: 'alone', value: toP95(alone), unit: 'ms' },
            ratio: toP95(beside) / toP95(alone),
          },
        ],
        notes: [
          `${tokens.length} tokens with ${days} days; each report has other costs, so that it is computed. Of ${flood} reports at once ${served} were answered, the others refused (${[...new Set(statuses)].join(', ')}). The other client read ${beside.length} cached answers meanwhile, p95 ${toP95(beside).toFixed(1)} ms (target: 20 ms).`,
          `Memory of the API: ${(before / MEGABYTE).toFixed(0)} MB after the first report, ${(after / MEGABYTE).toFixed(0)} MB after ${reports} more, ${(peak / MEGABYTE).toFixed(0)} MB at most.`,
        ],
      }
    } finally {
      for (const client of [analyst, reader]) client.disconnect()
    }
  })
}

/** Cached answers, one after the other, until some work has ended. */
async function readWhile(client: Client, work: Promise<unknown>): Promise<RecordedRequest[]> {
  const answers: RecordedRequest[] = []
  let isRunning = true
  const end = () => {
    isRunning = false
  }
  work.then(end, end)
  while (isRunning) answers.push(await requireGood(client, CACHED))
  return answers
}
