import { z } from 'zod'
import { datasets } from '../../shared/datasets/list.ts'
import { END_OF_TIME } from '../../shared/intervals.ts'
import { ALL_ENTITIES } from '../../shared/registry/entities.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import { idValue, timeValue } from '../formats/formats.ts'
import { LIST_HEADERS } from '../http/headers.ts'
import { limit, oneId, time } from '../parameters/kinds.ts'
import { Problem } from '../problem/problem.ts'
import { defineRoute } from '../route/define-route.ts'
import { tokenKind } from '../route/entities.ts'

const NAMES = datasets.map(({ name }) => name) as [string, ...string[]]

/** A history job may store any dataset at any time, so an answer is reused for this time. */
const HOLDS_MS = 5000

const change = z
  .strictObject({
    dataset: z.string().describe('Name of the dataset.'),
    entity: idValue.nullable().meta({
      description: 'The token, DAO or index of the range; null for all of the dataset.',
    }),
    from: timeValue.describe('Start of the range, inclusive.'),
    to: timeValue.describe('End of the range, exclusive.'),
    at: timeValue.describe('When it was stored.'),
    job: z.string().describe('The job that stored it.'),
  })
  .meta({ id: 'HistoryChange', description: 'A range of history that was stored or replaced.' })

const stored = z.object({
  dataset: z.string(),
  entity: z.number(),
  from: timeValue,
  to: timeValue,
  at: timeValue,
  job: z.string(),
  total: z.int(),
})

/**
 * A client reads the next page with the last time as `end`. The answer therefore contains all changes of its last
 * millisecond; the next page would not contain the rest of them. A job stores the data of many entities at the same
 * time.
 */
const SQL = `
SELECT * FROM
(
  SELECT dataset, entity, begins_at AS from, ends_at AS to, changed_at AS at, job, count() OVER () AS total
  FROM history_changes FINAL
  WHERE ({dataset: String} = '' OR dataset = {dataset: String})
    AND entity IN {entities: Array(UInt64)}
    AND changed_at >= {start: DateTime64(3, 'UTC')} AND changed_at < {end: DateTime64(3, 'UTC')}
  ORDER BY at DESC
  LIMIT {limit: UInt32} WITH TIES
)
ORDER BY at DESC, dataset, entity, from, to, job`

/** Maps the key of every possible entity of a dataset to its id. */
const toIds = ({ tokens, daos, index }: Registry) =>
  new Map<number, string | null>([
    [ALL_ENTITIES, null],
    ...[...tokens, ...daos, index].map(({ key, id }) => [key, id] as const),
  ])

export const changesRoute = defineRoute({
  operation: 'listChanges',
  path: '/data/changes',
  tag: 'Service',
  summary: 'Changed ranges of history, with the time and the job',
  description:
    'Ranges of history that were filled, corrected or recomputed, newest first. If you keep a copy of a series, read these ranges again. Scheduled data is not listed: `/data/stream` reports it. Ranges are whole buckets of the refresh cadence; for a longer interval, start with the bucket that contains `from`. Repeated work on a range is listed once, with its latest time. Ranges stored in the same millisecond stay together, so you may get more than `limit`. Jobs run in parallel, so a range may appear shortly after one with a later time: to poll with `start`, start one minute before your newest range. If `X-Total-Count` is larger than the number of ranges, request older ones with `end`, or more with `limit`.',
  headers: { 'X-Total-Count': LIST_HEADERS['X-Total-Count'] },
  query: {
    dataset: z
      .enum(NAMES, `must be one of ${NAMES.join(', ')}`)
      .optional()
      .meta({ description: 'Only of this dataset, by its name in `/data/status`.', examples: ['prices'] }),
    id: oneId('token, DAO or index', tokenKind.example.id).optional(),
    start: time('Only ranges stored at this time or later.', '2024-01-01', { earliest: '1970-01-01' }).optional(),
    end: time('Only ranges stored before this time.', '2024-02-01', { earliest: '1970-01-01' }).optional(),
    limit: limit('changes', { default: 100, max: 10_000 }),
  },
  response: z.array(change),
  datasets: [],
  handle: async ({ db, registry, query, now }) => {
    const ids = toIds(registry)
    const entities = [...ids.keys()].filter((key) => query.id === undefined || ids.get(key) === query.id)
    if (entities.length === 0)
      throw new Problem('not_found', `There is no token, DAO or index ${query.id}.`, { param: 'id' })
    const toText = (at: number) => new Date(at).toISOString().slice(0, -1)
    const [start, end] = [toText(query.start ?? 0), toText(query.end ?? END_OF_TIME)]
    const params = { dataset: query.dataset ?? '', entities, start, end, limit: query.limit }
    const rows = await db.rows({ name: 'changes', sql: SQL, params, schema: stored })
    const changes = rows.map(({ dataset, entity, total: _, ...rest }): z.infer<typeof change> => {
      return { dataset, entity: ids.get(entity) ?? null, ...rest }
    })
    const headers = { 'X-Total-Count': String(rows[0]?.total ?? 0) }
    return { body: Buffer.from(JSON.stringify(changes)), headers, asOf: null, expiresAt: now() + HOLDS_MS }
  },
})
