import { parseArgs } from 'node:util'
import { runCommand } from '../../shared/command.ts'
import { type Config, loadCommandConfig } from '../../shared/config/config.ts'
import { DataError } from '../../shared/errors.ts'
import { INTERVALS, type Interval } from '../../shared/intervals.ts'
import { isMain } from '../../shared/process.ts'
import { createRedis, requireRedis } from '../../shared/queue/redis.ts'
import { loadRegistry, type Registry } from '../../shared/registry/registry.ts'
import { createDatabase, type Database } from '../../shared/store/clickhouse.ts'
import { readNewest, toFreshnessState, toLagSeconds } from '../../shared/store/freshness.ts'
import { createLog } from '../../shared/telemetry/log.ts'
import type { Job, TimeRange } from '../job/define-job.ts'
import { jobs } from '../jobs/list.ts'
import { type EntityGap, planRepair, readHoles, toGapInterval, toGaps } from '../schedule/gaps.ts'
import { type Backfill, runBackfills } from './backfill.ts'
import { RANGE_OPTIONS, toTime } from './option-time.ts'
import { createProgress } from './progress-bar.ts'
import { toShortTime, toTable } from './text-table.ts'

/** What a monitor is told; 1 is every failure to tell. */
const EXIT = { stale: 2, gaps: 3 } as const

const HELP = `npm run gaps -- [dataset] [options]

Finds what is missing in the stored series: per dataset and entity the buckets without a row between the first and the
last that have one. Gaps that lie close together are told as one. Without --to it also tells which datasets are stale.

Exit codes, for a monitor: 0 all is there, 1 it cannot be told (wrong options, a store is away), 2 a dataset is stale or
empty, 3 there are gaps, or --fix left some.

  --from, --to      ISO dates or date-times, UTC, to look at a part only; from is inclusive, to exclusive
  --interval        ${INTERVALS.join(', ')} (default: the dataset's cadence, or the finest step of its history)
  --fix             collects the gaps again, where the dataset has history; a worker must serve the queue. Stopped and
                    run again it goes on with what is missing still
  --json
  --help

Datasets: ${jobs.map(({ name }) => name).join(', ')}`

interface Request {
  readonly jobs: readonly Job[]
  readonly range: TimeRange
  readonly interval: Interval | undefined
}

/**
 * Checks what an operator asks for.
 * @throws DataError `payload` that names every mistake at once.
 */
export function toRequest(
  given: Readonly<Record<'dataset' | 'from' | 'to' | 'interval', string | undefined>> & { more?: readonly string[] },
): Request {
  const mistakes: string[] = []
  const selected = jobs.filter(({ name }) => given.dataset === undefined || name === given.dataset)
  if (given.more !== undefined && given.more.length > 0)
    mistakes.push(`one dataset at a time, not ${given.more.join(', ')} too`)
  if (selected.length === 0)
    mistakes.push(`${given.dataset}: no such dataset; there are ${jobs.map(({ name }) => name).join(', ')}`)
  const from = given.from === undefined ? 0 : toTime('--from', given.from, mistakes)
  const to = given.to === undefined ? Date.now() : toTime('--to', given.to, mistakes)
  const interval = INTERVALS.find((known) => known === given.interval)
  if (given.interval !== undefined && interval === undefined)
    mistakes.push(`--interval ${given.interval}: there are ${INTERVALS.join(', ')}`)
  if (from !== undefined && to !== undefined && from >= to) mistakes.push('--from is not before --to')
  if (mistakes.length > 0 || from === undefined || to === undefined) throw new DataError('payload', mistakes.join('\n'))
  return { jobs: selected, range: { from, to }, interval }
}

/** What is missing of one dataset. */
interface Found {
  readonly job: Job
  readonly interval: Interval
  readonly gaps: readonly EntityGap[]
}

async function findGaps(request: Request, db: Database, registry: Registry): Promise<Found[]> {
  const found: Found[] = []
  for (const job of request.jobs) {
    const interval = request.interval ?? toGapInterval(job)
    const entities = job.entities(registry)
    const gaps: EntityGap[] = []
    const progress = createProgress(`${job.name} ${interval}`, entities.length, process.stderr)
    for (const entity of entities) {
      const holes = await readHoles(db, job.dataset, entity, interval)
      for (const gap of toGaps(holes, interval, request.range)) gaps.push({ ...gap, entity })
      progress.step(0)
    }
    const missing = gaps.reduce((sum, gap) => sum + gap.missing, 0)
    progress.stop(`${missing} buckets are missing in ${gaps.length} gaps`)
    found.push({ job, interval, gaps })
  }
  return found
}

/** Says which datasets have nothing new where something should have come, and tells whether there are any. */
async function tellStale(request: Request, db: Database): Promise<boolean> {
  let isStale = false
  for (const { name, dataset } of request.jobs) {
    const newest = await readNewest(db, dataset)
    const state = toFreshnessState(toLagSeconds(newest, Date.now()), dataset.cadence)
    if (state !== 'stale' && state !== 'empty') continue
    isStale = true
    console.error(`${name} is ${state}${newest === null ? '' : `: its newest datum is of ${toShortTime(newest)} UTC`}`)
  }
  return isStale
}

/** @returns how many parts failed, and datasets whose gaps nobody can fill. */
async function fix(found: readonly Found[], config: Config): Promise<number> {
  const backfills: Backfill[] = []
  let staying = 0
  for (const { job, interval, gaps } of found) {
    const chunks = planRepair(job, gaps, interval)
    if (chunks.length > 0) backfills.push({ title: `${job.name} ${interval}`, job, chunks })
    else if (gaps.length > 0) {
      staying += 1
      console.error(`${job.name}: its sources have no history at ${interval}; the gaps stay`)
    }
  }
  const log = createLog('gaps', 'error')
  const redis = createRedis(config.redis.url, log)
  await requireRedis(redis)
  const blocking = createRedis(config.redis.url, log, 'blocking')
  // A chunk may have been collected when its source did not have the data yet: what is missing is asked for again.
  const failed = await runBackfills(
    backfills,
    { redis, blocking, prefix: config.redis.prefix },
    { again: true, out: process.stderr },
  )
  redis.disconnect()
  blocking.disconnect()
  return failed + staying
}

function print(found: readonly Found[], json: boolean): void {
  const gaps = found.flatMap(({ job, interval, gaps: some }) =>
    some.map(({ entity, from, to, missing }) => ({
      dataset: job.name,
      entity: entity.name,
      id: entity.id,
      interval,
      from: new Date(from).toISOString(),
      to: new Date(to).toISOString(),
      missing,
    })),
  )
  if (json) console.log(JSON.stringify(gaps, null, 2))
  else if (gaps.length > 0) {
    const cells = gaps.map(({ dataset, entity, interval, from, to, missing }) => [
      dataset,
      entity,
      interval,
      toShortTime(Date.parse(from)),
      toShortTime(Date.parse(to)),
      String(missing),
    ])
    console.log(toTable(['dataset', 'entity', 'interval', 'from (UTC)', 'to (UTC)', 'missing'], cells))
  }
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      ...RANGE_OPTIONS,
      fix: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return console.log(HELP)
  const config = loadCommandConfig()
  const { from, to, interval } = values
  const [dataset, ...more] = positionals
  const request = toRequest({ dataset, more, from, to, interval })
  const db = createDatabase(config.clickhouse, 'write')
  const found = await findGaps(request, db, loadRegistry())
  print(found, values.json)
  const hasGaps = found.some(({ gaps }) => gaps.length > 0)
  const isMissing = values.fix ? hasGaps && (await fix(found, config)) > 0 : hasGaps
  // Whether the data is fresh says nothing of a range that has ended.
  const isStale = to === undefined && (await tellStale(request, db))
  await db.close()
  if (isMissing) process.exitCode = EXIT.gaps
  else if (isStale) process.exitCode = EXIT.stale
}

if (isMain(import.meta.url)) runCommand(main)
