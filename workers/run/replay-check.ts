import { hash } from 'node:crypto'
import { parseConfig } from '../../shared/config/config.ts'
import type { Dataset } from '../../shared/datasets/define-dataset.ts'
import { DataError, toReason } from '../../shared/errors.ts'
import { groupBy } from '../../shared/group-by.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { createNoDatabase, type StoredRun } from '../../shared/store/store.ts'
import type { Logger } from '../../shared/telemetry/log.ts'
import type { Job } from '../job/define-job.ts'
import type { Collected } from './collect.ts'
import { openRecordings, type RecordedRow, type Recording, type RecordingSet, writeRows } from './recordings.ts'
import { type DecodeContext, decodeAnswers } from './replay-decode.ts'

/** A row that the present code decodes differently; a missing side is no row. */
export interface RowDifference {
  readonly kind: 'added' | 'changed' | 'removed'
  readonly before: RecordedRow | undefined
  readonly after: RecordedRow | undefined
  /** The members that differ. */
  readonly members: readonly string[]
}

/** The check of one recording. */
export interface CheckedRecording {
  readonly name: string
  readonly dataset: Dataset
  readonly rows: number
  readonly differences: readonly RowDifference[]
  /** A failure that the run did not have, for example a request that it did not send. */
  readonly failure: string | undefined
}

export interface CheckResult {
  readonly recordings: readonly CheckedRecording[]
  /** Recordings that were not decoded, because their bodies are in a folder that does not exist. */
  readonly skipped: readonly string[]
}

export interface CheckOptions {
  /** The folder of the recordings. */
  readonly folder: string
  /** The optional folder with bodies that the recordings name. */
  readonly dataDir: string
  readonly jobs: readonly Job[]
  readonly isWanted: (dataset: string) => boolean
  /** Accepts the rows of today as those of the recordings. */
  readonly accepts: boolean
  readonly log: Logger
}

/** Decodes recorded answers of providers with the present code, without network and stores, and compares the rows. */
export async function checkRecordings({ folder, dataDir, ...options }: CheckOptions): Promise<CheckResult> {
  const recordings: CheckedRecording[] = []
  const skipped: string[] = []
  for (const set of openRecordings(folder, dataDir)) {
    const context = toContext(set, options.log)
    for (const own of set.names) {
      const name = `${set.name}/${own}`
      const recording = set.read(own)
      if (recording === undefined) skipped.push(name)
      else if (options.isWanted(recording.dataset))
        recordings.push(await checkOne({ ...recording, name }, { ...options, context, hasHashes: set.hasHashes }))
    }
  }
  return { recordings, skipped }
}

function toContext({ name, settings, registry }: RecordingSet, log: Logger): DecodeContext {
  return {
    config: parseConfig(settings),
    registry: loadRegistry(registry),
    // Recorded runs are the first of their datasets, so the stores had no rows.
    db: { ...createNoDatabase(`${name}: a decoder may only read stored rows`), rows: async () => [] },
    log,
    redact: (text) => text,
  }
}

interface CheckContext extends Pick<CheckOptions, 'jobs' | 'accepts'> {
  readonly context: DecodeContext
  readonly hasHashes: boolean
}

async function checkOne(
  { name, dataset: named, run, bodies, rows: accepted, rowsFile }: Recording,
  { jobs, accepts, context, hasHashes }: CheckContext,
): Promise<CheckedRecording> {
  const job = jobs.find(({ dataset }) => dataset.name === named)
  if (job === undefined) throw new DataError('config', `${name}: there is no dataset ${named}`)
  const { dataset } = job
  const source = { readBodies: async () => bodies, readLast: async () => undefined }
  try {
    const { collected, missing } = await decodeAnswers(job, run, context, source)
    const decoded = collected.results.flatMap(({ provider, rows }) => rows.map((one) => toRecordedRow(provider, one)))
    const rows = hasHashes ? decoded.map((one) => toHashes(dataset, one)) : decoded
    if (accepts) writeRows(rowsFile, rows)
    const before = accepts ? rows : (accepted ?? [])
    const failure = missing?.message ?? findNewFailure(run, collected)
    return { name, dataset, rows: rows.length, differences: compareRecorded(dataset, before, rows), failure }
  } catch (error) {
    return { name, dataset, rows: 0, differences: [], failure: toReason(error) }
  }
}

/** The failure of a provider that did not fail in the run. */
function findNewFailure({ outcome }: StoredRun, { failures }: Collected): string | undefined {
  const failed = new Set(outcome.failures.map(({ provider }) => provider))
  return failures.find(({ provider }) => !failed.has(provider))?.reason.message
}

const toRecordedRow = (provider: string, one: object) => JSON.parse(JSON.stringify({ provider, ...one })) as RecordedRow

/** Replaces each value but those that identify the row by a hash. */
function toHashes({ entity, series }: Dataset, one: RecordedRow): RecordedRow {
  const isPlain = (name: string) => name === 'provider' || name === entity || name === series.time
  const toHash = (value: unknown) => hash('sha256', JSON.stringify(value), 'hex').slice(0, 10)
  return Object.fromEntries(
    Object.entries(one).map(([name, value]) => [name, isPlain(name) || value === null ? value : toHash(value)]),
  )
}

/**
 * Compares rows by entity and time. Of several rows with the same entity and time, equal ones are matched first, the
 * others in their order.
 */
export function compareRecorded(
  { entity, series }: Dataset,
  before: readonly RecordedRow[],
  after: readonly RecordedRow[],
): readonly RowDifference[] {
  const toKey = (one: RecordedRow) => JSON.stringify([entity === undefined ? 0 : one[entity], one[series.time]])
  const [older, newer] = [groupBy(before, toKey), groupBy(after, toKey)]
  return [...new Set([...older.keys(), ...newer.keys()])].flatMap((key) => {
    const [removed, added] = withoutEqual(older.get(key) ?? [], newer.get(key) ?? [])
    return Array.from({ length: Math.max(removed.length, added.length) }, (_, place) =>
      toDifference(removed[place], added[place]),
    )
  })
}

/** Drops the rows that both sides have. */
function withoutEqual(before: readonly RecordedRow[], after: readonly RecordedRow[]) {
  const remaining = new Map<string, RecordedRow[]>()
  for (const one of after) remaining.set(toText(one), [...(remaining.get(toText(one)) ?? []), one])
  const removed = before.filter((one) => remaining.get(toText(one))?.pop() === undefined)
  return [removed, [...remaining.values()].flat()] as const
}

const toText = (one: RecordedRow) => JSON.stringify(Object.entries(one).sort(([a], [b]) => (a < b ? -1 : 1)))

function toDifference(before: RecordedRow | undefined, after: RecordedRow | undefined): RowDifference {
  const names = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])]
  const members = names.filter((name) => JSON.stringify(before?.[name]) !== JSON.stringify(after?.[name]))
  const kind = before === undefined ? 'added' : after === undefined ? 'removed' : 'changed'
  return { kind, before, after, members }
}
