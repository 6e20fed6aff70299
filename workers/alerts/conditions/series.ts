import { z } from 'zod'
import { datasets } from '../../../shared/datasets/list.ts'
import { groupBy } from '../../../shared/group-by.ts'
import { DAY_MS, HOUR_MS, toBucketStart } from '../../../shared/intervals.ts'
import type { Registry } from '../../../shared/registry/registry.ts'
import { type AlertEntity, findEntities } from '../rule-entities.ts'
import type { Rule } from '../rules.ts'
import { SERIES, type Series, type SeriesName } from '../series.ts'
import { formatTime } from '../state.ts'
import {
  type ConditionContext,
  type Evaluate,
  formatValue,
  isSelected,
  type Result,
  type RuleOf,
  type SubjectResult,
  toEntityFacts,
  toRequest,
  toSelection,
} from './condition.ts'

/** Key of the rows of a series without entities. */
export const NO_ENTITY = 0

const newestRow = z.object({ entity: z.number(), at: z.int(), value: z.number() })
const movedRow = newestRow.extend({ low: z.number(), high: z.number() })
type LevelRow = Pick<z.infer<typeof newestRow>, 'at' | 'value'>
type MovedRow = Omit<z.infer<typeof movedRow>, 'entity'>

/** The rows of a series as `entity`, `at` and `value`, without unknown values. */
export function toRows(series: Series, table: string, isWithin: string): string {
  const { entity = NO_ENTITY, time, value, where } = series
  const conditions = [isWithin, ...(where === undefined ? [] : [where])].join(' AND ')
  return `SELECT toUInt64(${entity}) AS entity, toInt64(toUnixTimestamp64Milli(toDateTime64(${time}, 3, 'UTC'))) AS at,
  toFloat64(assumeNotNull(${value})) AS value
FROM ${table} FINAL WHERE ${conditions} AND isNotNull(${value})`
}

/** Values older than this are no news. */
export const NEWEST_WITHIN_MS = 7 * DAY_MS

const isSince = ({ time, entity = String(NO_ENTITY) }: Series) =>
  `${time} >= fromUnixTimestamp64Milli({since: Int64}, 'UTC') AND ${isSelected(entity)}`

const toKeys = (rules: readonly Rule[], registry: Registry): number[] => [
  ...new Set(rules.flatMap((rule) => toSubjects(rule, registry).map((entity) => entity?.key ?? NO_ENTITY))),
]

async function readNewestValues(name: SeriesName, keys: readonly number[], context: ConditionContext) {
  const series: Series = SERIES[name]
  const read = (table: string, of: readonly number[]) =>
    context.db.rows({
      name: `alert-series-${name}`,
      sql: `SELECT entity, max(t.at) AS at, argMax(t.value, t.at) AS value
FROM (${toRows(series, table, isSince(series))}) AS t GROUP BY entity`,
      params: { since: context.now - NEWEST_WITHIN_MS, ...toSelection(of) },
      schema: newestRow,
    })
  if (series.newest === undefined) return new Map((await read(series.table, keys)).map((row) => [row.entity, row]))
  const [rows, ends] = await Promise.all([read(series.newest, keys), readHistoryEnds(series, keys, context)])
  const newest = new Map(rows.map((row) => [row.entity, row]))
  // A back-fill stores values in the series alone, also those that are newer than the newest live one.
  const newer = ends.flatMap(({ entity, end }) => (end > (newest.get(entity)?.at ?? 0) ? [entity] : []))
  for (const row of newer.length === 0 ? [] : await read(series.table, newer))
    if (row.at > (newest.get(row.entity)?.at ?? 0)) newest.set(row.entity, row)
  return newest
}

const historyRow = z.object({ entity: z.number(), end: z.int() })

/** The ends of the ranges of history that were stored, by entity. */
const readHistoryEnds = ({ dataset }: Series, keys: readonly number[], { db, now }: ConditionContext) =>
  db.rows({
    name: 'alert-history-ends',
    sql: `SELECT entity, toUnixTimestamp64Milli(max(ends_at)) AS end FROM history_changes
WHERE dataset = {dataset: String} AND ends_at > fromUnixTimestamp64Milli({since: Int64}, 'UTC') AND ${isSelected('entity')}
GROUP BY entity`,
    params: { dataset, since: now - NEWEST_WITHIN_MS, ...toSelection(keys) },
    schema: historyRow,
  })

async function readMoves(
  name: SeriesName,
  { within, keys }: { readonly within: number; readonly keys: readonly number[] },
  { db, now }: ConditionContext,
) {
  const series: Series = SERIES[name]
  const rows = await db.rows({
    name: `alert-moves-${name}`,
    sql: `SELECT entity, max(t.at) AS at, argMax(t.value, t.at) AS value, min(t.value) AS low, max(t.value) AS high
FROM (${toRows(series, series.table, isSince(series))}) AS t GROUP BY entity`,
    params: { since: now - within, ...toSelection(keys) },
    schema: movedRow,
  })
  return new Map(rows.map((row) => [row.entity, row]))
}

/** The entities of a rule, or null alone for a series of all entities together. */
export const toSubjects = (rule: Rule, registry: Registry): readonly (AlertEntity | null)[] =>
  findEntities(rule, registry) ?? [null]

const DATASETS = new Map(datasets.map((dataset) => [dataset.name as string, dataset]))

/** The facts of an entity, and a link to the values of a series since `from`, up to the one at `at`. */
function toSeriesFacts(
  { request, interval, isList, dataset }: Series,
  entity: AlertEntity | null,
  { from, at, registry }: { from: number; at: number; registry: Registry },
) {
  const facts = toEntityFacts(entity, request)
  if (isList) {
    const isToken = entity?.type === 'token'
    const token = isToken ? entity.id : registry.daoById.get(entity?.id ?? '')?.token
    // The list of a past time has only tokens with a quote by then, which has no information about the value of a DAO.
    const asOf = isToken ? { asOf: formatLinkTime(at + 999) } : {}
    return { ...facts, request: token ? toRequest(request, { id: token, ...asOf }) : null }
  }
  const step = DATASETS.get(dataset)?.cadence === '1d' ? '1d' : '1h'
  const range = { start: formatLinkTime(toBucketStart(from, step)), end: formatLinkTime(toBucketEnd(at, step)) }
  const id = entity === null ? {} : { id: entity.id }
  return { ...facts, request: toRequest(request, { ...id, ...(interval && { interval }), ...range }) }
}

const formatLinkTime = (ms: number) => `${new Date(ms).toISOString().slice(0, 19)}Z`
const toBucketEnd = (ms: number, interval: '1h' | '1d') =>
  toBucketStart(ms, interval) + (interval === '1d' ? DAY_MS : HOUR_MS)

/** Whether a value is beyond the level of a rule, and the content of a message about it. */
export function toLevelResult(
  { what }: RuleOf<'level'>,
  entity: AlertEntity | null,
  { at, value }: LevelRow,
  registry: Registry,
): SubjectResult {
  const series: Series = SERIES[what.series]
  const { label, unit } = series
  const { above, below } = what
  const threshold = above ?? below ?? 0
  const toFacts = () => ({
    ...toSeriesFacts(series, entity, { from: at, at, registry }),
    ...{ observedAt: at, value, before: null, threshold, unit },
    describe: () => {
      const [shown, bound] = [formatValue(value, unit), formatValue(threshold, unit)]
      return {
        title: `${toPrefix(entity)}${label} ${above === undefined ? 'below' : 'above'} ${bound}`,
        text: `${label} is ${shown} at ${formatTime(at)}. The level is ${bound}.`,
      }
    },
  })
  const holds = above === undefined ? value < threshold : value > threshold
  return { subject: entity?.id ?? '', holds, value, observedAt: at, toFacts }
}

const toPrefix = (entity: AlertEntity | null) => (entity === null ? '' : `${entity.name}: `)

export const evaluateLevels: Evaluate<'level'> = async (rules, context) => {
  const results = new Map<string, Result>()
  for (const [name, own] of groupBy(rules, ({ what }) => what.series)) {
    const newest = await readNewestValues(name, toKeys(own, context.registry), context)
    for (const rule of own) {
      const subjects = toSubjects(rule, context.registry).flatMap((entity) => {
        const row = newest.get(entity?.key ?? NO_ENTITY)
        return row === undefined ? [] : toLevelResult(rule, entity, row, context.registry)
      })
      results.set(rule.name, { type: 'state', isComplete: false, subjects })
    }
  }
  return results
}

/** The change of a value against the lowest and the highest value of the window before it, in percent. */
function toMove({ value, low, high }: MovedRow, { direction }: RuleOf<'move'>['what']) {
  const up = low > 0 ? { change: (value / low - 1) * 100, before: low } : undefined
  const down = high > 0 ? { change: (value / high - 1) * 100, before: high } : undefined
  if (direction === 'up') return up
  if (direction === 'down' || up === undefined || down === undefined) return down
  return up.change >= -down.change ? up : down
}

function formatDuration(ms: number): string {
  if (ms % DAY_MS === 0) return `${ms / DAY_MS} d`
  return ms % HOUR_MS === 0 ? `${ms / HOUR_MS} h` : `${ms / 60_000} min`
}

/**
 * Whether a value has moved as a rule requires, and the content of a message about the movement. Undefined if the move
 * is unknown.
 */
export function toMoveResult(
  { what }: Pick<RuleOf<'move'>, 'what'>,
  entity: AlertEntity | null,
  row: MovedRow,
  registry: Registry,
): SubjectResult | undefined {
  const series: Series = SERIES[what.series]
  const { label, unit } = series
  const move = toMove(row, what)
  if (move === undefined) return undefined
  const toFacts = () => ({
    ...toSeriesFacts(series, entity, { from: row.at - what.within, at: row.at, registry }),
    ...{ observedAt: row.at, value: row.value, before: move.before, threshold: what.percent, unit },
    describe: () => {
      const change = `${move.change > 0 ? '+' : ''}${move.change.toFixed(1)} %`
      return {
        title: `${toPrefix(entity)}${label} ${change} within ${formatDuration(what.within)}`,
        text: `${label} is ${formatValue(row.value, unit)} at ${formatTime(row.at)}, after ${formatValue(move.before, unit)}.`,
      }
    },
  })
  const holds = Math.abs(move.change) >= what.percent
  return { subject: entity?.id ?? '', holds, value: row.value, observedAt: row.at, toFacts }
}

export const evaluateMoves: Evaluate<'move'> = async (rules, context) => {
  const results = new Map<string, Result>()
  for (const own of groupBy(rules, ({ what }) => `${what.series} ${what.within}`).values()) {
    const [first] = own
    if (first === undefined) continue
    const moves = await readMoves(
      first.what.series,
      { within: first.what.within, keys: toKeys(own, context.registry) },
      context,
    )
    for (const rule of own) {
      const subjects = toSubjects(rule, context.registry).flatMap((entity) => {
        const row = moves.get(entity?.key ?? NO_ENTITY)
        return (row && toMoveResult(rule, entity, row, context.registry)) ?? []
      })
      results.set(rule.name, { type: 'state', isComplete: false, subjects })
    }
  }
  return results
}
