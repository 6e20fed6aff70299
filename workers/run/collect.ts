import { DataError, isTransient, toReason } from '../../shared/errors.ts'
import { DAY_MS, type TimeRange } from '../../shared/intervals.ts'
import { toMs } from '../../shared/memo.ts'
import type { SlotPiece } from '../../shared/queue/queues.ts'
import type { Logger } from '../../shared/telemetry/log.ts'
import type { CheckedRows, Collector, Entity, LeftOut, Peers, Range } from '../job/define-job.ts'
import { draftState, type JobState } from '../job/state.ts'
import { type Answers, createAnswers } from './answers.ts'
import { type Redact, toClean } from './clean.ts'

/** A provider that failed as a whole, and why. */
export interface ProviderFailure {
  readonly provider: string
  readonly reason: DataError
}

/** A part of a range that a provider keeps only at a coarser step, in seconds. */
export interface Step extends TimeRange {
  readonly seconds: number
}

/** What one provider gave. */
export interface Given {
  readonly provider: string
  /** Rows that fit the dataset's schema. */
  readonly rows: readonly object[]
  /** The keys of the entities that were read up to the slot, rows or not. */
  readonly read: readonly number[]
  readonly steps: readonly Step[]
}

export interface Collected {
  readonly given: readonly Given[]
  readonly rejected: number
  readonly answers: Answers
  readonly failures: readonly ProviderFailure[]
  /** More can be read at once, when this is stored. */
  readonly more: boolean
}

/** What is to be collected, and how the answers are judged. */
interface Assignment {
  entities: readonly Entity[]
  /** Everybody in the slot, and in this piece of it; in a range the entities. */
  peers: Peers<Entity>
  /** The row member that holds the entity's key. Without one every answer is about all entities. */
  entityColumn: string | undefined
  slot: number
  piece?: SlotPiece | undefined
  range: Range | undefined
  /** A row of an earlier time, in Unix milliseconds, does not answer the slot; undefined where any row does. */
  answersFrom?: number | undefined
  /** The row member with its time. */
  timeColumn?: string
  /** Whether rows are events, of which a bucket may have none. */
  resumes: boolean
  state: JobState
  signal: AbortSignal
  /** Takes out of a failure's words what must not be stored with them. */
  redact: Redact
  /** Counts elements of an answer that are not stored, by their reason. */
  readonly onRejected?: (reason: string, count: number) => void
  /** Keeps the rows of a provider's answer that can be stored; throws DataError when the answer cannot be trusted. */
  check(provider: string, candidates: readonly object[]): CheckedRows
}

/**
 * Asks the providers in order. The first is asked about all entities that it covers; the next only about those that
 * have no answer yet: the providers before failed or refused, do not cover them or, in a slot, have no usable row. In a
 * range an entity without rows is answered by the first provider that does not fail, because a token has no history
 * before its launch; not so when an earlier provider failed, which may have what this one has not. When the job's time
 * is over no further provider is asked, and what came is kept.
 * @throws DataError `storage`, and whatever is no DataError: a mistake in this program.
 */
export async function collect(
  collectors: readonly Collector[],
  assignment: Assignment,
  log: Logger,
): Promise<Collected> {
  const answers = createAnswers(assignment.entities, assignment.range !== undefined)
  const given: Given[] = []
  const failures: ProviderFailure[] = []
  let [rejected, more] = [0, false]
  for (const collector of collectors) {
    const { provider } = collector
    const asked = answers.open().filter((entity) => collector.covers(entity))
    if (asked.length === 0) continue
    if (assignment.signal.aborted) {
      answers.failed(asked, provider, toFailure(assignment.signal.reason, provider, assignment.signal))
      continue
    }
    try {
      const passedOn = asked.filter(answers.isPassedOn)
      const one = await askOne(collector, { asked, passedOn }, assignment, log)
      one.state.keep()
      // Also who is refused in the end may have rows: those of a range that are good, or as far as a plan has them.
      if (one.rows.length > 0 || one.read.size > 0 || one.refused.size < asked.length)
        given.push({ provider, rows: one.rows, read: [...one.read], steps: one.steps })
      rejected += one.rejected
      more ||= one.more
      answers.given(asked, provider, one)
      const reason = toWholeFailure(asked, one.refused)
      if (reason !== undefined) failures.push({ provider, reason })
    } catch (error) {
      const reason = toClean(toFailure(error, provider, assignment.signal), assignment.redact)
      answers.failed(asked, provider, reason)
      const told = { provider, entities: asked.length, reason: toReason(reason) }
      if (NOT_ASKED.has(reason.code)) log.debug(told, 'provider is not set up')
      else {
        failures.push({ provider, reason })
        log.warn(told, 'provider failed')
      }
    }
  }
  return { given, rejected, answers, failures, more }
}

/** A provider that has no key, or no data under any id, does not fail: the coverage says of whom it has nothing and why. */
const NOT_ASKED: ReadonlySet<string> = new Set(['provider_unconfigured', 'provider_unknown'])

interface Asked {
  readonly asked: readonly Entity[]
  readonly passedOn: readonly Entity[]
}

async function askOne(collector: Collector, { asked, passedOn }: Asked, assignment: Assignment, log: Logger) {
  const state = draftState(assignment.state)
  const read = new Set<number>()
  const refused = new Map<number, DataError>()
  const leftOut = new Map<number, LeftOut>()
  const putOff = new Set<number>()
  const steps: Step[] = []
  const { peers } = assignment
  let more = false
  const candidates = await collector.collect({
    ...assignment,
    entities: asked,
    peers: { all: peers.all.filter(collector.covers), own: peers.own.filter(collector.covers) },
    passedOn,
    state,
    log: log.child({ provider: collector.provider }),
    noteRead: (entities) => {
      for (const { key } of entities) read.add(key)
    },
    refuse: ({ key }, reason) => void refused.set(key, toClean(reason, assignment.redact)),
    leaveOut: ({ key }, { count, reason }) => {
      const told = toClean(new DataError('provider_malformed', `${collector.provider}: ${reason}`), assignment.redact)
      leftOut.set(key, { count: count + (leftOut.get(key)?.count ?? 0), reason: told.message })
      assignment.onRejected?.(told.message, count)
    },
    putOff: (entities) => {
      for (const { key } of entities) putOff.add(key)
    },
    noteStep: ({ from, to }, seconds) => void steps.push({ from, to, seconds }),
    noteMore: () => {
      more = true
    },
  })
  const unreadable = [...leftOut.values()].reduce((sum, { count }) => sum + count, 0)
  const checked = assignment.check(collector.provider, candidates)
  for (const [key, { count, reason }] of checked.leftOut ?? [])
    leftOut.set(key, { count: count + (leftOut.get(key)?.count ?? 0), reason })
  const answered = { read, refused, putOff }
  const withRows = judge(collector.provider, asked, checked, answered, assignment)
  const rejected = checked.rejected + unreadable
  return { ...checked, ...answered, rejected, withRows, state, leftOut, steps, more }
}

/**
 * What a provider repeats in history when it is asked again at once: a value there that cannot be used. Another provider is
 * asked, and this one after a day.
 */
const UNUSABLE_RETRY_MS = DAY_MS

interface Answered {
  readonly read: ReadonlySet<number>
  readonly refused: Map<number, DataError>
  readonly putOff: ReadonlySet<number>
}

/**
 * Adds to `refused` of whom the rows are no answer. What the provider itself says of an entity comes before what its rows
 * look like.
 * @returns the entities whose rows are an answer.
 * @throws DataError `rows_rejected` where rows are about all entities together and cannot be used.
 */
function judge(
  provider: string,
  asked: readonly Entity[],
  checked: CheckedRows,
  { read, refused, putOff }: Answered,
  { entityColumn, timeColumn = '', answersFrom = Number.NEGATIVE_INFINITY, range, resumes }: Assignment,
): ReadonlySet<number> {
  const { unreadable } = checked
  if (entityColumn === undefined) {
    if (unreadable !== undefined) throw new DataError('rows_rejected', `${provider}: ${unreadable}`)
    return new Set(asked.map(({ key }) => key))
  }
  const withRows = new Set<number>()
  const outdated = new Map<number, string>()
  for (const row of checked.rows) {
    const key = Number(Reflect.get(row, entityColumn))
    const time = answersFrom === Number.NEGATIVE_INFINITY ? '' : String(Reflect.get(row, timeColumn))
    if (time !== '' && toMs(time) < answersFrom) outdated.set(key, time)
    else withRows.add(key)
  }
  const refuse = (key: number, reason: DataError) => {
    if (!refused.has(key)) refused.set(key, reason)
  }
  for (const [key, reason] of checked.refused) {
    // In a range every row has a bucket of its own. What is no number of a bucket, such as a trade, is merely left out.
    const isBucketLost = range !== undefined && !resumes && reason.code !== 'provider_unknown'
    if (isBucketLost) refuse(key, new DataError(reason.code, reason.message, { retryAfterMs: UNUSABLE_RETRY_MS }))
    else if (!withRows.has(key)) refuse(key, reason)
  }
  for (const [key, time] of outdated)
    if (!withRows.has(key))
      refuse(key, new DataError('provider_unknown', `${provider}: its newest value is of ${time}`))
  if (unreadable === undefined || resumes) return withRows
  const text = `${provider}: nothing of it, and a part of the answer cannot be read: ${unreadable}`
  for (const { key } of asked)
    if (!withRows.has(key) && !read.has(key) && !putOff.has(key)) refuse(key, new DataError('provider_unknown', text))
  return withRows
}

/** A provider that refused everybody for a reason that may pass has failed, and is told of as such. */
function toWholeFailure(asked: readonly Entity[], refused: ReadonlyMap<number, DataError>): DataError | undefined {
  if (refused.size < asked.length) return undefined
  return [...refused.values()].find(isTransient)
}

/**
 * An error that is no DataError is a mistake in this program, and is thrown as it is. So is one of our own stores, in which a
 * plan's calls are counted before any is made: no provider has failed then, and asking the next one would not help.
 */
function toFailure(error: unknown, provider: string, signal: AbortSignal): DataError {
  if (error instanceof DataError && error.code === 'storage') throw error
  if (error instanceof DataError) return error
  if (!signal.aborted) throw error
  return toLate(provider, error)
}

const toLate = (provider: string, cause?: unknown) =>
  new DataError('provider_unavailable', `${provider}: not done within the time of the job`, { cause })
