import { z } from 'zod'
import { createBatcher } from '../../shared/batcher.ts'
import {
  PRICE_POINT,
  pricePoint,
  STORED_PRICES,
  selectPricePoints,
  toPriceRows,
} from '../../shared/datasets/price-points.ts'
import { DataError, toReason } from '../../shared/errors.ts'
import { INTERVALS, type Interval, isWithin, type TimeRange } from '../../shared/intervals.ts'
import { idValue, observationSource } from '../../shared/record-values.ts'
import { type Database, withSignal } from '../../shared/store/store.ts'
import { inTime, type Representation, type Rows, readAnswer, toObject } from '../formats/formats.ts'
import type { PointsRange, StoredPoints, StoredRows } from '../route/stored-points.ts'
import { toChunkMs, writeRows } from '../series/chunks.ts'
import { type ColumnTypes, readNative, selectRange, selectToken } from './stored-rows.ts'

/** A table row has the members of a point after those of its token. */
export const priceRow = z.strictObject({
  id: idValue.describe('Id of the token.'),
  name: z.string().describe('Name of the token.'),
  symbol: z.string().describe('Symbol of the token.'),
  ...pricePoint.shape,
})

/** The same with the provider of the observation. */
export const sourcedRow = priceRow.extend({ source: observationSource })

/** Whether an answer has the provider of each observation. */
export const hasSource = ({ fields }: Pick<Representation, 'fields'>): boolean => fields.includes('source')

/** SQL for the points of tokens as `row_at`, `as_of` and `record`. Parameters: those of `isInPriceRange`. */
export const pointRecordsSql = (interval: Interval): string =>
  `SELECT bucket AS row_at, as_of, ${toObject(pricePoint, PRICE_POINT)} AS record FROM (${selectPricePoints(interval)})`

/** The points as ClickHouse writes them, byte for byte the same as `writeJson` writes them from stored rows. */
export const writePoints = (
  db: Database,
  { token, interval, ...range }: TimeRange & { readonly token: number; readonly interval: Interval },
): Promise<Rows> =>
  writeRows(db, {
    name: STATEMENT,
    sql: pointRecordsSql(interval),
    params: { entities: [token], ...range },
  })

const STATEMENT = 'historic-financial'

const ROWS = Object.fromEntries(INTERVALS.map((interval) => [interval, toPriceRows(interval)])) as Readonly<
  Record<Interval, ReturnType<typeof toPriceRows>>
>
/** The columns of the rows of one token. */
export const toColumnTypes = (interval: Interval): ColumnTypes => ({
  ...(interval === '5m' ? {} : { bucket_at: 'DateTime' }),
  observed_at: "DateTime64(3, 'UTC')",
  ...STORED_PRICES,
})

/**
 * The planner used without the analyzer considers only the columns that a statement names. The analyzer resolves the
 * expressions of all columns, which takes a quarter of the time for one day.
 */
const SETTINGS = { max_threads: 1, enable_analyzer: 0 }

/**
 * The stored rows of ranges, oldest first.
 * @throws DataError `storage`
 */
export async function readStoredRows(
  db: Database,
  interval: Interval,
  ranges: readonly PointsRange[],
): Promise<StoredRows[]> {
  const { table, time, isOfInterval } = ROWS[interval]
  const isInRanges = ranges.map((_, number) => `(token = {token${number}: UInt64} AND ${isWithin(time, number)})`)
  const columns = { token: 'UInt64', ...toColumnTypes(interval) }
  const bytes = await readAnswer(db, {
    name: STATEMENT,
    sql: `SELECT ${Object.keys(columns).join(', ')} FROM ${table} FINAL WHERE ${isOfInterval} AND (${isInRanges.join(' OR ')}) ORDER BY token, ${time}`,
    params: Object.assign({}, ...ranges.map(toParams)),
    format: 'Native',
    settings: SETTINGS,
  })
  try {
    const rows = readNative(bytes, columns)
    return ranges.map((range) => selectRange(selectToken(rows, range.token), range))
  } catch (error) {
    throw new DataError('storage', `ClickHouse, ${STATEMENT}: an answer of an unexpected shape: ${toReason(error)}`)
  }
}

const toParams = ({ token, from, to }: PointsRange, number: number) => ({
  [`token${number}`]: token,
  [`from${number}`]: from,
  [`to${number}`]: to,
})

/** Maximum number of chunks of an answer that is written in this process: they take milliseconds of the only thread. */
export const SHORT_CHUNKS = 8
/** Maximum number of chunks per statement. */
const STATEMENT_CHUNKS = 28

const countChunks = ({ from, to }: TimeRange, interval: Interval) => (to - from) / toChunkMs(interval)

/** Whether the points of a range are written in this process, from stored rows. */
export const isShort = (range: TimeRange, interval: Interval): boolean => countChunks(range, interval) <= SHORT_CHUNKS

/** One concurrent statement per this number of concurrent answers; further reads are batched. */
const ANSWERS_PER_STATEMENT = 4

/**
 * Batches reads of short ranges into one statement while others are running. On a cluster each range is read alone: one
 * token needs one shard, and its answer does not depend on another shard's availability.
 */
export function createStoredPoints(db: Database, maxAnswers: number): StoredPoints {
  const createRead = (interval: Interval): StoredPoints[Interval] => {
    const read = (ranges: readonly PointsRange[], signal: AbortSignal) =>
      readStoredRows(withSignal(db, signal), interval, ranges)
    const gather = createBatcher({
      read,
      concurrency: Math.max(2, Math.floor(maxAnswers / ANSWERS_PER_STATEMENT)),
      most: STATEMENT_CHUNKS,
      weigh: (range: PointsRange) => Math.max(1, countChunks(range, interval)),
    })
    const isAlone = (range: PointsRange) =>
      db.cluster !== undefined || countChunks(range, interval) > STATEMENT_CHUNKS / 2
    return (range, abandoned) =>
      inTime(
        db.answerTimeoutMs,
        (signal) =>
          isAlone(range) ? read([range], signal).then(([rows]) => rows as StoredRows) : gather(range, signal),
        abandoned,
      )
  }
  return Object.fromEntries(INTERVALS.map((interval) => [interval, createRead(interval)])) as StoredPoints
}
