import {
  intersect,
  subtract,
  toBucket,
  toBuckets,
  toBucketTime,
  toSettledEnd,
  toStepSeconds,
  toTimes,
  union,
} from '../../shared/coverage/grid.ts'
import type { Report } from '../../shared/coverage/ledger.ts'
import { type Note, OPEN_END } from '../../shared/coverage/notes.ts'
import { groupBy } from '../../shared/group-by.ts'
import { type Cadence, DAY_MS, HOUR_MS, INTERVAL_SECONDS, type TimeRange } from '../../shared/intervals.ts'
import type { RangePayload } from '../../shared/queue/queues.ts'
import { untilEnd } from '../../shared/registry/ends.ts'
import type { Answer } from './answers.ts'
import type { Reported } from './to-reports.ts'

/** A run with its coverage reports and the existing notes of its entities. */
interface Noted extends Reported {
  readonly reports: readonly Report[]
  readonly before: readonly Note[]
}

/** State of one time range of an entity. */
type Told = TimeRange & Pick<Note, 'state' | 'reason'> & { readonly failure: Answer['failure'] }

const NOT_COMPUTED = 'not all that it is computed from is stored'

const FIRST_PAUSE_MS = 5 * 60_000

/** Returns the notes that a run starts, continues or ends. */
export function toNotes(noted: Noted): Note[] {
  const { payload } = noted
  const notesOf = groupBy(noted.before, ({ entity }) => entity)
  return noted.collected.answers.all().flatMap((answer) => {
    const before = notesOf.get(answer.entity.key) ?? []
    if (payload.kind === 'slot') return toLiveNote(answer, before, payload.slot, noted)
    return toTold(answer, payload, noted).map((told) => toRangeNote(answer, told, before, payload, noted))
  })
}

/**
 * A live note begins at the bucket that the slot fills, or at the bucket where a full reading would start. It is
 * rewritten only if its reason changes, so an outage is one row. If the job has no history, failed buckets are
 * permanently missing, unless the job resumes from its cursors.
 */
function toLiveNote(answer: Answer, before: readonly Note[], slot: number, { job, now, readSince }: Noted): Note[] {
  if (answer.state === 'put-off') return []
  const { cadence, hasOwnTimes } = job.dataset
  const filled = toBucket(hasOwnTimes ? slot - INTERVAL_SECONDS[cadence] * 1000 : slot, cadence)
  const open = before.find(({ lane, to }) => lane === 'live' && to === OPEN_END)
  if (answer.state === 'rows' || answer.state === 'nothing') {
    const partial = toPartialNote(answer, filled, { cadence, now })
    if (open === undefined) return partial
    const ended = { ...open, to: Math.max(toBucketTime(filled, cadence), open.from + 1) }
    const isLost = job.history === undefined && !job.resumes && open.state === 'failed'
    const end: Note = isLost
      ? { ...ended, state: 'unserved', tries: 0, reason: `${open.reason}; it has no history` }
      : ended
    // A partial note that begins in the same bucket replaces the open note: that bucket is stored now.
    return partial.some(({ from }) => from === end.from) ? partial : [end, ...partial]
  }
  const { state, provider, reason } = answer
  if (open?.state === state && open.reason === reason) return []
  const since = open?.state === state ? open.since : now
  const tries = (open?.tries ?? 0) + 1
  const { key } = answer.entity
  const unread = job.history === undefined ? readSince?.(provider, key) : undefined
  const from = toBucketTime(Math.min(unread ?? filled, filled), cadence)
  const times = { from: open?.from ?? from, to: OPEN_END, since, nextTry: now }
  return [{ entity: key, lane: 'live', state, provider, reason, tries, ...times }]
}

/** Returns a one-bucket note for a stored bucket from which elements were left out. */
function toPartialNote(
  { entity, provider, leftOut }: Answer,
  filled: number,
  { cadence, now }: { readonly cadence: Cadence; readonly now: number },
): Note[] {
  if (leftOut === '') return []
  const times = { from: toBucketTime(filled, cadence), to: toBucketTime(filled + 1, cadence), since: now, nextTry: now }
  return [{ entity: entity.key, lane: 'live', state: 'coarser', provider, reason: leftOut, tries: 1, ...times }]
}

/**
 * Returns the parts of a range that need a note: all of it if no provider answered; otherwise the buckets with a
 * coarser step and the missing buckets. Unfinished buckets and buckets after the entity's end were not requested and
 * get no note.
 */
function toTold(answer: Answer, payload: RangePayload, { job, now, reports }: Noted): Told[] {
  const { cadence } = job.dataset
  const { entity, state, provider, reason, failure } = answer
  const over = { from: payload.from, to: Math.min(payload.to, toBucketTime(toBucket(now, cadence), cadence)) }
  const asked = toBuckets(untilEnd(over, entity), cadence)
  if (asked === undefined || state === 'put-off') return []
  if (state === 'failed' || state === 'unserved') return [{ ...toTimes(asked, cadence), state, reason, failure }]
  const own = reports.filter((report) => report.entity === entity.key)
  const step = toStepSeconds(payload.interval, cadence)
  const coarse = intersect(union(own.filter(({ seconds }) => seconds > step)), asked)
  const left = subtract(asked, union(own))
  const gap = { first: left[0]?.first ?? 0, last: left.at(-1)?.last ?? -1 }
  const why = (fallback: string) => (reason === '' ? fallback : reason)
  return [
    ...coarse.map((run) => ({
      ...toTimes(run, cadence),
      state: 'coarser' as const,
      reason: why(`${provider} has nothing finer`),
      failure,
    })),
    ...(left.length === 0 ? [] : [{ ...toTimes(gap, cadence), ...toGapReason(job.computedFrom.length > 0), failure }]),
  ]
  function toGapReason(isComputed: boolean): Pick<Told, 'state' | 'reason'> {
    if (isComputed) return { state: 'unserved', reason: NOT_COMPUTED }
    if (failure !== undefined) return { state: 'failed', reason: why(provider) }
    return { state: 'pending', reason: `${provider} has nothing there yet` }
  }
}

function toRangeNote(
  { entity, provider }: Answer,
  { from, to, state, reason, failure }: Told,
  before: readonly Note[],
  payload: RangePayload,
  { job, now }: Noted,
): Note {
  const last = before.find((note) => note.lane === 'history' && note.from === from && note.state === state)
  // All attempts of one job count as one.
  const tries = last === undefined ? 1 : last.nextTry > now ? last.tries : last.tries + 1
  const seconds = toStepSeconds(payload.interval, job.dataset.cadence)
  const nextTry = toNextTry({ state, failure }, { now, tries, seconds })
  return {
    entity: entity.key,
    lane: 'history',
    from,
    to,
    state,
    provider,
    reason,
    since: last?.since ?? now,
    tries,
    nextTry,
  }
}

/**
 * Returns the time of the next attempt. Failed: growing pauses. Unserved: after a week. Pending: three times until the
 * time is settled. Coarser without a failure: never, because only another provider could have a finer step.
 */
function toNextTry(
  { state, failure }: Pick<Told, 'state' | 'failure'>,
  { now, tries, seconds }: { now: number; tries: number; seconds: number },
): number {
  if (state === 'coarser' && failure === undefined) return OPEN_END
  if (state === 'unserved') return now + 7 * DAY_MS
  if (state === 'pending') return now + (now - toSettledEnd(now, seconds)) / 3
  const pause = Math.min(state === 'coarser' ? DAY_MS : 6 * HOUR_MS, FIRST_PAUSE_MS * 2 ** (tries - 1))
  return now + Math.max(pause, failure?.retryAfterMs ?? 0)
}
