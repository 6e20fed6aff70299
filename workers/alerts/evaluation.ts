import { groupBy } from '../../shared/group-by.ts'
import { toId } from '../../shared/ids.ts'
import { HOUR_MS, toBucketStart } from '../../shared/intervals.ts'
import { toLine } from '../../shared/text-line.ts'
import type { ConditionContext, Facts, Result } from './conditions/condition.ts'
import { evaluateConditions } from './conditions.ts'
import {
  type Corrected,
  type Correction,
  findCorrections,
  isCorrected,
  readCorrected,
  toCorrectedFacts,
  toPositionState,
  toWindow,
} from './corrections.ts'
import { findQuorumWithdrawals } from './quorum-corrections.ts'
import { type Rule, toDatasets, toRevision } from './rules.ts'
import { type AlertStore, CORRECTION, EVENTS_MS, toDeliveries, toStateKey } from './state.ts'
import type { Firing, StoredFiring, StoredRule, SubjectState } from './state-rows.ts'

/**
 * Rules that are evaluated together, by one job at a time: those of one kind about the same data. `datasets` are those
 * whose change events trigger the evaluation.
 */
export interface RuleGroup {
  readonly name: string
  readonly kind: Rule['what']['kind']
  readonly datasets: readonly string[]
  readonly rules: readonly Rule[]
}

/** The groups of the rules that are not paused. */
export function toGroups(rules: readonly Rule[]): ReadonlyMap<string, RuleGroup> {
  const toName = ({ what }: Rule) => [what.kind, ...toDatasets(what)].join(' ')
  const groups = groupBy(
    rules.filter(({ paused }) => !paused),
    toName,
  )
  return new Map(
    [...groups].flatMap(([name, own]) => {
      const [first] = own
      return first ? [[name, { name, kind: first.what.kind, datasets: toDatasets(first.what), rules: own }]] : []
    }),
  )
}

interface EvaluationContext extends ConditionContext {
  readonly store: AlertStore
  /** Called when the firings and their deliveries are stored, while the states are being stored. */
  readonly onFired?: (firings: readonly StoredFiring[]) => Promise<void>
}

/** A rule in an evaluation. `isNew`: it has just been added, changed or resumed. */
interface Evaluated {
  readonly corrected: Corrected
  readonly rule: Rule
  readonly revision: string
  readonly beganAt: number
  readonly isNew: boolean
  /** Of the rule's condition, by subject. */
  readonly states: ReadonlyMap<string, SubjectState>
  readonly result: Result
}

interface Changes {
  readonly firings: Firing[]
  readonly states: SubjectState[]
}

/**
 * Evaluates the rules of a group, stores the firings, and returns them. The insert of the firings decides: what follows
 * is repeated by the next evaluation if this process dies. A new rule stores the present state of its condition, and
 * fires when the state changes. Rules about the quality of data fire immediately.
 * @throws DataError `storage`, and for lists those of `readList`.
 */
export async function evaluateGroup(group: RuleGroup, context: EvaluationContext): Promise<readonly StoredFiring[]> {
  const { store, now } = context
  const names = group.rules.map(({ name }) => name)
  const began = await store.readTime()
  // Read before the data, so that the data contains all of these changes.
  const correcting = readCorrected(group, context.db, now)
  const [results, stored, states, corrected] = await Promise.all([
    correcting.then(() => evaluateConditions(group.kind, group.rules, context)),
    store.readRules(),
    store.readStates(names, now),
    correcting,
  ])
  const hasEvents = [...results.values()].some(({ type }) => type === 'events')
  const fired = hasEvents ? await store.readFired(names, now) : new Set<string>()
  const changes: Changes = { firings: [], states: [] }
  const begun: Evaluated[] = []
  const active: Evaluated[] = []
  for (const rule of group.rules) {
    const result = results.get(rule.name)
    if (result === undefined) continue
    const evaluated = toEvaluated(rule, { result, stored: stored.get(rule.name), states, corrected }, now)
    ;(evaluated.isNew ? begun : active).push(evaluated)
    if (result.type === 'state') applyState(evaluated, result, changes, now)
    else if (result.type === 'progress') applyProgress(evaluated, result, changes, now)
    else applyEvents(evaluated, result, fired, changes, now)
  }
  const corrections = await Promise.all([
    findCorrections(active, corrected, changes.firings, context),
    findQuorumWithdrawals(active, changes.firings, context),
  ])
  for (const { evaluated, correction } of corrections.flat())
    changes.firings.push(toCorrection(evaluated, correction, now))
  if (corrected.position !== undefined) changes.states.push(toPositionState(group.name, corrected.position))
  await store.writeFirings(changes.firings)
  const storeStates = async () => {
    await store.writeStates(changes.states, began)
    // A rule has begun once its states are stored: without them, what holds already would fire.
    await store.writeRules(
      begun.map(({ rule, revision, beganAt }) => ({
        ...{ rule: rule.name, revision, state: 'active', beganAt },
        ...{ kind: rule.what.kind, description: rule.description },
      })),
      began,
    )
  }
  const storeDeliveries = async () => {
    await store.writeDeliveries(toDeliveries(changes.firings))
    await context.onFired?.(changes.firings)
  }
  await Promise.all([storeDeliveries(), storeStates()])
  return changes.firings
}

const NO_STATES: ReadonlyMap<string, SubjectState> = new Map()

function toEvaluated(
  rule: Rule,
  {
    result,
    stored,
    states,
    corrected,
  }: {
    readonly result: Result
    readonly stored: StoredRule | undefined
    readonly states: Awaited<ReturnType<AlertStore['readStates']>>
    readonly corrected: Corrected
  },
  now: number,
): Evaluated {
  const revision = toRevision(rule)
  const isNew = stored === undefined || stored.revision !== revision || stored.state !== 'active'
  const beganAt = isNew ? now : stored.beganAt
  const own = states.get(toStateKey({ rule: rule.name, revision })) ?? NO_STATES
  return { rule, revision, isNew, result, corrected, beganAt, states: own }
}

const unknownState = ({ rule, revision }: Evaluated, subject: string): SubjectState => ({
  ...{ rule: rule.name, revision, subject, holds: false, value: null, firings: 0, firedAt: null },
})

const isCooling = ({ rule }: Evaluated, { firedAt }: SubjectState, now: number) =>
  firedAt !== null && now - firedAt < rule.cooldown

/** The changes of a condition that fire. */
function toTriggers({ what }: Rule): readonly boolean[] {
  if (what.kind !== 'list' || what.on === 'enter') return [true]
  return what.on === 'leave' ? [false] : [true, false]
}

/** Rules about the quality of data fire if the condition holds when they begin. */
const firesAtOnce = ({ what: { kind } }: Rule) => kind === 'dataset' || kind === 'provider'

function applyState(
  evaluated: Evaluated,
  { subjects, isComplete }: Extract<Result, { type: 'state' }>,
  { firings, states }: Changes,
  now: number,
): void {
  const { rule, isNew } = evaluated
  const triggers = toTriggers(rule)
  const listed = new Set<string>()
  for (const { subject, holds, value, toFacts } of subjects) {
    listed.add(subject)
    const known = evaluated.states.get(subject)
    const before = known ?? unknownState(evaluated, subject)
    if (known === undefined ? !holds && rule.what.kind !== 'level' : before.holds === holds && !isNew) continue
    // A first value above a level has not crossed it.
    const isFirst = isNew || (known === undefined && rule.what.kind === 'level')
    const isChange = before.holds !== holds && (!isFirst || firesAtOnce(rule))
    const fires = isChange && triggers.includes(holds) && !isCooling(evaluated, before, now)
    const after = { ...before, holds, value, ...(fires ? toFired(before, now) : {}) }
    states.push(after)
    if (fires) firings.push(toFiring(evaluated, withCorrection(evaluated, toFacts()), after, now))
  }
  if (!isComplete) return
  for (const state of evaluated.states.values())
    if (state.holds && !listed.has(state.subject)) states.push({ ...state, holds: false, value: null })
}

const toFired = ({ firings }: SubjectState, now: number) => ({ firings: firings + 1, firedAt: now })

function applyProgress(
  evaluated: Evaluated,
  { subjects }: Extract<Result, { type: 'progress' }>,
  { firings, states }: Changes,
  now: number,
): void {
  for (const { subject, position, ...facts } of subjects) {
    const before = evaluated.states.get(subject) ?? unknownState(evaluated, subject)
    const since = before.value ?? evaluated.beganAt
    if (evaluated.isNew || position <= since || isCooling(evaluated, before, now)) continue
    const after = { ...before, holds: true, value: position, ...toFired(before, now) }
    states.push(after)
    firings.push(toFiring(evaluated, facts, after, now))
  }
}

function applyEvents(
  evaluated: Evaluated,
  { events }: Extract<Result, { type: 'events' }>,
  fired: ReadonlySet<string>,
  { firings }: Changes,
  now: number,
): void {
  const since = Math.max(evaluated.beganAt, now - EVENTS_MS)
  for (const { subject, at, ...facts } of events) {
    if (at < since) continue
    const state = {
      ...unknownState(evaluated, subject),
      holds: true,
      ...toFired(unknownState(evaluated, subject), now),
    }
    const firing = toFiring(evaluated, withCorrection(evaluated, facts), state, now)
    if (!fired.has(firing.id)) firings.push(firing)
  }
}

/** A firing about the past. Its id has the time of the crossing, and it leaves the state of the subject unchanged. */
function toCorrection(evaluated: Evaluated, correction: Correction, now: number): Firing {
  const { facts, subject, at, holds, repeats } = correction
  const { rule, revision } = evaluated
  return {
    ...toFiring(evaluated, facts, { ...unknownState(evaluated, subject), holds }, now),
    id: toId('alert correction', rule.name, revision, subject, at, holds ? 'found' : 'withdrawn', repeats),
    kind: CORRECTION,
  }
}

/** Adds to the message that the value, or a value that it is compared with, was corrected. */
function withCorrection({ rule, corrected }: Evaluated, facts: Facts): Facts {
  const { entity, observedAt } = facts
  const isOfCorrection = observedAt !== null && isCorrected(corrected, entity?.key ?? 0, observedAt, toWindow(rule))
  return isOfCorrection ? toCorrectedFacts(facts) : facts
}

/** The id is the same whenever the firing is computed again, so a repetition adds nothing. */
function toFiring(evaluated: Evaluated, facts: Facts, state: SubjectState, now: number): Firing {
  const { rule, revision } = evaluated
  const { entity, describe, ...rest } = facts
  const { subject, firings, holds } = state
  // Texts may be those of strangers: titles of proposals, symbols of tokens, answers of providers.
  const { title, text } = describe()
  return {
    ...rest,
    ...{ title: toLine(title), text: toLine(text) },
    id: toId('alert', rule.name, revision, subject, firings),
    ...{ rule: rule.name, revision, subject, firings, holds, firedAt: now },
    kind: rule.what.kind === 'dataset' && rule.what.is === 'corrected' ? 'corrected' : rule.what.kind,
    entityType: entity?.type ?? '',
    entityId: entity?.id ?? '',
    entityName: entity?.name ?? '',
    channels: [...new Set(rule.to)],
    dueAt: toDueAt(rule, now),
    isDigest: rule.digest !== undefined,
  }
}

/** A digest is sent at the end of its hour or day, in UTC. */
function toDueAt({ digest }: Rule, now: number): number {
  if (digest === undefined) return now
  return digest === 'hourly' ? toBucketStart(now, '1h') + HOUR_MS : toBucketStart(now, '1d') + 24 * HOUR_MS
}
