import { z } from 'zod'
import type { TimeRange } from '../intervals.ts'
import { toJson } from '../json.ts'
import type { Database } from './clickhouse.ts'

const ofProvider = z.strictObject({ provider: z.string(), entities: z.array(z.number()) })

/** The outcome of a run: stored rows, failures and refused entities, by provider. Entities are keys. */
export const runOutcome = z.strictObject({
  /** The providers whose rows were stored, and their entities; none if the rows are about all entities together. */
  rows: z.array(ofProvider),
  /** The providers that failed for all entities. */
  failures: z.array(z.strictObject({ provider: z.string(), reason: z.string() })),
  /** Why a provider had no answer for an entity. */
  refused: z.array(z.strictObject({ entity: z.number(), reason: z.string() })),
  /** The entities whose rows the check of plausibility refused. */
  implausible: z.array(ofProvider),
})

export type RunOutcome = z.infer<typeof runOutcome>

const answer = z.object({
  provider: z.string(),
  method: z.string(),
  host: z.string(),
  path: z.string(),
  query: z.string(),
  sent: z.string(),
  /** 0 without a response. */
  status: z.int(),
  contentType: z.string(),
  /** Unix milliseconds. */
  receivedAt: z.int(),
  attempt: z.int(),
  code: z.string(),
  reason: z.string(),
  hash: z.string(),
  bytes: z.int(),
  /** The entities that the request names, by key; none if it is about all entities of the run. */
  entities: z.array(z.int()),
})

/** One attempt of a request, and the hash of its body. */
export type StoredAnswer = z.infer<typeof answer>

const fromJson = <S extends z.ZodType>(schema: S) =>
  z.string().transform((text, context): z.output<S> => {
    const parsed = schema.safeParse(toJson(text))
    if (parsed.success) return parsed.data
    context.addIssue(parsed.error.message)
    return z.NEVER
  })

const state = z.record(z.string(), z.string().nullable())

/** A run in a file. */
export const recordedRun = z.object({
  run: z.string(),
  job: z.string(),
  /** Unix milliseconds, as are the next two. */
  from: z.int(),
  to: z.int(),
  collectedAt: z.int(),
  payload: z.unknown(),
  state,
  outcome: runOutcome,
  decoder: z.string(),
  answers: z.array(answer),
})

/** A run as its table has it. */
const run = recordedRun.extend({
  payload: fromJson(z.unknown()),
  state: fromJson(state),
  outcome: fromJson(runOutcome),
})

/** A run of a job with the answers that it read. `payload` is that of the job. */
export type StoredRun = z.infer<typeof run>

const ANSWERS = `CAST(arrayZip(answers.provider, answers.method, answers.host, answers.path, answers.query, answers.sent,
  answers.status, answers.content_type, arrayMap(at -> toUnixTimestamp64Milli(at), answers.received_at), answers.attempt,
  answers.code, answers.reason, answers.hash, answers.bytes, answers.entities),
  'Array(Tuple(provider String, method String, host String, path String, query String, sent String, status UInt16,
    contentType String, receivedAt Int64, attempt UInt16, code String, reason String, hash String, bytes UInt64,
    entities Array(UInt64)))')`

/** SQL of stored runs that match a condition on the columns of `raw_runs`, in the order of collection. */
const toRunsSql = (where: string) => `
SELECT run, job, toUnixTimestamp64Milli(slot_at) AS from, toUnixTimestamp64Milli(until_at) AS to,
  toUnixTimestamp64Milli(r.collected_at) AS collectedAt, payload, state, outcome, decoder, ${ANSWERS} AS answers
FROM raw_runs AS r FINAL
WHERE dataset = {dataset: String} AND ${where}
ORDER BY collectedAt, run`

const toText = (ms: number) => new Date(ms).toISOString().slice(0, -1)

/** Returns the runs whose slot or range overlaps a time range, in the order of their collection. */
export function readRuns(db: Database, dataset: string, { from, to }: TimeRange): Promise<StoredRun[]> {
  const where = "slot_at < {to: DateTime64(3, 'UTC')} AND until_at > {from: DateTime64(3, 'UTC')}"
  const params = { dataset, from: toText(from), to: toText(to) }
  return db.rows({ name: 'raw-runs', sql: toRunsSql(where), params, schema: run })
}

/** Returns the runs of a dataset that started at a time (Unix milliseconds), as their rows have it. */
export function readRunsAt(db: Database, dataset: string, collectedAt: number): Promise<StoredRun[]> {
  const where = "r.collected_at = {at: DateTime64(3, 'UTC')}"
  return db.rows({
    name: 'raw-runs-at',
    sql: toRunsSql(where),
    params: { dataset, at: toText(collectedAt) },
    schema: run,
  })
}

const body = z.object({ hash: z.string(), body: z.string(), bytes: z.int(), omitted: z.string() })

/** A stored body. `omitted` is the reason why the body is not stored; empty if it is. */
export type StoredBody = z.infer<typeof body>

/** Returns the stored bodies with these hashes. */
export async function readBodies(db: Database, hashes: readonly string[]): Promise<ReadonlyMap<string, StoredBody>> {
  const rows = await db.rows({
    name: 'raw-answers',
    sql: 'SELECT hash, any(body) AS body, any(bytes) AS bytes, any(omitted) AS omitted FROM raw_answers WHERE hash IN {hashes: Array(String)} GROUP BY hash',
    params: { hashes },
    schema: body,
  })
  return new Map(rows.map((row) => [row.hash, row]))
}

const stamp = z.object({
  hash: z.string(),
  status: z.int(),
  contentType: z.string(),
  code: z.string(),
  reason: z.string(),
})

export type AnswerStamp = z.infer<typeof stamp>

/** The members that identify a request. */
export type RequestKey = Pick<StoredAnswer, 'provider' | 'method' | 'host' | 'path' | 'query' | 'sent'>

/**
 * Returns the newest answer with a success status to a request before a time (Unix milliseconds), from any run: a process
 * may reuse an answer of an earlier run, such as a provider's list of ids.
 */
export async function readLastAnswer(
  db: Database,
  request: RequestKey,
  { dataset, before }: { readonly dataset: string; readonly before: number },
): Promise<AnswerStamp | undefined> {
  const { provider, method, host, path, query, sent } = request
  const [row] = await db.rows({
    name: 'last-raw-answer',
    sql: `SELECT a.1 AS hash, a.2 AS status, a.3 AS contentType, '' AS code, '' AS reason
FROM raw_runs FINAL
ARRAY JOIN arrayZip(answers.hash, answers.status, answers.content_type, answers.received_at, answers.provider,
  answers.method, answers.host, answers.path, answers.query, answers.sent) AS a
WHERE dataset = {dataset: String} AND collected_at <= {before: DateTime64(3, 'UTC')} AND has(answers.path, {path: String})
  AND a.5 = {provider: String} AND a.6 = {method: String} AND a.7 = {host: String} AND a.8 = {path: String}
  AND a.9 = {query: String} AND a.10 = {sent: String} AND a.2 BETWEEN 200 AND 299
ORDER BY collected_at DESC, a.4 DESC LIMIT 1`,
    params: { dataset, before: toText(before), provider, method, host, path, query, sent },
    schema: stamp,
  })
  return row
}
