import { DataError } from '../../shared/errors.ts'
import { INTERVALS, type Interval, type TimeRange } from '../../shared/intervals.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import { createGathering } from '../answers/gathering.ts'
import { withSignal } from '../answers/leaving.ts'
import type { Rows } from '../answers/rows.ts'
import type { PointsRange, StoredPoints } from '../route/stored-points.ts'
import { toPieceMs } from '../series/pieces.ts'
import { readStoredPoints } from './stored-points.ts'

/** Maximum number of chunks written in this process per read: they take some milliseconds of the only thread. */
const SHORT_PIECES = 8

const countPieces = ({ from, to }: TimeRange, interval: Interval) => (to - from) / toPieceMs(interval)

/** Whether a range is read by `StoredPoints`. */
export const isShort = (range: TimeRange, interval: Interval): boolean => countPieces(range, interval) <= SHORT_PIECES

/** One concurrent statement per this number of concurrent answers; further reads are batched. */
const ANSWERS_PER_STATEMENT = 4

/**
 * Batches reads of short ranges into one statement while others are running. On a cluster each range is read alone: one
 * token needs one shard, and its answer does not depend on another shard's availability.
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
 * Reads within the time limit of an answer, including the wait for a statement.
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
