import { z } from 'zod'
import { EVERYBODY } from '../../shared/coverage/expected.ts'
import { datasets } from '../../shared/datasets/list.ts'
import { END_OF_TIME } from '../../shared/intervals.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import { LIST_HEADERS } from '../http/headers.ts'
import { limit, oneId, time } from '../parameters/kinds.ts'
import { Problem } from '../problem/problem.ts'
import { idValue, timeValue } from '../records/table.ts'
import { defineRoute } from '../route/define-route.ts'
import { tokenKind } from '../route/entities.ts'

const NAMES = datasets.map(({ name }) => name) as [string, ...string[]]

/** A history job may store any dataset at any time, so an answer is reused for this time. */
const HOLDS_MS = 5000

const change = z
  .strictObject({
    dataset: z.string().describe('Name of the dataset.'),
    entity: idValue.nullable().meta({
      description: 'The token, DAO or index whose past was changed; null for all of the dataset together.',
    }),
    from: timeValue.describe('Where the range begins, inclusive.'),
    to: timeValue.describe('Where the range ends, exclusive.'),
    at: timeValue.describe('When it was stored.'),
    job: z.string().describe('The job that stored it.'),
  })
  .meta({ id: 'HistoryChange', description: 'A range of the past that was stored anew.' })

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
 * A client reads the next page with the last time as `end`. The answer therefore contains all changes of one
 * millisecond, or the rest of them would be lost. A job stores the data of many entities at the same time.
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
    [EVERYBODY, null],
    ...[...tokens, ...daos, index].map(({ key, id }) => [key, id] as const),
  ])

export const changesRoute = defineRoute({
  operation: 'listChanges',
  path: '/data/changes',
  tag: 'Service',
  summary: 'Which of the past was changed, when and by which job',
  description:
    'Ranges of history that were stored anew, newest first: filled for the first time, corrected, or computed again. Whoever keeps a copy of a series reads these ranges again. What is collected on schedule is not here, nor what is computed from that: `/data/stream` tells of it as it happens. Ranges are whole buckets of the refresh cadence; whoever reads a series at a longer interval begins with its bucket that holds `from`. The same work done again is told once, with its latest time. `limit` parts nothing that was stored in the same millisecond: the rest of that comes as well. Jobs store at the same time, so that one may appear a moment after another with a later time: whoever asks for what is new with `start` begins a minute before the newest that they have. Where `X-Total-Count` says that there are more than came, ask for those before the oldest of them with `end`, or for more with `limit`.',
  headers: { 'X-Total-Count': LIST_HEADERS['X-Total-Count'] },
  query: {
    dataset: z
      .enum(NAMES, `must be one of ${NAMES.join(', ')}`)
      .optional()
      .meta({ description: 'Only of this dataset, by its name in `/data/status`.', examples: ['prices'] }),
    id: oneId('token, DAO or index', tokenKind.example.id).optional(),
    start: time('Only what was stored at this moment or later.', '2024-01-01', { earliest: '1970-01-01' }).optional(),
    end: time('Only what was stored before this moment.', '2024-02-01', { earliest: '1970-01-01' }).optional(),
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
