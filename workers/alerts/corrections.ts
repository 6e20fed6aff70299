import { z } from 'zod'
import { groupBy, toBatches } from '../../shared/group-by.ts'
import { DAY_MS, type TimeRange } from '../../shared/intervals.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import type { Database } from '../../shared/store/store.ts'
import { type ConditionContext, type Facts, formatValue, type Result, type RuleOf } from './conditions/condition.ts'
import { NEWEST_WITHIN_MS, NO_ENTITY, toLevelResult, toMoveResult, toRows, toSubjects } from './conditions/series.ts'
import type { AlertEntity } from './rule-entities.ts'
import type { Rule } from './rules.ts'
import { SERIES, type Series } from './series.ts'
import { type AlertStore, CORRECTION, EVENTS_MS, formatTime } from './state.ts'
import type { Firing, RecordedFiring } from './state-rows.ts'

/** Changes of history since the last evaluation of a group. */
export interface Corrected {
  readonly ranges: ReadonlyMap<number, readonly TimeRange[]>
  /** The position of the next evaluation; undefined if nothing has changed. */
  readonly position: number | undefined
}

const NOTHING_CORRECTED: Corrected = { ranges: new Map(), position: undefined }

/** The rows of `alert_states` with positions have this rule, which no rule has as its name. */
const POSITIONS = ''
/** Two jobs may store their changes in another order than that of their times, so the last ones are read again. */
const OVERLAP_MS = 60_000
/** (entity, bound) pairs of a statement: longer lists do not fit in a request. */
export const MOST_PAIRS = 500

const changeRow = z.object({ entity: z.int(), from: z.int(), to: z.int(), readAt: z.int() })

const isCorrectable = (kind: Rule['what']['kind']) => kind === 'level' || kind === 'move' || kind === 'treasury'

/** Reads the ranges of the group's datasets that were rewritten after the stored position. */
export async function readCorrected(
  { name, kind, datasets }: { name: string; kind: Rule['what']['kind']; datasets: readonly string[] },
  db: Database,
  now: number,
): Promise<Corrected> {
  if (!isCorrectable(kind)) return NOTHING_CORRECTED
  const rows = await db.rows({
    name: 'alert-corrections',
    sql: `SELECT DISTINCT entity, toUnixTimestamp64Milli(begins_at) AS from, toUnixTimestamp64Milli(ends_at) AS to,
  toUnixTimestamp64Milli(now64(3)) AS readAt
FROM history_changes
WHERE dataset IN {datasets: Array(String)} AND ends_at > fromUnixTimestamp64Milli({since: Int64}, 'UTC')
  AND toUnixTimestamp64Milli(changed_at) >=
    (SELECT toInt64(ifNull(max(value), 0)) FROM alert_states FINAL WHERE rule = {positions: String} AND subject = {group: String})`,
    params: { datasets, since: now - 2 * EVENTS_MS, positions: POSITIONS, group: name },
    schema: changeRow,
  })
  const [first] = rows
  if (first === undefined) return NOTHING_CORRECTED
  return { ranges: groupBy(rows, ({ entity }) => entity), position: first.readAt - OVERLAP_MS }
}

/** The state that stores the position of a group. */
export const toPositionState = (group: string, position: number) => ({
  ...{ rule: POSITIONS, revision: '', subject: group, holds: false, value: position, firings: 0, firedAt: null },
})

/** Whether a value at a time is in a changed range, or in the window after it that a move covers. */
export const isCorrected = ({ ranges }: Corrected, key: number, at: number, within = 0): boolean =>
  ranges.get(key)?.some(({ from, to }) => at >= from && at < to + within) ?? false

/** The time after a changed value in which the condition of a rule depends on it. */
export const toWindow = ({ what }: Rule): number =>
  what.kind === 'move' ? what.within : what.kind === 'treasury' ? DAY_MS : 0

/** Adds to the content of a message that history was corrected. */
export const toCorrectedFacts = <F extends Facts>(facts: F): F => ({
  ...facts,
  describe: () => {
    const { title, text } = facts.describe()
    return { title: `Correction: ${title}`, text: `${text} History was corrected.` }
  },
})

/** An alert about the past: `holds` is whether the condition became true at `at`, or never did. */
export interface Correction {
  readonly facts: Facts
  readonly subject: string
  readonly at: number
  readonly holds: boolean
  /** How many corrections of the same kind about the same time were recorded. */
  readonly repeats: number
}

/** A rule with the result of its evaluation. */
export interface CorrectedRule {
  readonly rule: Rule
  readonly revision: string
  readonly beganAt: number
  readonly result: Result
}

/** A rule about one subject, whose series was changed in `ranges`. */
interface Watched extends CorrectedRule {
  readonly entity: AlertEntity | null
  readonly subject: string
  readonly key: number
  /** The time of the newest evaluated value. */
  readonly newestAt: number
}

/**
 * Compares the alerts of the past with corrected history. Returns one correction for each crossing that was not
 * recorded, and for each recorded one that is not in the series any more. Crossings before the rule began, and those
 * older than 30 days, are no news.
 */
export async function findCorrections<R extends CorrectedRule>(
  rules: readonly R[],
  corrected: Corrected,
  /** Of this evaluation. */
  firings: readonly Firing[],
  context: ConditionContext & { readonly store: AlertStore },
): Promise<readonly { readonly evaluated: R; readonly correction: Correction }[]> {
  if (corrected.ranges.size === 0) return []
  const since = context.now - EVENTS_MS
  const affected = rules.filter(
    ({ rule, beganAt, result }) =>
      result.type === 'state' &&
      toSubjects(rule, context.registry).some((entity) =>
        corrected.ranges
          .get(entity?.key ?? NO_ENTITY)
          ?.some(({ to }) => to + toWindow(rule) > Math.max(beganAt, since)),
      ),
  )
  if (affected.length === 0) return []
  const longest = Math.max(...affected.map(({ rule }) => rule.cooldown))
  const names = affected.map(({ rule }) => rule.name)
  const recorded = await context.store.readRecorded(names, since - longest)
  const toKey = (one: { rule: string; revision: string; subject: string }) =>
    `${one.rule} ${one.revision} ${one.subject}`
  const history = groupBy([...recorded, ...firings], toKey)
  const historyOf = ({ rule, revision, subject }: { rule: Rule; revision: string; subject: string }) =>
    toHistory(history.get(toKey({ rule: rule.name, revision, subject })) ?? [])
  const watched = affected.flatMap((evaluated) =>
    toWatched(evaluated, corrected, context).map((one) => ({ ...one, evaluated })),
  )
  const turns = await readTurns(watched, corrected, historyOf, context)
  const fired = new Set(firings.map(({ id }) => id))
  return watched.flatMap((one, index) =>
    compare(one, turns[index] ?? [], {
      corrected,
      history: historyOf(one),
      fired,
      since,
      registry: context.registry,
    }).map((correction) => ({
      evaluated: one.evaluated,
      correction,
    })),
  )
}

function toWatched(one: CorrectedRule, corrected: Corrected, { registry }: ConditionContext): Watched[] {
  const { rule, result } = one
  if (result.type !== 'state') return []
  const newest = new Map(result.subjects.map(({ subject, observedAt }) => [subject, observedAt]))
  return toSubjects(rule, registry).flatMap((entity) => {
    const [subject, key] = [entity?.id ?? '', entity?.key ?? NO_ENTITY]
    if (!corrected.ranges.has(key)) return []
    return { ...one, entity, subject, key, newestAt: newest.get(subject) ?? Number.POSITIVE_INFINITY }
  })
}

/** The recorded alerts of a subject by the time of their value. */
interface History {
  /** The alerts that were not withdrawn. */
  readonly active: ReadonlyMap<number, RecordedFiring>
  readonly repeats: (at: number, holds: boolean) => number
}

export function toHistory(recorded: readonly RecordedFiring[]): History {
  const active = new Map<number, RecordedFiring>()
  for (const own of groupBy(recorded, ({ observedAt }) => observedAt).values()) {
    const kept = own.filter(({ holds }) => holds)
    const [last] = kept.slice(-1)
    if (last !== undefined && last.observedAt !== null && kept.length > own.length - kept.length)
      active.set(last.observedAt, last)
  }
  return {
    active,
    repeats: (at, holds) =>
      recorded.filter((one) => one.kind === CORRECTION && one.observedAt === at && one.holds === holds).length,
  }
}

const turnRow = z.object({
  pair: z.int(),
  at: z.int(),
  previous: z.int(),
  hasTurned: z.boolean(),
  holds: z.boolean(),
  value: z.number(),
  low: z.number(),
  high: z.number(),
})
/** A value at which a condition began or ended, or that an alert was about. `previous` is the time of the value before. */
type Turn = z.infer<typeof turnRow>

const UP = 'if(low > 0, (value / low - 1) * 100, -1)'
const DOWN = 'if(high > 0, (1 - value / high) * 100, -1)'
const MOVES = { up: UP, down: DOWN, any: `greatest(${UP}, ${DOWN})` } as const

/** SQL of a number, and the bound that it must exceed for the condition to hold. */
function toSignal({ what }: Rule): { readonly signal: string; readonly operator: '>' | '>='; readonly bound: number } {
  if (what.kind === 'move') return { signal: MOVES[what.direction], operator: '>=', bound: what.percent }
  if (what.kind !== 'level') throw new Error(`rules of the kind ${what.kind} have no series`)
  if (what.above !== undefined) return { signal: 'value', operator: '>', bound: what.above }
  return { signal: '-value', operator: '>', bound: -(what.below ?? 0) }
}

const toSeries = ({ what }: Rule): Series | undefined =>
  what.kind === 'level' || what.kind === 'move' ? SERIES[what.series] : undefined

/** Reads the turns of each subject, in the order of `watched`. One statement reads those of a series and a condition. */
async function readTurns(
  watched: readonly Watched[],
  { ranges }: Corrected,
  historyOf: (one: Watched) => History,
  { db, now }: ConditionContext,
): Promise<readonly (readonly Turn[])[]> {
  const turns: Turn[][] = watched.map(() => [])
  const indexed = watched.map((one, index) => ({ ...one, index }))
  const alike = groupBy(indexed, ({ rule }) => {
    const { signal, operator } = toSignal(rule)
    return [rule.what.kind, toSeries(rule)?.label, toWindow(rule), signal, operator].join(' ')
  })
  for (const batch of [...alike.values()].flatMap((own) => toBatches(own, MOST_PAIRS))) {
    const [first] = batch
    const series = first && toSeries(first.rule)
    if (first === undefined || series === undefined) continue
    const [within, { signal, operator }] = [toWindow(first.rule), toSignal(first.rule)]
    const from = Math.min(...batch.flatMap(({ key }) => ranges.get(key)?.map((range) => range.from) ?? []))
    const earliest = Math.max(from, now - EVENTS_MS)
    const rows = await db.rows({
      name: 'alert-turns',
      sql: toTurnsSql(series, within, { signal, operator }),
      params: {
        keys: batch.map(({ key }) => key),
        bounds: batch.map(({ rule }) => toSignal(rule).bound),
        since: earliest - within - NEWEST_WITHIN_MS,
        times: [...new Set(batch.flatMap((one) => [...historyOf(one).active.keys()]))].filter((at) => at >= earliest),
      },
      schema: turnRow,
    })
    for (const row of rows) turns[batch[row.pair]?.index ?? -1]?.push(row)
  }
  return turns
}

function toTurnsSql(series: Series, within: number, { signal, operator }: { signal: string; operator: string }) {
  const { time, entity = String(NO_ENTITY) } = series
  const isWithin = `${time} >= fromUnixTimestamp64Milli({since: Int64}, 'UTC') AND toUInt64(${entity}) IN {keys: Array(UInt64)}`
  const rows = toRows(series, series.table, isWithin)
  return `
SELECT l.pair AS pair, s.at AS at, s.previous AS previous, toBool(s.signal ${operator} l.bound) AS holds,
  toBool(s.previous != 0 AND (s.signal ${operator} l.bound) != (s.before ${operator} l.bound)) AS hasTurned,
  s.value AS value, s.low AS low, s.high AS high
FROM
(
  SELECT entity, at, value, low, high, signal, lagInFrame(at, 1, 0) OVER w AS previous, lagInFrame(signal) OVER w AS before
  FROM
  (
    SELECT entity, at, value, low, high, toFloat64(${signal}) AS signal FROM
    (
      SELECT r.entity AS entity, r.at AS at, r.value AS value, min(r.value) OVER m AS low, max(r.value) OVER m AS high
      FROM (${rows}) AS r
      WINDOW m AS (PARTITION BY r.entity ORDER BY r.at ASC RANGE BETWEEN ${within} PRECEDING AND CURRENT ROW)
    )
  )
  WINDOW w AS (PARTITION BY entity ORDER BY at ASC ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
) AS s
INNER JOIN
(
  SELECT one.1 AS entity, one.2 AS bound, one.3 AS pair
  FROM (SELECT arrayJoin(arrayZip({keys: Array(UInt64)}, {bounds: Array(Float64)}, range(length({keys: Array(UInt64)})))) AS one)
) AS l ON l.entity = s.entity
WHERE s.previous = 0 OR hasTurned OR has({times: Array(Int64)}, s.at)
ORDER BY pair, at`
}

function compare(
  one: Watched,
  turns: readonly Turn[],
  {
    corrected,
    history,
    fired,
    since,
    registry,
  }: { corrected: Corrected; history: History; fired: ReadonlySet<string>; since: number; registry: Registry },
): Correction[] {
  const { rule, subject, key, beganAt, newestAt } = one
  const within = toWindow(rule)
  const active = new Set(history.active.keys())
  const corrections: Correction[] = []
  for (const [at, firing] of history.active) {
    if (at < since || fired.has(firing.id) || !isCorrected(corrected, key, at, within)) continue
    const current = turns.findLast((turn) => turn.at <= at)
    // Without values at that time the condition is unknown.
    if (current === undefined || current.holds) continue
    active.delete(at)
    const value = current.at === at ? current.value : null
    const facts = toWithdrawnFacts(firing, value)
    corrections.push({ facts, subject, at, holds: false, repeats: history.repeats(at, false) })
  }
  for (const [index, turn] of turns.entries()) {
    const { at, previous, holds, hasTurned } = turn
    if (!hasTurned || !holds || at < Math.max(beganAt, since) || at > newestAt) continue
    // The first value after a changed range may have crossed because the value before it has changed.
    const isAffected = corrected.ranges.get(key)?.some(({ from, to }) => at >= from && previous < to + within)
    const end = turns.slice(index).find((later) => !later.holds)?.at ?? Number.POSITIVE_INFINITY
    const isKnown = [...active].some((time) => time < end && (time >= at || at - time < rule.cooldown))
    if (!isAffected || isKnown) continue
    const facts = toFoundFacts(one, turn, registry)
    if (facts === undefined) continue
    active.add(at)
    corrections.push({ facts: toCorrectedFacts(facts), subject, at, holds: true, repeats: history.repeats(at, true) })
  }
  return corrections
}

function toFoundFacts({ rule, entity }: Watched, turn: Turn, registry: Registry): Facts | undefined {
  const { what } = rule
  if (what.kind !== 'level' && what.kind !== 'move') return undefined
  const result =
    what.kind === 'level'
      ? toLevelResult(rule as RuleOf<'level'>, entity, turn, registry)
      : toMoveResult(rule as RuleOf<'move'>, entity, turn, registry)
  return result?.toFacts()
}

/** `value` is the corrected one; null if there is none at that time. */
export function toWithdrawnFacts(firing: RecordedFiring, value: number | null): Facts {
  const { entityType, entityId, entityName, observedAt, threshold, unit, page, request, title, firedAt } = firing
  const entity =
    entityType === '' ? null : ({ type: entityType, id: entityId, key: 0, name: entityName } as AlertEntity)
  const was = firing.value === null ? 'unknown' : formatValue(firing.value, unit)
  const is = value === null ? '' : ` It is ${formatValue(value, unit)}.`
  return {
    ...{ entity, observedAt, value, before: firing.value, threshold, unit, page, request },
    describe: () => ({
      title: `Correction: withdrawn: ${title.replace(/^Correction: /, '')}`,
      text: `History was corrected: the alert of ${formatTime(firedAt)} does not hold. Its value at ${formatTime(observedAt ?? firedAt)} was ${was}.${is}`,
    }),
  }
}
