import { z } from 'zod'
import type { Database } from '../../../shared/clickhouse.ts'
import { indexPoints } from '../../../shared/datasets/index-points.ts'
import { countBuckets } from '../../../shared/intervals.ts'
import { type Answer, defineRoute } from '../../define.ts'
import { SERIES_HEADERS } from '../../headers.ts'
import { wholeNumber } from '../../parameters/kinds.ts'
import { Problem } from '../../problem/problem.ts'
import { describeSeries, nextGridTime, toSeriesRange } from '../../series.ts'
import { idValue, timeValue } from '../../values.ts'
import { JSON_SETTINGS, writeArray } from '../../written-json.ts'

const INTERVAL = '5m'
const DAY_MS = 86_400_000
const MAX_DAYS = 10_000

/** Up to here (about 1 MB) an answer is kept as bytes; longer ones are streamed. */
const MAX_KEPT_POINTS = 8_000

const point = z.strictObject({
  _id: idValue,
  valueUsd: z.number().meta({ description: 'What the basket is worth.' }),
  composition: idValue.meta({ description: 'Id of the composition in force.' }),
  createdAt: timeValue.meta({ description: 'Start of the 5-minute slot.' }),
})

// An id is made as every id of the service is, from the dataset, the index and the time.
const POINTS = `
SELECT observed_at AS as_of, value_usd AS valueUsd, composition, created_at AS createdAt,
  lower(hex(substring(SHA256(concat('index', char(31), {id: String}, char(31),
    toString(toUnixTimestamp64Milli(created_at)))), 1, 12))) AS _id
FROM index_points FINAL
WHERE index_key = {index: UInt64}
  AND created_at >= fromUnixTimestamp64Milli({from: Int64}, 'UTC') AND created_at < fromUnixTimestamp64Milli({to: Int64}, 'UTC')
ORDER BY index_key, created_at
LIMIT {limit: UInt32}`

const RECORD = `Tuple(_id String, valueUsd Float64, composition String, createdAt DateTime64(3, 'UTC'))`
const RECORDS = `SELECT as_of, CAST(tuple(_id, valueUsd, composition, createdAt), $record$${RECORD}$record$) AS record FROM (${POINTS})`
const ROWS = `SELECT _id, valueUsd, composition, createdAt FROM (${POINTS})`

const summary = z.object({ points: z.int(), newest: z.int(), digest: z.string() })

/** Points, newest time in Unix milliseconds and a hash over all of an answer's data. */
async function summarize(db: Database, params: Readonly<Record<string, unknown>>) {
  const [row] = await db.rows({
    name: 'index-historic-summary',
    sql: `SELECT count() AS points, toUnixTimestamp64Milli(max(as_of)) AS newest,
  toString(groupBitXor(sipHash64(tuple(createdAt, valueUsd, composition)))) AS digest
FROM (${POINTS})`,
    params,
    schema: summary,
  })
  return row ?? { points: 0, newest: 0, digest: '' }
}

const days = (description: string) =>
  wholeNumber(MAX_DAYS)
    .optional()
    .meta({ description, examples: [7] })

export const indexHistoricRoute = defineRoute({
  path: '/data/index/historic',
  aliases: ['/data/index/historic-data', '/data/index/historic-value'],
  tag: 'Index',
  summary: 'The value of the Index over time',
  description:
    'One point per 5-minute slot in which every member of the basket has a price, oldest first, since the launch on 29 November 2022. `X-Series-Missing` counts the slots without one.',
  query: {
    period: days(`Days back from now, at most ${MAX_DAYS}; 1 when it is not given.`),
    days: days('The same as `period`; when both are given they must be equal.'),
  },
  response: z.array(point),
  datasets: [indexPoints],
  headers: SERIES_HEADERS,
  handle: async ({ query, db, registry, now }): Promise<Answer> => {
    if (query.period !== undefined && query.days !== undefined && query.period !== query.days) {
      throw new Problem('invalid_parameter', 'period and days mean the same and must not differ.', { param: 'days' })
    }
    const { index } = registry
    const back = now() - (query.period ?? query.days ?? 1) * DAY_MS
    const range = toSeriesRange({ start: Math.max(back, index.launch), interval: INTERVAL }, now())
    const most = countBuckets(range.from, range.to, INTERVAL)
    const params = { index: index.key, id: index.id, from: range.from, to: range.to, limit: most }
    const facts = { interval: INTERVAL, range } as const
    const expiresAt = nextGridTime(now())
    if (most <= MAX_KEPT_POINTS) {
      const { body, records, asOf } = await writeArray(db, { name: 'index-historic', sql: RECORDS, params })
      return { body, expiresAt, ...describeSeries({ ...facts, points: records, asOf }) }
    }
    const { points, newest, digest } = await summarize(db, params)
    // As many points as the tag is made of, even if one more arrives meanwhile.
    const counted = { ...params, limit: points }
    return {
      ...describeSeries({ ...facts, points, asOf: points === 0 ? null : newest }),
      expiresAt,
      digest: `${index.id} ${points} ${newest} ${digest}`,
      before: '',
      after: '',
      open: (signal) =>
        db.stream({
          name: 'index-historic-stream',
          sql: ROWS,
          params: counted,
          settings: { ...JSON_SETTINGS, output_format_json_array_of_rows: 1 },
          signal,
        }),
      holds: async () => (await summarize(db, counted)).digest === digest,
    }
  },
})
