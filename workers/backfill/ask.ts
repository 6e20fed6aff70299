import { type Buckets, toBuckets, toStepSeconds, toTimes } from '../../shared/coverage/grid.ts'
import { readMissing } from '../../shared/coverage/ledger.ts'
import { EVERYBODY, readWanted, toDueEnd, want } from '../../shared/coverage/wanted.ts'
import { INTERVAL_SECONDS, type Interval, type TimeRange } from '../../shared/intervals.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import type { Entity, Job } from '../job/define-job.ts'
import type { Chunk } from '../schedule/chunks.ts'

/** History that somebody asks for; `title` is what the progress and the table call it. */
export interface Ask {
  readonly title: string
  readonly job: Job
  readonly entities: readonly Entity[]
  /** Whether only some of the dataset's entities are asked for. */
  readonly isNamed: boolean
  /** Whether it was said before that it is wanted. */
  readonly isWanted?: true
  readonly range: TimeRange
  readonly interval: Interval
  /** All of it as jobs, what is known already too. */
  readonly chunks: readonly Chunk[]
}

/** The step that counts as what was asked for, in seconds. */
export const toSeconds = ({ job, interval }: Pick<Ask, 'job' | 'interval'>): number =>
  toStepSeconds(interval, job.dataset.cadence)

/** The buckets that are asked for and due; undefined where none is. */
export function toDue({ job, range }: Pick<Ask, 'job' | 'range'>, now: number): Buckets | undefined {
  const to = Math.min(range.to, toDueEnd(job.dataset, now))
  return toBuckets({ from: range.from, to }, job.dataset.cadence)
}

/** Says that the history is wanted, unless that was said already: whatever becomes of the queues, it is collected. */
export async function wantAsked(db: Database, ask: Ask): Promise<void> {
  const { job, entities, isNamed, range, interval } = ask
  if (ask.isWanted) return
  const said = (await readWanted(db, job.dataset)).filter(({ seconds }) => seconds <= INTERVAL_SECONDS[interval])
  const keys = isNamed ? entities.map(({ key }) => key) : [EVERYBODY]
  const ranges = keys.flatMap((entity) => {
    const own = said.filter((one) => one.entity === EVERYBODY || one.entity === entity)
    return withoutRanges(range, own).map((left) => ({ entity, ...left, interval }))
  })
  await want(db, job.dataset, ranges)
}

function withoutRanges(range: TimeRange, taken: readonly TimeRange[]): TimeRange[] {
  return taken.reduce<TimeRange[]>(
    (left, { from, to }) =>
      left.flatMap((one) =>
        [
          { from: one.from, to: Math.min(one.to, from) },
          { from: Math.max(one.from, to), to: one.to },
        ].filter((part) => part.from < part.to),
      ),
    [{ from: range.from, to: range.to }],
  )
}

/** The jobs of what is due and not known at the step that is asked for. */
export async function toMissingChunks(db: Database, ask: Ask, now: number): Promise<Chunk[]> {
  const { job, entities, chunks } = ask
  const within = toDue(ask, now)
  if (within === undefined) return []
  const keys = entities.map(({ key }) => key)
  const missing = await readMissing(db, job.dataset, keys, { wanted: [within], seconds: toSeconds(ask) })
  const byId = new Map(entities.map(({ id, key }) => [id, missing.get(key) ?? []]))
  return chunks.filter(({ payload }) =>
    payload.entities?.some((id) =>
      byId.get(id)?.some((run) => {
        const { from, to } = toTimes(run, job.dataset.cadence)
        return from < payload.to && to > payload.from
      }),
    ),
  )
}

/** The same jobs for what is known already too, under ids of their own. */
export const toAgain = (chunks: readonly Chunk[]): Chunk[] =>
  chunks.map(({ id, payload }) => ({ id: `${id}.again`, payload: { ...payload, again: true } }))
