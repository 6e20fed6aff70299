import type { Dataset } from '../../shared/datasets/define-dataset.ts'
import { DAY_MS, toBucketStart } from '../../shared/intervals.ts'
import type { Answer } from '../answers/answer.ts'
import { limit } from '../parameters/kinds.ts'
import { answerRecords } from '../records/answer.ts'
import { toObject } from '../records/columns.ts'
import type { Representation } from '../records/representation.ts'
import type { Surroundings } from '../route/define-route.ts'
import { countSlices, findNewest } from './pieces.ts'
import { NO_FRAME, toArray, toSlice } from './rows.ts'
import { describeSeries } from './series.ts'
import { isOfWholeRows, readWhole } from './whole-series.ts'

/** The parameters of a series of daily sums: `limit` means days back (contract section 2). */
export const daysBack = {
  limit: limit('days', { default: 10, max: 10_000 }).meta({
    description: 'From how many days ago on, at most 10000.',
    examples: [30],
  }),
}

/**
 * The points of the last `days` days, oldest first: a record is the day, the sum and how many have a part in it.
 */
export async function answerDailySums(
  call: Surroundings & { readonly representation: Representation; readonly signal: AbortSignal },
  series: Pick<Dataset, 'name' | 'table'>,
  days: number,
): Promise<Answer> {
  const at = call.now()
  const from = toBucketStart(at - days * DAY_MS - 1, '1d') + DAY_MS
  const { records, ...answer } = await answerFrom(call, series, from)
  const range = { from, to: toBucketStart(at, '1d') + DAY_MS, open: true }
  const { headers } = describeSeries({ interval: '1d', range, points: records, asOf: answer.asOf })
  // The oldest day leaves the answer when it is more than `days` days old.
  return { ...answer, headers: { ...answer.headers, ...headers }, expiresAt: from + days * DAY_MS + 1 }
}

/** The points from a time on. */
async function answerFrom(
  call: Parameters<typeof answerDailySums>[0],
  { name, table }: Pick<Dataset, 'name' | 'table'>,
  from: number,
): Promise<Answer & { records: number }> {
  const { representation } = call
  const sql = (condition: string) => `SELECT recorded_at AS row_at, recorded_at AS as_of,
  ${toObject(representation.record, 'recorded_at, tuple(value_usd, tuple(member_count))')} AS record
FROM ${table} FINAL
${condition}
ORDER BY recorded_at`
  if (!isOfWholeRows(representation)) {
    const since = "WHERE recorded_at >= fromUnixTimestamp64Milli({from: Int64}, 'UTC')"
    return answerRecords(call, { name, sql: sql(since), params: { from } })
  }
  const rows = await readWhole(call, { dataset: name, entity: 0 }, { name, sql: sql(''), params: {} })
  const slice = toSlice(rows, { from, to: Number.POSITIVE_INFINITY })
  return { body: toArray([slice], NO_FRAME), asOf: findNewest([slice]), records: countSlices([slice]) }
}
