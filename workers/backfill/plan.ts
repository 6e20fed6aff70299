import { isOn } from '../../shared/config/datasets-off.ts'
import { DataError } from '../../shared/errors.ts'
import type { Interval } from '../../shared/intervals.ts'
import { isThereAt } from '../../shared/registry/ends.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import type { Entity, Job } from '../job/define-job.ts'
import { jobs } from '../jobs/list.ts'
import { planChunks, toFullBuckets } from '../schedule/chunks.ts'
import { toTime } from '../terminal/option-time.ts'
import { type CollectOptions, collectHistories } from './collect-history.ts'
import { isComplete } from './outcome.ts'
import { toOutcomeTable } from './outcome-table.ts'
import type { BackfillRequest } from './request.ts'
import type { Stores } from './until-done.ts'

interface Request {
  readonly dataset: string | undefined
  readonly from: string | undefined
  readonly to: string | undefined
  readonly interval: string | undefined
  readonly only: string | undefined
}

/**
 * Turns a request into chunk jobs. `off` lists the datasets that are not collected.
 * @throws DataError `payload` that lists every mistake of the request.
 */
export function planBackfill(
  request: Request,
  registry: Registry,
  now: number,
  off: readonly string[] = [],
): BackfillRequest {
  const mistakes: string[] = []
  const job = toJob(request.dataset, mistakes)
  if (job !== undefined && !isOn(job, off)) mistakes.push(`${job.name} is not collected: DATASETS_OFF names it`)
  const from = toTime('--from', request.from, mistakes)
  const to = request.to === undefined ? now : toTime('--to', request.to, mistakes)
  if (from !== undefined && to !== undefined && from >= to)
    mistakes.push(`--from ${request.from} is not before --to ${request.to ?? 'now'}`)
  if (to !== undefined && to > now) mistakes.push(`--to ${request.to} is in the future`)
  const interval = job === undefined ? undefined : toInterval(job, request.interval, mistakes)
  // Entities that ended before the range have no data in it; the others are collected up to their end.
  const there = (job?.entities(registry) ?? []).filter((entity) => isThereAt(entity, from ?? now))
  const entities = job === undefined ? [] : toEntities(there, request.only, mistakes)
  if (mistakes.length > 0 || !job || !interval || from === undefined || to === undefined) {
    throw new DataError('payload', mistakes.join('\n'))
  }
  const range = toFullBuckets({ from, to, interval })
  const chunks = planChunks(job, entities, range)
  const isNamed = request.only !== undefined
  return { title: `${job.name} ${interval}`, job, entities, isNamed, range, interval, chunks }
}

function toJob(dataset: string | undefined, mistakes: string[]): Job | undefined {
  const withHistory = jobs.filter(({ history }) => history !== undefined)
  const job = withHistory.find(({ name }) => name === dataset)
  if (job !== undefined) return job
  const names = withHistory.map(({ name }) => name).join(', ')
  const unhistoric = jobs.some(({ name }) => name === dataset)
  if (dataset === undefined) mistakes.push(`name a dataset: ${names}`)
  else
    mistakes.push(`${dataset}: ${unhistoric ? 'its sources have no history' : 'no such dataset'}; there are ${names}`)
  return undefined
}

function toInterval(job: Job, text: string | undefined, mistakes: string[]): Interval | undefined {
  const intervals = job.history?.intervals ?? []
  const interval = text === undefined ? intervals[0] : intervals.find((candidate) => candidate === text)
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
 * Collects histories and prints the result table.
 * @returns whether every requested bucket is stored or known to have no data.
 */
export async function runBackfills(
  requests: readonly BackfillRequest[],
  stores: Stores,
  options: CollectOptions = {},
): Promise<boolean> {
  const outcomes = await collectHistories(requests, stores, options)
  ;(options.out ?? process.stdout).write(`${toOutcomeTable(outcomes)}\n`)
  return outcomes.every(isComplete)
}
