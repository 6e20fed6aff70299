import { createHash, hash, randomUUID } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '../../shared/config/config.ts'
import { DAY_MS } from '../../shared/intervals.ts'
import { type JobPayload, toQueueName } from '../../shared/queue/queues.ts'
import type { Database, RunOutcome } from '../../shared/store/store.ts'
import { type NotedAnswer, notingAnswers } from '../http/client.ts'
import { type Entity, type Job, toSlotEnd } from '../job/define-job.ts'
import type { JobState } from '../job/job-state.ts'
import type { Collected } from './collect.ts'
import { findNamedEntities } from './named-entities.ts'

/** Later than every retention, and within the time that ClickHouse's TTL can compare. Unix milliseconds. */
const FOREVER_MS = Date.UTC(2100, 0, 1)
/** If the buffered bodies exceed this size, they are inserted while the run still collects. */
const MOST_BUFFERED_BYTES = 32 * 1024 * 1024
/** Length of the beginning by which similar bodies are sorted. */
const BEGINNING = 64

/**
 * Whether answers are stored like those that can be fetched again: the provider has history or serves past events.
 * Answers with texts of people count as such, so that they are not stored longer.
 */
const isRepeatable = ({ history, resumes, dataset }: Job): boolean =>
  history !== undefined || resumes || dataset.hasTextsOfPeople === true

/** Returns the end of the retention of a job's answers in Unix milliseconds; undefined if they are not stored. */
function toKeptUntil(job: Job, { days, unrepeatableDays }: Config['rawAnswers'], now: number): number | undefined {
  const kept = isRepeatable(job) ? days : unrepeatableDays
  return kept === 0 ? undefined : Math.min(FOREVER_MS, now + kept * DAY_MS)
}

/** A body that is not inserted yet. */
interface Body {
  readonly beginning: string
  readonly hash: string
  readonly body: string
  readonly bytes: number
  readonly omitted: string
}

interface Noted extends Omit<NotedAnswer, 'body'> {
  readonly receivedAt: number
  readonly hash: string
  readonly bytes: number
}

interface RunFacts {
  readonly job: Job
  readonly payload: JobPayload
  readonly entities: readonly Entity[]
  readonly db: Database
  readonly config: Config
  readonly state: JobState
}

/** Stores the answers of one collection of a run. */
export interface RawRun {
  /** The job's state. Each value that the collection reads from it is stored with the answers. */
  readonly state: JobState
  /** Runs a collection and notes its answers. */
  collect<T>(work: () => Promise<T>): Promise<T>
  /** Notes the entities whose rows a provider sent and the check of plausibility refused. */
  noteImplausible(provider: string, entities: readonly number[]): void
  /**
   * Stores the bodies and the run. Must be called before the rows are stored, so that every stored row has its answer.
   * A run that is stored twice is one record, as is a body.
   */
  store(collected: Collected, startedAt: number): Promise<void>
}

/** Opens the record of a collection. Computed datasets have no answers: their rows follow from other stored rows. */
export function openRawRun({ job, payload, entities, db, config, state }: RunFacts): RawRun {
  // The engine's TTL uses the real time, also if a test moves the clock of the jobs.
  const keptUntil = job.computedFrom.length > 0 ? undefined : toKeptUntil(job, config.rawAnswers, Date.now())
  if (keptUntil === undefined)
    return { state, collect: (work) => work(), noteImplausible: () => {}, store: async () => {} }
  const answers: Noted[] = []
  const read = new Map<string, string | null>()
  const implausible = new Map<string, readonly number[]>()
  const bodies = createBodyWriter(db, config.rawAnswers.maxBytes, new Date(keptUntil).toISOString())
  const note = ({ body, ...answer }: NotedAnswer) =>
    void answers.push({ ...answer, receivedAt: Date.now(), ...bodies.add(body, answer.status) })
  return {
    state: {
      ...state,
      get: async (name) => {
        const value = await state.get(name)
        if (!read.has(name)) read.set(name, value ?? null)
        return value
      },
    },
    collect: (work) => notingAnswers(note, work),
    noteImplausible: (provider, refused) => void implausible.set(provider, refused),
    async store(collected, startedAt) {
      if (answers.length === 0 && collected.results.every(({ rows }) => rows.length === 0)) return
      const queueClass = payload.kind === 'slot' ? 'live' : 'history'
      const from = payload.kind === 'slot' ? payload.slot : payload.from
      const to = payload.kind === 'slot' ? toSlotEnd(job, payload.slot) : payload.to
      const toTime = (ms: number) => new Date(ms).toISOString()
      const row = {
        dataset: job.dataset.name,
        job: toQueueName(job.name, queueClass),
        slot_at: toTime(from),
        until_at: toTime(to),
        collected_at: toTime(startedAt),
        run: randomUUID(),
        payload: JSON.stringify({ ...payload, entities: entities.map(({ id }) => id) }),
        state: JSON.stringify(Object.fromEntries(read)),
        outcome: JSON.stringify(toOutcome(job, collected, implausible)),
        decoder: readDecoderVersion(),
        ...toColumns(answers, entities),
        kept_until: toTime(keptUntil),
      }
      await Promise.all([bodies.flush(), db.insert({ table: 'raw_runs', rows: [row] })])
    },
  }
}

function toColumns(answers: readonly Noted[], entities: readonly Entity[]) {
  const named = findNamedEntities(entities)
  const of = <T>(value: (answer: Noted) => T) => answers.map(value)
  return {
    'answers.provider': of(({ provider }) => provider),
    'answers.method': of(({ method }) => method),
    'answers.host': of(({ host }) => host),
    'answers.path': of(({ path }) => path),
    'answers.query': of(({ query }) => query),
    'answers.sent': of(({ sent }) => sent),
    'answers.status': of(({ status }) => status),
    'answers.content_type': of(({ contentType }) => contentType ?? ''),
    'answers.received_at': of(({ receivedAt }) => new Date(receivedAt).toISOString()),
    'answers.attempt': of(({ attempt }) => attempt),
    'answers.code': of(({ code }) => code),
    'answers.reason': of(({ reason }) => reason),
    'answers.hash': of(({ hash }) => hash),
    'answers.bytes': of(({ bytes }) => bytes),
    'answers.entities': of(named),
  }
}

function toOutcome(job: Job, collected: Collected, implausible: ReadonlyMap<string, readonly number[]>): RunOutcome {
  const { entity } = job.dataset
  return {
    // A result without rows would be read as one about every entity.
    rows: collected.results
      .filter(({ rows }) => rows.length > 0)
      .map(({ provider, rows }) => ({
        provider,
        entities: entity === undefined ? [] : [...new Set(rows.map((row) => Number(Reflect.get(row, entity))))],
      })),
    failures: collected.failures.map(({ provider, reason }) => ({ provider, reason: reason.message })),
    refused: collected.answers
      .all()
      .flatMap(({ entity: { key }, reason }) => (reason === '' ? [] : [{ entity: key, reason }])),
    implausible: [...implausible].map(([provider, keys]) => ({ provider, entities: [...keys] })),
  }
}

/** Inserts bodies, each once. Buffers them up to a limit. */
function createBodyWriter(db: Database, maxBytes: number, kept_until: string) {
  const known = new Set<string>()
  let buffered: Body[] = []
  let bufferedBytes = 0
  let underway: Promise<void> = Promise.resolve()
  const insert = () => {
    const rows = buffered
    buffered = []
    bufferedBytes = 0
    if (rows.length === 0) return
    underway = underway.then(() => db.insert({ table: 'raw_answers', rows, every: { kept_until } }))
    // `flush` reports the failure; until then nothing else may handle it.
    underway.catch(() => undefined)
  }
  return {
    add(body: string, status: number): { hash: string; bytes: number } {
      if (status === 0) return { hash: '', bytes: 0 }
      const bytes = Buffer.byteLength(body)
      const key = hash('sha256', body, 'hex')
      if (known.has(key)) return { hash: key, bytes }
      known.add(key)
      const omitted = bytes > maxBytes ? `over the limit of ${maxBytes} bytes (RAW_ANSWERS_MAX_MB)` : ''
      const stored = omitted === '' ? body : ''
      buffered.push({ beginning: body.slice(0, BEGINNING), hash: key, body: stored, bytes, omitted })
      bufferedBytes += omitted === '' ? bytes : 0
      if (bufferedBytes > MOST_BUFFERED_BYTES) insert()
      return { hash: key, bytes }
    },
    async flush(): Promise<void> {
      insert()
      await underway
    },
  }
}

/** The code that decodes answers, relative to this file. */
const FOLDERS = ['../providers', '../jobs'] as const

let version: string | undefined

/** Returns a hash of the code that decodes answers: equal versions decode the same answers to the same rows. */
export function readDecoderVersion(): string {
  version ??= hashFolders()
  return version
}

function hashFolders(): string {
  const sum = createHash('sha256')
  for (const name of FOLDERS) {
    const folder = join(import.meta.dirname, name)
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => /\.[jt]s$/.test(file))
    for (const file of files.sort()) sum.update(`${file}\0`).update(readFileSync(join(folder, file)))
  }
  return sum.digest('hex').slice(0, 12)
}
