import { subtract, toBucket, toBuckets, toBucketTime, union } from '../../shared/coverage/grid.ts'
import type { Report } from '../../shared/coverage/ledger.ts'
import { type Note, OPEN_END } from '../../shared/coverage/notes.ts'
import { DAY_MS, HOUR_MS, INTERVAL_SECONDS, type TimeRange } from '../../shared/intervals.ts'
import type { Job } from '../job/define-job.ts'
import type { Answer } from './answers.ts'
import type { Reported } from './to-reports.ts'

/** What of a run's answers has to be explained, beside the notes that explain it so far. */
interface Noted extends Reported {
  readonly reports: readonly Report[]
  readonly before: readonly Note[]
  /** Tells the providers apart that are set up. */
  readonly providers: string
}

const NOT_COMPUTED = 'not all that it is computed from is stored'

const FIRST_PAUSE_MS = 5 * 60_000

/** How long nobody asks again: what failed has growing pauses up to a day; what nobody has is asked for once a week. */
function toPause(state: Note['state'], tries: number, failure: Answer['failure']): number {
  if (state === 'unserved') return 7 * DAY_MS
  const pause = Math.min(state === 'coarser' ? DAY_MS : 6 * HOUR_MS, FIRST_PAUSE_MS * 2 ** (tries - 1))
  return Math.max(pause, failure?.retryAfterMs ?? 0)
}

/** The notes that a run leaves: those that begin, go on or end with it. */
export function toNotes(noted: Noted): Note[] {
  const { payload } = noted
  return noted.collected.answers.all().flatMap((answer) => {
    const before = noted.before.filter(({ entity }) => entity === answer.entity.key)
    return payload.kind === 'slot'
      ? toLiveNote(answer, before, payload.slot, noted)
      : toRangeNote(answer, before, noted)
  })
}

/**
 * A note of the live lane begins with the bucket that a slot fills. It is written again only when its reason changes, so
 * that an outage is one row.
 */
function toLiveNote(answer: Answer, before: readonly Note[], slot: number, noted: Noted): Note[] {
  const { job, now, providers } = noted
  const { cadence } = job.dataset
  if (answer.state === 'put-off') return []
  const filled = job.dataset.hasOwnTimes ? slot - INTERVAL_SECONDS[cadence] * 1000 : slot
  const from = toBucketTime(toBucket(filled, cadence), cadence)
  const open = before.find(({ lane, to }) => lane === 'live' && to === OPEN_END)
  if (answer.state === 'rows' || answer.state === 'nothing')
    return open === undefined ? [] : [{ ...open, to: Math.max(from, open.from + 1) }]
  const { state, provider, reason } = answer
  if (open?.state === state && open.reason === reason && open.providers === providers) return []
  const since = open?.state === state ? open.since : now
  const note: Note = {
    entity: answer.entity.key,
    lane: 'live',
    from: open?.from ?? from,
    to: OPEN_END,
    state,
    provider,
    reason,
    since,
    tries: (open?.tries ?? 0) + 1,
    nextTry: now,
    providers,
  }
  return [note]
}

/** Of a range that came it is explained what did not: buckets that are coarser, or that a provider may have that failed. */
function toRangeNote(
  answer: Answer,
  before: readonly Note[],
  { payload, job, now, providers, reports }: Noted,
): Note[] {
  if (payload.kind === 'slot') return []
  const cadence = INTERVAL_SECONDS[job.dataset.cadence]
  const isCoarser = reports.some(({ entity, state, seconds }) => {
    return entity === answer.entity.key && state === 'stored' && seconds > cadence
  })
  const isComputed = job.computedFrom.length > 0 && hasGaps(answer.entity.key, payload, job, reports)
  const told = answer.state === 'failed' || answer.state === 'unserved' ? answer.state : undefined
  const state = told ?? (isComputed ? 'unserved' : isCoarser ? 'coarser' : answer.failure && 'failed')
  if (state === undefined) return []
  const last = before.find(({ lane, from }) => lane === 'history' && from === payload.from)
  const isAgain = last?.state === state && last.providers === providers
  const tries = isAgain ? last.tries + 1 : 1
  const { provider, failure } = answer
  const nothing = isComputed ? NOT_COMPUTED : `${provider} has nothing finer`
  const reason = answer.reason === '' ? nothing : answer.reason
  // Where nothing failed, only another provider could have it finer.
  const isFinal = state === 'coarser' && failure === undefined
  const nextTry = isFinal ? OPEN_END : now + toPause(state, tries, failure)
  // A range may end with a bucket of its step that is not over: what is still to come is not explained by it.
  const { from } = payload
  const to = Math.min(payload.to, toBucketTime(toBucket(now, job.dataset.cadence), job.dataset.cadence))
  if (to <= from) return []
  const since = isAgain ? last.since : now
  return [
    { entity: answer.entity.key, lane: 'history', from, to, state, provider, reason, since, tries, nextTry, providers },
  ]
}

/** Whether a range has buckets that no report of the entity is about. */
function hasGaps(entity: number, range: TimeRange, { dataset }: Job, reports: readonly Report[]): boolean {
  const asked = toBuckets(range, dataset.cadence)
  const own = union(reports.filter((report) => report.entity === entity))
  return asked !== undefined && subtract(asked, own).length > 0
}
