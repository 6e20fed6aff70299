import { z } from 'zod'
import type { DatasetFacts } from '../../shared/datasets/list.ts'
import { HISTORY_START, INTERVAL_SECONDS, type Interval, MONDAY_SHIFT_MS } from '../../shared/intervals.ts'
import type { Token } from '../../shared/registry/entities.ts'
import type { Answer } from '../answers/answer.ts'
import { SERIES_HEADERS } from '../http/headers.ts'
import { optionalPage, time } from '../parameters/kinds.ts'
import { toObject } from '../records/answer.ts'
import { IS_ANY, inTables, toOwned } from '../records/owned.ts'
import { idValue } from '../records/table.ts'
import { type Described, defineRoute, type Route, toDescribed } from '../route/define-route.ts'
import { tokenKind } from '../route/entities.ts'
import { checkChosen, checkRange, chosenParameters, type SeriesQuestion, toTokenFrame } from './series.ts'
import { answerQuestion, fromCache, type SeriesCall } from './series-answer.ts'
import type { SeriesSource } from './series-source.ts'
import { answerSeriesTable, checkTable, inTableOrder } from './table.ts'

const MAX_CANDLES = 1_000_000

interface Candles extends Omit<Described, 'tag'> {
  /** Schema name in the API documentation. */
  readonly series: string
  /** The dataset with the stored rows to aggregate. */
  readonly dataset: DatasetFacts
  /** The finest interval comes first; it corresponds to a cadence. */
  readonly intervals: readonly [Interval, ...Interval[]]
  /** The schema of a candle, `timestamp` first. */
  readonly candle: z.ZodObject
  /** Its other members, as SQL aggregates over the rows of a bucket. */
  readonly values: string
  /** The column with a row's time. */
  readonly time: string
  /** See `SeriesSource.readUpTo`; `isToken` is the condition on a column with the token. Default for tables: the newest candle. */
  readonly readUpTo?: (isToken: string) => string
}

/**
 * SQL for one candle per bucket with a row. Buckets lie on the common grid, which begins on the first Monday
 * (docs/contract.md, section 4).
 */
const toSql = (
  { dataset, values, time: at }: Candles,
  interval: Interval,
  isToken: string,
  toRecord: (values: string) => string,
) => `
WITH toInt64(toUnixTimestamp(${at})) AS second
SELECT token AS owner, fromUnixTimestamp64Milli((second - (second - ${MONDAY_SHIFT_MS / 1000}) % ${INTERVAL_SECONDS[interval]}) * 1000, 'UTC') AS row_at,
  max(${at}) AS as_of, ${toRecord(`row_at, ${values}`)} AS record
FROM ${dataset.series.table} FINAL
WHERE token ${isToken} AND ${at} >= fromUnixTimestamp64Milli({from: Int64}, 'UTC')
  AND ${at} < fromUnixTimestamp64Milli({to: Int64}, 'UTC')
GROUP BY token, row_at`

const IS_ONE = '= {token: UInt64}'

/** Defines a route for one token's candles from stored rows (docs/contract.md, section 8). */
export function defineCandles(candles: Candles): Route {
  return defineRoute({
    ...toDescribed({ ...candles, tag: 'Tokens', description: `${candles.description} ${inTables(tokenKind.noun)}` }),
    one: tokenKind,
    severalInTables: true,
    query: {
      ...chosenParameters(candles.intervals),
      start: time(`First moment, inclusive, not before ${HISTORY_START}.`, '2024-01-01', { earliest: HISTORY_START }),
      end: time('Last moment, exclusive; default: now.', '2024-01-08T00:00:00Z').optional(),
      ...optionalPage('candles', { max: MAX_CANDLES }),
    },
    record: candles.candle,
    response: z
      .strictObject({
        name: z.string().describe('Name of the token.'),
        id: idValue.describe('Id of the token.'),
        data: toPoints({ record: candles.candle, time: 'timestamp' }),
      })
      .meta({ id: candles.series, description: 'The candles of one token.' }),
    datasets: [candles.dataset],
    headers: SERIES_HEADERS,
    peek: fromCache((call) => answerCandles(candles, call)),
    handle: (call) => answerCandles(candles, call),
  })
}

const nameOf = ({ path }: Candles) => path.slice('/data/tokens/'.length)

type CandlesQuery = SeriesQuestion & {
  readonly start: number
  readonly end?: number | undefined
  readonly limit?: number | undefined
}

async function answerCandles(
  candles: Candles,
  call: SeriesCall & { readonly found: Token; readonly entities: readonly Token[]; readonly query: CandlesQuery },
): Promise<Answer> {
  const { query, found: token } = call
  checkRange(query)
  checkChosen(query, candles.intervals)
  if (call.entities.length > 1) return answerCandlesOfSeveral(candles, call)
  const source: SeriesSource = {
    name: nameOf(candles),
    dataset: candles.dataset,
    record: candles.candle,
    time: 'timestamp',
    intervals: candles.intervals,
    sql: (interval) => toSql(candles, interval, IS_ONE, (values) => toObject(candles.candle, values)),
    params: { token: token.key },
    cached: { key: `${candles.path} ${token.key}` },
    ...(candles.readUpTo === undefined ? {} : { readUpTo: candles.readUpTo(IS_ONE) }),
  }
  return (await answerQuestion(call, source, query, { frame: toTokenFrame(token) })).answer
}

/** The candles of several tokens as a table, oldest first. */
async function answerCandlesOfSeveral(
  candles: Candles,
  call: Parameters<typeof answerSeriesTable>[0] & { readonly query: CandlesQuery },
): Promise<Answer> {
  const { query } = call
  checkTable(query, 'asc')
  const interval = query.interval ?? candles.intervals[0]
  const owned = toOwned(call, candles.candle, 'token')
  const { answer } = await answerSeriesTable(
    { ...call, representation: owned.representation },
    {
      name: nameOf(candles),
      dataset: candles.dataset,
      order: 'asc',
      sql: inTableOrder(toSql(candles, interval, IS_ANY, owned.toRecord), 'asc'),
      params: owned.params,
      ...(candles.readUpTo === undefined ? {} : { readUpTo: candles.readUpTo(IS_ANY) }),
    },
    { ...query, interval },
  )
  return answer
}

/** Members of a record that are the same in every row of a series, with their SQL. */
export type Constants = Readonly<Record<string, string>>

/** The series for which rows are filled in. */
interface Filled {
  readonly record: z.ZodObject
  /** The member with the time. */
  readonly time: string
  readonly constants?: Constants
}

const bare = (schema: z.ZodType): z.ZodType =>
  schema instanceof z.ZodNullable || schema instanceof z.ZodOptional ? bare(schema.unwrap() as z.ZodType) : schema

/** Makes all values of a schema nullable, and adds that to their descriptions. */
function toNullable(schema: z.ZodType): z.ZodType {
  const inner = bare(schema)
  const description = schema.description ?? ''
  if (!(inner instanceof z.ZodObject)) {
    const value = z.nullable(inner).describe(`${description} Null in a bucket without an observation.`.trim())
    return schema instanceof z.ZodOptional ? value.optional().describe(description) : value
  }
  const members = Object.entries(inner.shape as z.ZodRawShape)
  const nullable = members.map(([name, one]) => [name, toNullable(one as z.ZodType)])
  return z.strictObject(Object.fromEntries(nullable)).describe(description)
}

/** A point, or a row for a bucket without one: there everything except time and constants may be null. */
export function toFilledSchema({ record, time, constants = {} }: Filled): z.ZodObject {
  const members = Object.entries(record.shape as z.ZodRawShape)
  const isAlwaysSet = (name: string) => name === time || name in constants
  return z.strictObject(
    Object.fromEntries(members.map(([name, one]) => [name, isAlwaysSet(name) ? one : toNullable(one as z.ZodType)])),
  )
}

/** The points of a series, or with `fill=null` a row for every bucket. */
export const toPoints = (filled: Filled) => {
  const { id, description } = filled.record.meta() ?? {}
  const row = toFilledSchema(filled).meta({ id: `Filled${id}`, description: `${description} With \`fill=null\`.` })
  return z.union([z.array(filled.record), z.array(row)]).meta({
    description: 'With `fill=null` every due bucket has a row, with null values if nothing was observed.',
  })
}

/** SQL for a row's value, null if there is no row; recursive for the members of objects. */
function toValue(schema: z.ZodType, sql: string, isThere: string): string {
  const inner = bare(schema)
  if (!(inner instanceof z.ZodObject)) return `if(${isThere}, toNullable(${sql}), NULL)`
  const members = Object.entries(inner.shape as z.ZodRawShape)
  return `tuple(${members.map(([name, one]) => toValue(one as z.ZodType, `tupleElement(${sql}, '${name}')`, isThere)).join(', ')})`
}

/** SQL for the members of `toFilledSchema`, from a row's record if `isThere`; `bucket` is the time. */
export function toFilledValues(
  { record, time, constants = {} }: Filled,
  sql: string,
  isThere: string,
  bucket: string,
): string {
  const members = Object.entries(record.shape as z.ZodRawShape)
  return members
    .map(([name, one]) => {
      if (name === time) return bucket
      return constants[name] ?? toValue(one as z.ZodType, `tupleElement(${sql}, '${name}')`, isThere)
    })
    .join(', ')
}
