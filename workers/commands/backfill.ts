import { runCommand } from '../../shared/command.ts'
import { readCommandLine } from '../../shared/command-line.ts'
import { type Config, loadCommandConfig } from '../../shared/config/config.ts'
import { DataError } from '../../shared/errors.ts'
import { INTERVALS, type Interval } from '../../shared/intervals.ts'
import { isMain } from '../../shared/process.ts'
import { isThereAt } from '../../shared/registry/ends.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import { createDatabase } from '../../shared/store/clickhouse.ts'
import { readRegistryOrFiles } from '../../shared/store/followed-registry.ts'
import { createLog } from '../../shared/telemetry/log.ts'
import type { Ask } from '../backfill/ask.ts'
import { type CollectOptions, collectAsks } from '../backfill/collect-ask.ts'
import { isComplete } from '../backfill/outcome.ts'
import { toOutcomeTable } from '../backfill/outcome-table.ts'
import type { Stores } from '../backfill/until-done.ts'
import type { Entity, Job } from '../job/define-job.ts'
import { jobs } from '../jobs/list.ts'
import { planChunks, toWholeBuckets } from '../schedule/chunks.ts'
import { RANGE_OPTIONS, toTime } from './option-time.ts'
import { withStores } from './with-stores.ts'

const HELP = `npm run backfill -- <dataset> --from <date> --to <date> [options]

Says that history of a dataset is wanted and has what is missing collected through its queue; a worker must serve that
queue. Running the same command again goes on where it was stopped, and what is stored already does not change. Ends with
what is covered and why the rest is not; exits with 0 only when all of it is stored, or known not to exist, and was
collected now where --again says so or where it is computed.

  --from, --to      ISO dates or date-times, UTC; from is inclusive, to exclusive (default: now)
  --interval        ${INTERVALS.join(', ')} (default: the finest that the dataset's history has)
  --tokens, --daos  only these: symbols, names, slugs or ids, separated by commas
  --dry-run         prints the jobs of the whole range, what is known already too, and enqueues nothing
  --again           collects also what is known already
  --help

Datasets with history: ${jobs.flatMap(({ name, history }) => (history === undefined ? [] : [name])).join(', ')}`

interface Request {
  readonly dataset: string | undefined
  readonly from: string | undefined
  readonly to: string | undefined
  readonly interval: string | undefined
  readonly only: string | undefined
}

/**
 * Turns a request into chunk jobs.
 * @throws DataError `payload` that names every mistake of the request at once.
 */
export function planBackfill(request: Request, registry: Registry, now: number): Ask {
  const mistakes: string[] = []
  const job = toJob(request.dataset, mistakes)
  const from = toTime('--from', request.from, mistakes)
  const to = request.to === undefined ? now : toTime('--to', request.to, mistakes)
  if (from !== undefined && to !== undefined && from >= to)
    mistakes.push(`--from ${request.from} is not before --to ${request.to ?? 'now'}`)
  if (to !== undefined && to > now) mistakes.push(`--to ${request.to} is in the future`)
  const interval = job === undefined ? undefined : toInterval(job, request.interval, mistakes)
  // One that ended before the range has nothing in it, and of the others it goes up to their end.
  const there = (job?.entities(registry) ?? []).filter((entity) => isThereAt(entity, from ?? now))
  const entities = job === undefined ? [] : toEntities(there, request.only, mistakes)
  if (mistakes.length > 0 || !job || !interval || from === undefined || to === undefined) {
    throw new DataError('payload', mistakes.join('\n'))
  }
  const range = toWholeBuckets({ from, to, interval })
  const chunks = planChunks(job, entities, range)
  const isNamed = request.only !== undefined
  return { title: `${job.name} ${interval}`, job, entities, isNamed, range, interval, chunks }
}

function toJob(dataset: string | undefined, mistakes: string[]): Job | undefined {
  const known = jobs.filter(({ history }) => history !== undefined)
  const job = known.find(({ name }) => name === dataset)
  if (job !== undefined) return job
  const names = known.map(({ name }) => name).join(', ')
  const unhistoric = jobs.some(({ name }) => name === dataset)
  if (dataset === undefined) mistakes.push(`name a dataset: ${names}`)
  else
    mistakes.push(`${dataset}: ${unhistoric ? 'its sources have no history' : 'no such dataset'}; there are ${names}`)
  return undefined
}

function toInterval(job: Job, text: string | undefined, mistakes: string[]): Interval | undefined {
  const intervals = job.history?.intervals ?? []
  const interval = text === undefined ? intervals[0] : intervals.find((known) => known === text)
  if (interval === undefined) mistakes.push(`--interval ${text}: ${job.name} has ${intervals.join(', ')}`)
  return interval
}

function toEntities(all: readonly Entity[], only: string | undefined, mistakes: string[]): readonly Entity[] {
  if (only === undefined) return all
  const isNamed = (entity: Entity, name: string) =>
    [entity.id, entity.name, Reflect.get(entity, 'symbol'), Reflect.get(entity, 'slug')].some(
      (own) => typeof own === 'string' && own.toLowerCase() === name,
    )
  const names = only.split(',').map((name) => name.trim().toLowerCase())
  const unknown = names.filter((name) => !all.some((entity) => isNamed(entity, name)))
  if (unknown.length > 0) mistakes.push(`not in the registry, or not live: ${unknown.join(', ')}`)
  return all.filter((entity) => names.some((name) => isNamed(entity, name)))
}

/**
 * Has histories collected and prints how they stand then.
 * @returns whether all is there that was asked for, or known not to exist.
 */
export async function runBackfills(
  asks: readonly Ask[],
  stores: Stores,
  options: CollectOptions = {},
): Promise<boolean> {
  const outcomes = await collectAsks(asks, stores, options)
  ;(options.out ?? process.stdout).write(`${toOutcomeTable(outcomes)}\n`)
  return outcomes.every(isComplete)
}

async function main(): Promise<void> {
  const { values, positionals } = readCommandLine({
    allowPositionals: true,
    options: {
      ...RANGE_OPTIONS,
      tokens: { type: 'string' },
      daos: { type: 'string' },
      'dry-run': { type: 'boolean', default: false },
      again: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return console.log(HELP)
  if (values.tokens !== undefined && values.daos !== undefined)
    throw new DataError('payload', 'either --tokens or --daos')
  const config = loadCommandConfig()
  const [dataset, ...more] = positionals
  if (more.length > 0) throw new DataError('payload', `one dataset at a time, not ${positionals.join(' and ')}`)
  const only = values.tokens ?? values.daos
  const request = { dataset, from: values.from, to: values.to, interval: values.interval, only }
  const backfill = planBackfill(request, await readRegistryInForce(config), Date.now())
  if (values['dry-run']) {
    console.log(`${backfill.title}: ${backfill.chunks.length} jobs would cover it`)
    for (const { id } of backfill.chunks) console.log(`  ${id}`)
    return
  }
  process.once('SIGINT', () => {
    console.error(`
stopped watching. The queued parts go on as workers take them, and the scheduler has collected what they leave out: it is
wanted now. The same command watches again, npm run gaps -- ${backfill.job.name} tells what is missing.`)
    process.exit(130)
  })
  const isWhole = await withStores(config, (stores) => runBackfills([backfill], stores, { again: values.again }))
  if (!isWhole) process.exitCode = 1
}

/** Where the stores are away the request is judged all the same. */
async function readRegistryInForce({ clickhouse }: Config): Promise<Registry> {
  const db = createDatabase(clickhouse, 'write')
  try {
    return await readRegistryOrFiles(db, createLog('backfill', 'warn'))
  } finally {
    await db.close()
  }
}

if (isMain(import.meta.url)) runCommand(main)
