import { DataError } from '../../shared/errors.ts'
import { INTERVALS, type Interval, type TimeRange } from '../../shared/intervals.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import { createGathering } from '../answers/gathering.ts'
import { withSignal } from '../answers/leaving.ts'
import type { Rows } from '../answers/rows.ts'
import type { PointsRange, StoredPoints } from '../route/stored-points.ts'
import { toPieceMs } from '../series/pieces.ts'
import { readStoredPoints } from './stored-points.ts'

/** How many pieces are written here at once: so many take the one thread that serves everybody some milliseconds. */
const SHORT_PIECES = 8

const countPieces = ({ from, to }: TimeRange, interval: Interval) => (to - from) / toPieceMs(interval)

/** Whether a range is read by `StoredPoints`. */
export const isShort = (range: TimeRange, interval: Interval): boolean => countPieces(range, interval) <= SHORT_PIECES

/** A statement of its own for each of so many answers that may be made at once; the others are gathered. */
const ANSWERS_PER_STATEMENT = 4

/**
 * Ranges of a few pieces that are asked for while others are read come with one statement. On a cluster each is read by
 * itself: one token needs one shard, and has its answer while another shard is away.
 */
export function createStoredPoints(db: Database, answersAtOnce: number): StoredPoints {
  const createRead = (interval: Interval): StoredPoints[Interval] => {
    const read = (ranges: readonly PointsRange[], left: AbortSignal) =>
      readStoredPoints(withSignal(db, left), interval, ranges)
    const gather = createGathering({
      read,
      atOnce: Math.max(2, Math.floor(answersAtOnce / ANSWERS_PER_STATEMENT)),
      most: SHORT_PIECES,
      weigh: (range: PointsRange) => Math.max(1, countPieces(range, interval)),
    })
    const isAlone = (range: PointsRange) => db.cluster !== undefined || countPieces(range, interval) > SHORT_PIECES / 2
    return (range, abandoned) =>
      inTime(abandoned, db.answerTimeoutMs, (left) =>
        isAlone(range) ? read([range], left).then(([rows]) => rows as Rows) : gather(range, left),
      )
  }
  return Object.fromEntries(INTERVALS.map((interval) => [interval, createRead(interval)])) as StoredPoints
}

/**
 * Reads as long as somebody may wait for an answer, the waiting for a statement included.
 * @throws DataError `storage`
 */
async function inTime<T>(
  abandoned: AbortSignal,
  timeoutMs: number,
  read: (left: AbortSignal) => Promise<T>,
): Promise<T> {
  const late = AbortSignal.timeout(timeoutMs)
  try {
    return await read(AbortSignal.any([abandoned, late]))
  } catch (error) {
    if (error !== late.reason) throw error
    throw new DataError('storage', `ClickHouse: no answer within ${timeoutMs / 1000} s`, { cause: error })
  }
}
