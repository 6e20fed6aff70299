import { requireMigrated } from '../../clickhouse/migrations.ts'
import { runCommand } from '../../shared/command.ts'
import { readCommandLine } from '../../shared/command-line.ts'
import { loadCommandConfig } from '../../shared/config/config.ts'
import { withoutOff } from '../../shared/config/datasets-off.ts'
import { DataError } from '../../shared/errors.ts'
import { INTERVALS, type Interval, type TimeRange } from '../../shared/intervals.ts'
import { openLedgers } from '../../shared/ledger/ledger.ts'
import { isMain } from '../../shared/process.ts'
import { createParts } from '../../shared/progress-bar.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import {
  createDatabase,
  type Database,
  readNewest,
  readRegistry,
  toFreshnessState,
  toLagSeconds,
} from '../../shared/store/store.ts'
import { findLedgerGaps, type LedgerGap } from '../backfill/ledger-gaps.ts'
import { runBackfills } from '../backfill/plan.ts'
import type { BackfillRequest } from '../backfill/request.ts'
import type { Stores } from '../backfill/until-done.ts'
import type { Job } from '../job/define-job.ts'
import { jobs } from '../jobs/list.ts'
import { planRepair, toGapInterval } from '../schedule/gaps.ts'
import { RANGE_OPTIONS, toTime } from '../terminal/option-time.ts'
import { toShortTime, toTable } from '../terminal/text-table.ts'
import { withStores } from './with-stores.ts'

/** Exit codes for a monitor; 1 means that the check itself failed. */
const EXIT = { stale: 2, gaps: 3 } as const

const HELP = `npm run gaps -- [dataset] [options]

Prints the missing data of each dataset and entity, according to the coverage: pending and failed ranges, and missed ones,
which were not collected at their time and have no provider with history. Ranges that no provider has are not missing. Gaps
that are close together are printed as one. Without --to, stale datasets are printed, too.

Datasets that are off (DATASETS_OFF) are omitted.

Exit codes, for a monitor: 0 nothing is missing; 1 the check failed (wrong options, an unavailable store); 2 a dataset is
stale or empty (not an empty one that no provider serves, such as without a key); 3 ranges are pending or failed, or remain
after --fix, also if 2 applies as well. Missed ranges have no code, because they cannot be collected any more.

  --from, --to      ISO dates or date-times, UTC, to limit the check; from is inclusive, to exclusive
  --interval        ${INTERVALS.join(', ')} the required step: data with a coarser step counts as
                    missing (default: any)
  --fix             collects the gaps now, if the dataset has history, and prints the remaining ones; a worker must
                    serve the queue
  --json
  --help

Datasets: ${jobs.map(({ name }) => name).join(', ')}`

interface Request {
  readonly jobs: readonly Job[]
  readonly range: TimeRange
  readonly interval: Interval | undefined
}

/**
 * Validates the command line. `off` lists the datasets that are not collected.
 * @throws DataError `payload` that lists every mistake.
 */
export function toRequest(
  options: Readonly<Record<'dataset' | 'from' | 'to' | 'interval', string | undefined>> & { more?: readonly string[] },
  off: readonly string[] = [],
): Request {
  const mistakes: string[] = []
  const named = jobs.filter(({ name }) => options.dataset === undefined || name === options.dataset)
  const selected = withoutOff(named, off)
  if (options.more !== undefined && options.more.length > 0)
    mistakes.push(`one dataset at a time, not ${options.more.join(', ')} too`)
  if (options.dataset !== undefined && selected.length < named.length)
    mistakes.push(`${options.dataset} is not collected: DATASETS_OFF names it`)
  else if (named.length === 0)
    mistakes.push(`${options.dataset}: no such dataset; there are ${jobs.map(({ name }) => name).join(', ')}`)
  const from = options.from === undefined ? 0 : toTime('--from', options.from, mistakes)
  const to = options.to === undefined ? Date.now() : toTime('--to', options.to, mistakes)
  const interval = INTERVALS.find((candidate) => candidate === options.interval)
  if (options.interval !== undefined && interval === undefined)
    mistakes.push(`--interval ${options.interval}: there are ${INTERVALS.join(', ')}`)
  if (from !== undefined && to !== undefined && from >= to) mistakes.push('--from is not before --to')
  if (mistakes.length > 0 || from === undefined || to === undefined) throw new DataError('payload', mistakes.join('\n'))
  return { jobs: selected, range: { from, to }, interval }
}

/** The gaps of one dataset. */
interface Found {
  readonly job: Job
  readonly gaps: readonly LedgerGap[]
}

async function findGaps(request: Request, db: Database, registry: Registry): Promise<Found[]> {
  const sought = { range: request.range, interval: request.interval, now: Date.now() }
  const found: Found[] = []
  const onPart = createParts('gaps')
  for (const [at, job] of request.jobs.entries()) {
    found.push({ job, gaps: await findLedgerGaps(db, job, registry, sought) })
    onPart(at + 1, request.jobs.length)
  }
  return found
}

/** Prints the datasets without new data although data was due, and returns whether there are any. */
async function reportStale(request: Request, db: Database, registry: Registry): Promise<boolean> {
  let isStale = false
  const now = Date.now()
  const datasets = request.jobs.map(({ dataset }) => dataset)
  const unserved = await openLedgers(db, datasets).unserved(registry, now)
  for (const { name, dataset } of request.jobs) {
    const newest = await readNewest(db, dataset)
    const state = toFreshnessState(toLagSeconds(newest, now), dataset.cadence)
    if (state !== 'stale' && state !== 'empty') continue
    if (state === 'empty' && unserved.has(dataset.name)) {
      console.error(`${name} is empty: no provider serves it, as without a key`)
      continue
    }
    isStale = true
    console.error(`${name} is ${state}${newest === null ? '' : `: its newest datum is of ${toShortTime(newest)} UTC`}`)
  }
  return isStale
}

/** Gaps that a provider can still fill; `missed` ones stay missing. */
const toFillable = (gaps: readonly LedgerGap[]) => gaps.filter(({ state }) => state !== 'missed')

async function fix(found: readonly Found[], request: Request, stores: Stores): Promise<void> {
  const requests = found.flatMap(({ job, gaps: all }): BackfillRequest[] => {
    const gaps = toFillable(all)
    const interval = request.interval ?? toGapInterval(job)
    const chunks = planRepair(job, gaps, interval)
    if (chunks.length === 0) {
      if (gaps.length > 0) console.error(`${job.name}: its sources have no history at ${interval}; the gaps stay`)
      return []
    }
    const range = {
      from: gaps.reduce((least, { from }) => Math.min(least, from), Number.POSITIVE_INFINITY),
      to: gaps.reduce((most, { to }) => Math.max(most, to), 0),
    }
    const entities = [...new Map(gaps.map(({ entity }) => [entity.id, entity])).values()]
    return [
      { title: `${job.name} ${interval}`, job, entities, isNamed: true, isExpected: true, range, interval, chunks },
    ]
  })
  await runBackfills(requests, stores, { again: true, out: process.stderr })
}

function print(found: readonly Found[], json: boolean): void {
  const gaps = found.flatMap(({ job, gaps: ofJob }) =>
    ofJob.map(({ entity, from, to, missing, state, reason }) => ({
      dataset: job.name,
      entity: entity.name,
      id: entity.id,
      interval: job.dataset.cadence,
      from: new Date(from).toISOString(),
      to: new Date(to).toISOString(),
      missing,
      state,
      reason,
    })),
  )
  if (json) console.log(JSON.stringify(gaps, null, 2))
  else if (gaps.length > 0) {
    const cells = gaps.map(({ dataset, entity, from, to, missing, state, reason }) => [
      dataset,
      entity,
      toShortTime(Date.parse(from)),
      toShortTime(Date.parse(to)),
      String(missing),
      state,
      reason.split('\n')[0] ?? '',
    ])
    console.log(toTable(['dataset', 'entity', 'from (UTC)', 'to (UTC)', 'buckets', 'state', 'reason'], cells))
  }
}

async function main(): Promise<void> {
  const { values, positionals } = readCommandLine({
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
  const request = toRequest({ dataset, more, from, to, interval }, config.datasetsOff)
  const db = createDatabase(config.clickhouse, 'write')
  await requireMigrated(db)
  const registry = await readRegistry(db)
  let found = await findGaps(request, db, registry)
  if (values.fix && hasGaps(found)) {
    await withStores(config, (stores) => fix(found, request, stores))
    found = await findGaps(request, db, registry)
  }
  print(found, values.json)
  // For a range that has ended, freshness is meaningless.
  const isStale = to === undefined && (await reportStale(request, db, registry))
  await db.close()
  if (hasGaps(found)) process.exitCode = EXIT.gaps
  else if (isStale) process.exitCode = EXIT.stale
}

const hasGaps = (found: readonly Found[]) => found.some(({ gaps }) => toFillable(gaps).length > 0)

if (isMain(import.meta.url)) runCommand(main)
