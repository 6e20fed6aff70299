import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { FORMAT_NAMES } from '../../api/formats/formats.ts'
import type { Config } from '../../shared/config/config.ts'
import { toBucketStart } from '../../shared/intervals.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import { createDatabase } from '../../shared/store/store.ts'
import type { Job } from '../../workers/job/define-job.ts'
import { jobs } from '../../workers/jobs/list.ts'
import { runJob } from '../../workers/run/runner.ts'
import { createHandFeed, startApi } from './api.ts'
import { documentedRequests } from './documented.ts'
import { loadFewDaos } from './few-daos.ts'
import { createPipeline, type Pipeline } from './pipeline.ts'
import { describeArrow } from './tables.ts'

/** The fixed time of every site: rows and responses depend on no other clock. */
export const SITE_NOW = Date.parse('2026-05-06T07:05:09Z')

/** Requests that together read every table. */
const EVERY_TABLE = [
  'tokens?limit=100',
  'tokens?name=Uniswap',
  'tokens/holders?limit=20',
  'tokens/holders/historic?name=Uniswap',
  'tokens/dex-data?limit=100',
  'tokens/historic-financial?name=Uniswap&interval=5m&start=2026-05-05',
  'tokens/historic-financial?name=Aave&interval=1h&start=2026-05-01',
  'tokens/historic-financial?name=Uniswap&interval=7d&start=2026-04-01',
  'tokens/historic-dex-trades?name=Uniswap&start=2026-05-05',
  'daos?limit=100',
  'daos/governance?name=Uniswap',
  'daos/governance/summary?limit=100',
  'daos/governance/proposals?name=Uniswap',
  'daos/governance/votes?name=Uniswap',
  'daos/governance/voters?name=Uniswap',
  'daos/treasury?limit=100',
  'daos/treasury/kinds?limit=100',
  'daos/treasury/holdings?name=Uniswap&limit=500',
  'daos/treasury/historic?name=Uniswap',
  'daos/fees?limit=100',
  'daos/fees/historic?name=Uniswap',
  'daos/ratings?limit=100',
  'daos/socials?limit=100',
  'daos/socials/historic-twitter?name=Uniswap&start=2026-05-01',
  'daos/twitter-sentiment?limit=100',
  'aggregated/market-cap',
  'aggregated/treasury-value',
  'index/composition',
  'index/historic?period=30',
  'status',
]

/** Ratings of the shipped registry's DAOs. */
const SAMPLE_RATINGS = join(import.meta.dirname, '../upstream/data/sample-ratings.csv')

/** The sample's rows for the DAOs of a registry: the import rejects a file with mostly unknown DAOs. */
function writeRatings({ daos }: Registry): string {
  const slugs = new Set(daos.map(({ slug }) => slug))
  const [header = '', ...rows] = readFileSync(SAMPLE_RATINGS, 'utf8').split('\n')
  const file = join(mkdtempSync(join(tmpdir(), 'dao-data-ratings-')), 'ratings.csv')
  writeFileSync(file, [header, ...rows.filter((row) => slugs.has(row.split(',', 1)[0] ?? ''))].join('\n'))
  return file
}

/** A pipeline with data for every route: every job ran once, and prices also for two days before. */
export async function createSite(
  settings: Readonly<Record<string, string>> = {},
  registry: Registry = loadFewDaos(),
): Promise<Pipeline> {
  const pipeline = await createPipeline({
    now: SITE_NOW,
    settings: { RATINGS_SOURCE: writeRatings(registry), ...settings },
    registry,
  })
  const { context } = pipeline
  const run = (job: Job, payload: object) => runJob(job, job.connect(context), context, payload)
  // Computed datasets come after their inputs.
  for (const job of [...jobs].sort((a, b) => a.computedFrom.length - b.computedFrom.length)) {
    if (job.name === 'prices') {
      const to = toBucketStart(SITE_NOW, '5m')
      await run(job, { kind: 'range', from: toBucketStart(to, '1d') - 2 * 86_400_000, to, interval: '1h' })
    }
    await run(job, { kind: 'slot', slot: toBucketStart(SITE_NOW, job.cadence) })
  }
  return pipeline
}

/** A list, nested lists, and a series. */
const RECORDS = ['tokens?', 'daos/treasury?', 'tokens/historic-financial?name=Aave&interval=1h&start=2026-05-01&']

/** The same requests, records in every format, and all documented examples. */
export const EVERY_REQUEST: readonly string[] = [
  ...EVERY_TABLE,
  ...RECORDS.flatMap((path) => FORMAT_NAMES.map((format) => `${path}format=${format}`)),
  ...documentedRequests.filter(({ route }) => !route.volatile).map(({ url }) => url.replace(/^\/data\//, '')),
]

/** With a failed shard every response takes a timeout, so requests run concurrently. */
const CONCURRENCY = 6

/** The responses of an API over a database by path: status and body; an Arrow body as text. */
export async function readAnswers(
  { registry }: Pick<Pipeline, 'registry'>,
  config: Config,
  requests: readonly string[] = EVERY_TABLE,
): Promise<Readonly<Record<string, string>>> {
  const db = createDatabase(config.clickhouse, 'read')
  // A slot for each request: on a busy machine none is rejected because it waits.
  const queue = { slots: CONCURRENCY, maxWaiting: CONCURRENCY }
  const api = await startApi({ config, db, registry, queue, changeFeed: createHandFeed(), now: () => SITE_NOW })
  const answers: Record<string, string> = {}
  const remaining = requests.values()
  const requestNext = async () => {
    for (const path of remaining) {
      const response = await fetch(new URL(path, `${api.url}/data/`))
      const body = Buffer.from(await response.arrayBuffer())
      const isArrow = response.ok && path.endsWith('format=arrow')
      answers[path] = `${response.status} ${isArrow ? describeArrow(body) : body.toString('latin1')}`
    }
  }
  await Promise.all(Array.from({ length: CONCURRENCY }, requestNext))
  await api.close()
  await db.close()
  return answers
}

const HOUR = 3_600_000

/** Removes the times at which records were stored, which come from the real clock. */
export function withoutStoredTimes(answers: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const hide = (time: string) => (Math.abs(Date.parse(time) - Date.now()) < HOUR ? '' : time)
  const times = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g
  return Object.fromEntries(Object.entries(answers).map(([path, text]) => [path, text.replace(times, hide)]))
}
