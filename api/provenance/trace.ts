import { z } from 'zod'
import type { Dataset } from '../../shared/datasets/define-dataset.ts'
import { INTERVAL_SECONDS } from '../../shared/intervals.ts'
import type { Database } from '../../shared/store/store.ts'
import { readRuns, readRunsAt, type StoredAnswer, type StoredRun } from '../../shared/store/store.ts'

type Values = Readonly<Record<string, unknown>>

/** A stored value of an entity, and when it was stored. Times are Unix milliseconds. */
export interface StoredValue {
  readonly at: number
  readonly storedAt: number | null
  readonly values: Values
  /** The provider in the row itself; null if it is unknown. */
  readonly source: string | null
}

const column = z.object({ name: z.string(), kind: z.string() })

/** Columns that say when a row was collected or computed. */
const STORED_AT = ['collected_at', 'computed_at']
/** Columns of the storage, which have no meaning for a client. */
const INTERNAL = /(_code|^version|^withdrawn)$/

async function readColumns(db: Database, table: string): Promise<{ values: string[]; storedAt: string | undefined }> {
  const columns = await db.rows({
    name: 'provenance-columns',
    sql: `SELECT name, default_kind AS kind FROM system.columns
WHERE database = {database: String} AND table = {table: String} AND default_kind != 'MATERIALIZED' ORDER BY position`,
    params: { database: db.name, table },
    schema: column,
  })
  const names = columns.map(({ name }) => name).filter((name) => !INTERNAL.test(name))
  return {
    values: names.filter((name) => !STORED_AT.includes(name)),
    storedAt: names.find((name) => STORED_AT.includes(name)),
  }
}

const toText = (ms: number) => new Date(ms).toISOString().slice(0, -1)

/** The value of an entity (its key) that is traced; times are Unix milliseconds. */
interface ValuePlace {
  readonly entity: number | undefined
  /** The newest value at or before this time, or with `after` the first one from `after` on. */
  readonly at: number
  readonly after?: number | undefined
}

/** Returns the value at a place, if there is one. */
export async function readValue(
  db: Database,
  { series, isAttributed }: Pick<Dataset, 'series' | 'isAttributed'>,
  { entity, at, after }: ValuePlace,
): Promise<StoredValue | undefined> {
  const { table, time, source = 'NULL', provider = source } = series
  const { values, storedAt } = await readColumns(db, table)
  // The runner's column of the provider is empty if the provider is unknown.
  const shown = values.filter(
    (name) => name !== time && name !== series.entity && !(isAttributed && name === 'provider'),
  )
  const ofEntity =
    series.entity === undefined || entity === undefined ? 'true' : `t.${series.entity} = {entity: UInt64}`
  const stored = storedAt === undefined ? 'NULL' : `toUnixTimestamp64Milli(t.${storedAt})`
  const [isInRange, order] =
    after === undefined ? ['', 'DESC'] : [`AND t.${time} >= {after: DateTime64(3, 'UTC')} `, 'ASC']
  const [row] = await db.rows({
    name: 'provenance-value',
    sql: `SELECT toUnixTimestamp64Milli(toDateTime64(t.${time}, 3, 'UTC')) AS __at, ${stored} AS __stored,
  ${provider} AS __source, ${shown.map((name) => `t.${name} AS ${name}`).join(', ')}
FROM ${table} AS t FINAL WHERE ${ofEntity} AND t.${time} <= {at: DateTime64(3, 'UTC')} ${isInRange}ORDER BY t.${time} ${order} LIMIT 1`,
    params: {
      at: toText(at),
      ...(entity === undefined ? {} : { entity }),
      ...(after === undefined ? {} : { after: toText(after) }),
    },
    schema: z.looseObject({ __at: z.int(), __stored: z.int().nullable(), __source: z.string().nullable() }),
  })
  if (row === undefined) return undefined
  const { __at, __stored, __source, ...rest } = row
  return { at: __at, storedAt: __stored, values: rest, source: __source }
}

/** Returns the time of the earliest value of an entity (its key) after a time, in Unix milliseconds. */
export async function findNextTime(
  db: Database,
  { series: { table, time, entity: column } }: Pick<Dataset, 'series'>,
  { entity, at }: { readonly entity: number | undefined; readonly at: number },
): Promise<number | undefined> {
  const ofEntity = column === undefined || entity === undefined ? 'true' : `t.${column} = {entity: UInt64}`
  const [row] = await db.rows({
    name: 'provenance-next',
    sql: `SELECT toUnixTimestamp64Milli(toDateTime64(t.${time}, 3, 'UTC')) AS at
FROM ${table} AS t FINAL WHERE ${ofEntity} AND t.${time} > {at: DateTime64(3, 'UTC')} ORDER BY t.${time} LIMIT 1`,
    params: { at: toText(at), ...(entity === undefined ? {} : { entity }) },
    schema: z.object({ at: z.int() }),
  })
  return row?.at
}

/**
 * Returns the runs that may have stored a value: those that started at its time of storage. If that time is unknown, it
 * returns the last run of the slot that has rows of the entity.
 */
async function findRuns(db: Database, dataset: Dataset, { at, storedAt }: StoredValue, entity: number | undefined) {
  const isOf = ({ outcome }: StoredRun) =>
    outcome.rows.some(({ entities }) => entity === undefined || entities.length === 0 || entities.includes(entity))
  if (storedAt !== null) return (await readRunsAt(db, dataset.name, storedAt)).filter(isOf)
  const cadenceMs = INTERVAL_SECONDS[dataset.cadence] * 1000
  return (await readRuns(db, dataset.name, { from: at, to: at + cadenceMs })).filter(isOf).slice(-1)
}

/** An answer that a value was decoded from, or that was read and not taken. */
export interface TracedAnswer {
  readonly provider: string
  readonly request: string
  readonly status: number | null
  readonly receivedAt: string
  readonly sha256: string | null
  readonly bytes: number
  readonly decoder: string
  readonly used: boolean
  readonly reason: string | null
}

/** The provider of a value and its answers. Values from before answers were stored have none. */
export async function traceAnswers(
  db: Database,
  dataset: Dataset,
  value: StoredValue,
  entity: number | undefined,
): Promise<{ provider: string | null; answers: readonly TracedAnswer[] }> {
  const runs = await findRuns(db, dataset, value, entity)
  const answers = runs.flatMap((run) => {
    const provider = findProvider(run, entity)
    return selectAnswers(run.answers, entity).map((answer) => toTraced(run, answer, provider, entity))
  })
  const [provider] = runs.map((run) => findProvider(run, entity))
  return { provider: provider ?? value.source, answers }
}

/** The last provider whose rows of the entity were stored. */
const findProvider = ({ outcome }: StoredRun, entity: number | undefined) =>
  outcome.rows.findLast(({ entities }) => entity === undefined || entities.length === 0 || entities.includes(entity))
    ?.provider

/** Answers to requests that name the entity; if there are none, those that name no entity. */
function selectAnswers(answers: readonly StoredAnswer[], entity: number | undefined): readonly StoredAnswer[] {
  const named = answers.filter(({ entities }) => entity !== undefined && entities.includes(entity))
  return named.length > 0 ? named : answers.filter(({ entities }) => entity === undefined || entities.length === 0)
}

/** The provider of a client may serve a part of a provider, such as `defillama-coins`. */
const isOfProvider = (client: string, provider: string) => client === provider || client.startsWith(`${provider}-`)

function toTraced(
  { outcome, decoder }: StoredRun,
  answer: StoredAnswer,
  provider: string | undefined,
  entity: number | undefined,
): TracedAnswer {
  const { status, host, path, query, method, hash, bytes, reason } = answer
  const isAnswered = status >= 200 && status < 300
  const isTaken = provider !== undefined && (outcome.rows.length === 1 || isOfProvider(answer.provider, provider))
  const used = isAnswered && isTaken
  const refused = outcome.refused.find((one) => one.entity === entity)?.reason
  const failed = outcome.failures.find((one) => isOfProvider(answer.provider, one.provider))?.reason
  const why =
    reason !== ''
      ? reason
      : isAnswered
        ? (refused ?? failed ?? `the value of ${provider} was taken`)
        : `status ${status}`
  return {
    provider: answer.provider,
    request: `${method} ${host}${path}${query === '' ? '' : `?${query}`}`,
    status: status === 0 ? null : status,
    receivedAt: new Date(answer.receivedAt).toISOString(),
    sha256: hash === '' ? null : hash,
    bytes,
    decoder,
    used,
    reason: used ? null : why,
  }
}

const correction = z.object({
  storedAt: z.string(),
  before: z.string().nullable(),
  after: z.string().nullable(),
  job: z.string(),
  reason: z.string().nullable(),
})

/**
 * The newest 200 corrections of a value, oldest first. If a range of history was stored again, only its time and job
 * are known.
 */
export async function readCorrections(
  db: Database,
  dataset: string,
  { entity, at }: { readonly entity: number; readonly at: number },
) {
  const rows = await db.rows({
    name: 'provenance-corrections',
    sql: `SELECT * FROM (SELECT * FROM (
  SELECT stored_at AS storedAt, before, after, job, reason::Nullable(String) AS reason FROM corrections FINAL
  WHERE entity = {entity: UInt64} AND dataset = {dataset: String} AND observed_at = {at: DateTime64(3, 'UTC')}
  UNION ALL
  SELECT changed_at AS storedAt, NULL AS before, NULL AS after, job, NULL AS reason FROM history_changes FINAL
  WHERE entity = {entity: UInt64} AND dataset = {dataset: String}
    AND begins_at <= {at: DateTime64(3, 'UTC')} AND ends_at > {at: DateTime64(3, 'UTC')}
) ORDER BY storedAt DESC LIMIT 200) ORDER BY storedAt`,
    params: { entity, dataset, at: toText(at) },
    schema: correction,
  })
  const parse = (text: string | null): Values | null => (text === null ? null : (JSON.parse(text) as Values))
  return rows.map(({ before, after, ...more }) => ({ ...more, before: parse(before), after: parse(after) }))
}
