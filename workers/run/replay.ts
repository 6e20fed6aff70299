import { toBucket } from '../../shared/buckets.ts'
import { DataError } from '../../shared/errors.ts'
import { groupBy } from '../../shared/group-by.ts'
import { INTERVAL_SECONDS, type TimeRange, toBucketStart } from '../../shared/intervals.ts'
import { openLedger } from '../../shared/ledger/ledger.ts'
import { toQueueName } from '../../shared/queue/queues.ts'
import { onCluster, readRuns, type StoredRun, toLocal } from '../../shared/store/store.ts'
import type { ConfirmationReplay, Job } from '../job/define-job.ts'
import { readDecoderVersion } from './raw-answers.ts'
import { compareRows, type Difference, isWideInteger, type Layout, readLayout } from './replay-compare.ts'
import { openCorrections } from './replay-corrections.ts'
import { type DecodeContext, type DecodedRun, decodeRun } from './replay-decode.ts'
import { type JobContext, storeRows } from './run-job.ts'

export interface ReplayOptions {
  readonly range: TimeRange
  /** Stores the differences as a correction; if undefined, they are only reported. */
  readonly apply?: Pick<JobContext, 'redis' | 'recomputation' | 'now'>
  readonly onRuns?: (done: number, total: number) => void
}

export interface ReplayResult {
  readonly runs: number
  readonly answers: number
  readonly rows: number
  readonly differences: readonly Difference[]
}

/**
 * Decodes the stored answers of a range again and compares the rows with the stored ones, a day of runs at a time. A
 * correction has the time of collection of its run, so the rows keep their answers; rows of later runs stay. A replay
 * that was killed while it stored corrections is completed by the next one of the dataset.
 * @throws DataError `payload` if the dataset cannot be replayed, or an answer is missing.
 */
export async function replay(job: Job, context: DecodeContext, options: ReplayOptions): Promise<ReplayResult> {
  throwIfComputed(job)
  const { db } = context
  const layout = await readLayout(db, job.dataset)
  const runs = await readRuns(db, job.dataset.name, options.range)
  const starts = runs.map(({ collectedAt }) => collectedAt)
  const decisions = job.openConfirmationReplay?.(db, options.range, starts)
  const isTakenOutLater = await decisions?.readTakenOutLater()
  const apply = options.apply && { ...context, ...options.apply }
  const corrections = apply && (await openCorrections(job, apply))
  const differences: Difference[] = []
  const done = { runs: 0, answers: 0, rows: 0 }
  const settle = async (decoded: readonly DecodedRun[]) => {
    const rows = decoded.map((one) => ({
      ...{ collectedAt: one.run.collectedAt, from: one.run.from, to: one.run.to },
      rows: toRows(one).filter(
        ({ row }) => !decisions?.isTakenOut(row, one.run.collectedAt) && !isTakenOutLater?.(row),
      ),
    }))
    done.rows += rows.reduce((sum, one) => sum + one.rows.length, 0)
    const found = await compareRows(db, job.dataset, layout, rows)
    if (apply !== undefined && corrections !== undefined && found.length > 0)
      await applyCorrection(job, apply, { decoded, found, layout, decisions, corrections })
    differences.push(...found)
  }
  // A slot may remove rows of the day before, so a day is compared when the next one is decoded.
  let previous: readonly DecodedRun[] = []
  for (const part of toDays(runs)) {
    const decoded: DecodedRun[] = []
    for (const run of part) {
      decoded.push(await decodeRun(job, run, context, decisions))
      done.runs += 1
      done.answers += run.answers.length
      options.onRuns?.(done.runs, runs.length)
    }
    if (decisions === undefined) await settle(decoded)
    else {
      if (previous.length > 0) await settle(previous)
      previous = decoded
    }
  }
  if (previous.length > 0) await settle(previous)
  // Also without a difference, because an interrupted replay may have corrected the rows before.
  if (apply !== undefined && runs.length > 0) await decisions?.store()
  // Prices are removed with their roll-ups.
  const isReduced = decisions === undefined && differences.some(({ kind }) => kind === 'removed')
  await corrections?.finish(isReduced)
  return { ...done, differences }
}

const toRows = ({ collected }: DecodedRun) =>
  collected.results.flatMap(({ provider, rows }) => rows.map((row) => ({ provider, row })))

/** @throws DataError `payload` */
function throwIfComputed({ name, computedFrom }: Job): void {
  if (computedFrom.length === 0) return
  const inputs = computedFrom.map((input) => input.name).join(', ')
  throw new DataError(
    'payload',
    `${name} has no answers of providers: it is computed from ${inputs}. Replay its input.`,
  )
}

function toDays(runs: readonly StoredRun[]): readonly (readonly StoredRun[])[] {
  const days = new Map<number, StoredRun[]>()
  for (const run of runs) {
    const day = toBucketStart(run.collectedAt, '1d')
    days.set(day, [...(days.get(day) ?? []), run])
  }
  return [...days.values()]
}

interface Correction {
  readonly decoded: readonly DecodedRun[]
  readonly found: readonly Difference[]
  readonly layout: Layout
  readonly decisions: ConfirmationReplay | undefined
  readonly corrections: Awaited<ReturnType<typeof openCorrections>>
}

type ApplyContext = DecodeContext & Required<NonNullable<Pick<ReplayOptions, 'apply'>['apply']>>

/** Stores a correction. Each step is idempotent, and the record of the correction is stored first. */
async function applyCorrection(
  job: Job,
  context: ApplyContext,
  { decoded, found, layout, decisions, corrections }: Correction,
): Promise<void> {
  const { db } = context
  const { dataset } = job
  const decoder = readDecoderVersion()
  const olderOf = new Map(decoded.map(({ run }) => [run.collectedAt, run.decoder]))
  const toJson = (row: object | undefined) => (row === undefined ? null : JSON.stringify(row))
  const records = found.map(({ kind, entity, at, before, after, members, collectedAt }) => ({
    dataset: dataset.name,
    entity,
    observed_at: new Date(at).toISOString(),
    job: toQueueName(job.name, 'history'),
    before: toJson(before),
    after: toJson(after),
    reason: `stored answers decoded again: ${kind} ${members.join(', ')} (decoder ${olderOf.get(collectedAt)}, now ${decoder})`,
  }))
  await corrections.add(records)
  await remove(job, context, { found, layout, decisions })
  for (const { run, payload, collected } of decoded) {
    const own = found.flatMap((one) => (one.collectedAt === run.collectedAt ? (one.decoded ?? []) : []))
    if (own.length === 0) continue
    const slot = payload.kind === 'slot' ? payload.slot : payload.from
    const results = [...groupBy(own, ({ provider }) => provider)].map(([provider, rows]) => ({
      ...{ provider, rows: rows.map(({ row }) => row), read: [], steps: [] },
    }))
    await storeRows({ job, slot, context }, { results }, run.collectedAt)
    const { results: all, answers } = collected
    await openLedger(db, dataset).record({ payload, results: all, answers: answers.all(), now: run.collectedAt })
  }
}

const ROWS_PER_DELETE = 500

/** Removes the rows that no run decodes any more, and those that would outrank their corrections. */
async function remove(
  job: Job,
  context: ApplyContext,
  { found, layout, decisions }: Pick<Correction, 'found' | 'layout' | 'decisions'>,
): Promise<void> {
  const rankOf = (row: Difference['before']) => (row === undefined ? -1 : (layout.storedRows?.rank(row) ?? 0))
  const removed = found.filter(({ kind, before, after }) => kind !== 'added' && rankOf(before) > rankOf(after))
  if (decisions !== undefined) {
    // Before the prices, which a repeated replay would not find.
    await forget(
      job,
      context,
      removed.filter(({ kind }) => kind === 'removed'),
    )
    return await decisions.remove(removed)
  }
  const rows = removed.flatMap(({ before }) => (before === undefined ? [] : [before]))
  for (let at = 0; at < rows.length; at += ROWS_PER_DELETE)
    await deleteRows(job, context, layout, rows.slice(at, at + ROWS_PER_DELETE))
}

/** Removes the coverage of rows. */
async function forget({ dataset }: Job, { db }: ApplyContext, removed: readonly Difference[]): Promise<void> {
  if (removed.length === 0) return
  const { cadence } = dataset
  const reports = removed.map(({ entity, at, before }) => {
    const bucket = toBucket(at, cadence)
    const seconds = INTERVAL_SECONDS[cadence]
    const provider = String(before?.provider ?? '')
    return { entity, provider, seconds, state: 'stored' as const, first: bucket, last: bucket }
  })
  await openLedger(db, dataset).removeUnfounded(reports)
}

async function deleteRows({ dataset }: Job, { db }: ApplyContext, { columns, keys }: Layout, rows: readonly object[]) {
  const stored = db.cluster === undefined ? dataset.table : toLocal(dataset.table)
  const tuples = rows.map((row) => {
    const values = keys.map((key) => toLiteral(Reflect.get(row, key), columns.get(key) ?? ''))
    return `(${values.join(', ')})`
  })
  await db.command({
    name: 'replay-delete',
    sql: `DELETE FROM ${stored}${onCluster(db.cluster)} WHERE (${keys.join(', ')}) IN (${tuples.join(', ')})`,
    settings: { max_query_size: 16 * 1024 * 1024 },
  })
}

function toLiteral(value: unknown, type: string): string {
  if (typeof value === 'number') return String(value)
  const text = `'${String(value).replace(/[\\']/g, (character) => `\\${character}`)}'`
  if (isWideInteger(type)) return `to${type}(${text})`
  return type.startsWith('DateTime') ? `parseDateTime64BestEffort(${text}, 3, 'UTC')` : text
}
