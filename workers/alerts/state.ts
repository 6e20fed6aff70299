import { createBatcher } from '../../shared/batcher.ts'
import { groupBy } from '../../shared/group-by.ts'
import { DAY_MS } from '../../shared/intervals.ts'
import { type Database, readEngineTime } from '../../shared/store/store.ts'
import { createNewestRows } from './newest-rows.ts'
import {
  type Delivery,
  deliveryRow,
  type Firing,
  firingRow,
  idRow,
  type MessageKey,
  recordedRow,
  ruleRow,
  type StoredFiring,
  type StoredRule,
  type SubjectState,
  stateRow,
} from './state-rows.ts'

/** How far back firings are read: a day of retries, a day of digest, and a reserve. */
const RECENT_MS = 3 * DAY_MS
/** Events older than this do not fire, so their firings are not read further back. */
export const EVENTS_MS = 30 * DAY_MS
/** Longer lists of names do not fit in a request; all rows are read then. */
const MOST_NAMES = 100
/** Concurrent deliveries share statements: at most this many messages are read or stored by one. */
const BATCH = { concurrency: 1, most: MOST_NAMES, weigh: () => 1 } as const

const toMs = (column: string) => `toUnixTimestamp64Milli(${column})`
export const toTime = (ms: number): string => new Date(ms).toISOString()
/** A time in a text for people, to the minute: `2026-11-27 14:05 UTC`. */
export const formatTime = (ms: number): string => `${toTime(ms).slice(0, 16).replace('T', ' ')} UTC`
const toTimeOrNull = (ms: number | null) => (ms === null ? null : toTime(ms))

/** The kind of firings that correct earlier ones. Corrections do not change the state of their subject. */
export const CORRECTION = 'correction'

const FIRING = `rule, id, kind, ${toMs('fired_at')} AS firedAt, title, text, entity_type AS entityType,
  entity_id AS entityId, entity_name AS entityName, ${toMs('observed_at')} AS observedAt, value, before, threshold, unit,
  page, request, channels, ${toMs('due_at')} AS dueAt, is_digest AS isDigest`

const DELIVERY = `rule, channel, firing, message, ${toMs('due_at')} AS dueAt, state, attempts,
  ${toMs('first_try_at')} AS firstTryAt, ${toMs('next_try_at')} AS nextTryAt, reason, version`

/** The stored state of alerts. Every method throws DataError `storage`. */
export type AlertStore = ReturnType<typeof createAlertStore>

export function createAlertStore(db: Database) {
  return {
    /** The time of ClickHouse, which orders evaluations, because the clocks of workers may differ. */
    readTime: () => readEngineTime(db),
    readRules: createRuleRows(db),
    /** `began` is `readTime` at the beginning of the evaluation: what an earlier one stores later replaces nothing. */
    writeRules: (
      rows: readonly (StoredRule & { readonly kind: string; readonly description: string })[],
      began: number,
    ) =>
      insert(
        db,
        'alert_rules',
        rows.map(({ beganAt, ...rest }) => ({ ...rest, began_at: toTime(beganAt), written_at: toTime(began) })),
      ),
    readStates: createStates(db),
    /** `began` is `readTime` at the beginning of the evaluation: what an earlier one stores later replaces nothing. */
    writeStates: (states: readonly SubjectState[], began: number) =>
      insert(
        db,
        'alert_states',
        states.map(({ firings, firedAt, ...rest }) => ({
          ...rest,
          firing_count: firings,
          fired_at: toTimeOrNull(firedAt),
          written_at: toTime(began),
        })),
      ),
    /** The subjects of the events of these rules that have fired. */
    readFired: async (rules: readonly string[], now: number) => {
      const rows = await db.rows({
        name: 'alert-fired',
        sql: `SELECT DISTINCT id FROM alert_firings
WHERE ${OF_RULES} AND fired_at >= fromUnixTimestamp64Milli({since: Int64}, 'UTC')`,
        params: { ...toNames(rules), since: now - EVENTS_MS - RECENT_MS },
        schema: idRow,
      })
      return new Set(rows.map(({ id }) => id))
    },
    /** The firings of these rules since a time, oldest first. */
    readRecorded: (rules: readonly string[], since: number) =>
      db.rows({
        name: 'alert-recorded',
        sql: `SELECT ${FIRING}, revision, subject, holds FROM alert_firings FINAL
WHERE ${OF_RULES} AND fired_at >= fromUnixTimestamp64Milli({since: Int64}, 'UTC') ORDER BY firedAt, id`,
        params: { ...toNames(rules), since },
        schema: recordedRow,
      }),
    writeFirings: (firings: readonly Firing[]) => insert(db, 'alert_firings', firings.map(toFiringRow)),
    /** Recent firings without deliveries: a process died after it had stored them. */
    readUndelivered: (now: number) =>
      db.rows({
        name: 'alert-undelivered',
        sql: `SELECT ${FIRING} FROM alert_firings FINAL
WHERE fired_at >= fromUnixTimestamp64Milli({since: Int64}, 'UTC') AND notEmpty(channels)
  AND (rule, id) NOT IN (SELECT rule, firing FROM alert_deliveries)`,
        params: { since: now - RECENT_MS },
        schema: firingRow,
      }),
    /** The deliveries that are due before a time and not finished. */
    readPending: (before: number) =>
      db.rows({
        name: 'alert-pending',
        sql: `SELECT ${DELIVERY} FROM alert_deliveries FINAL
WHERE state = 'pending' AND due_at <= fromUnixTimestamp64Milli({before: Int64}, 'UTC')`,
        params: { before },
        schema: deliveryRow,
      }),
    /** The deliveries that failed permanently. */
    readDead: () =>
      db.rows({
        name: 'alert-dead',
        sql: `SELECT ${DELIVERY} FROM alert_deliveries FINAL WHERE state = 'dead' ORDER BY next_try_at`,
        schema: deliveryRow,
      }),
    /** Messages that are read at the same time share a statement. */
    readMessage: createBatcher({ ...BATCH, read: (keys: readonly MessageKey[]) => readMessages(db, keys) }),
    /** Rows that are written at the same time share an insert, because each insert waits for the disk. */
    writeDeliveries: createBatcher({
      ...BATCH,
      read: async (batch: readonly (readonly Delivery[])[]) => {
        await insert(db, 'alert_deliveries', batch.flat().map(toDeliveryRow))
        return batch.map(() => undefined)
      },
    }),
  }
}

/** A message with its deliveries and its firings, oldest first. */
export interface StoredMessage {
  readonly deliveries: readonly Delivery[]
  readonly firings: readonly StoredFiring[]
}

/** Reads messages in the order of their keys. */
async function readMessages(db: Database, keys: readonly MessageKey[]): Promise<readonly StoredMessage[]> {
  const params = { rules: keys.map(({ rule }) => rule), messages: keys.map(({ message }) => message) }
  const ofMessages = 'rule IN {rules: Array(String)} AND message IN {messages: Array(String)}'
  const [deliveries, firings] = await Promise.all([
    db.rows({
      name: 'alert-messages',
      sql: `SELECT ${DELIVERY} FROM alert_deliveries FINAL WHERE ${ofMessages}`,
      params,
      schema: deliveryRow,
    }),
    db.rows({
      name: 'alert-firings',
      sql: `SELECT ${FIRING} FROM alert_firings FINAL
WHERE rule IN {rules: Array(String)} AND id IN (SELECT firing FROM alert_deliveries FINAL WHERE ${ofMessages})
ORDER BY fired_at, id`,
      params,
      schema: firingRow,
    }),
  ])
  const toKey = ({ rule, channel, message }: MessageKey) => `${rule} ${channel} ${message}`
  const byMessage = groupBy(deliveries, toKey)
  const byRule = groupBy(firings, ({ rule }) => rule)
  return keys.map((key) => {
    const own = byMessage.get(toKey(key)) ?? []
    const ids = new Set(own.map(({ firing }) => firing))
    return { deliveries: own, firings: (byRule.get(key.rule) ?? []).filter(({ id }) => ids.has(id)) }
  })
}

/** The deliveries of new firings. Inserted again, they change nothing. */
export const toDeliveries = (firings: readonly StoredFiring[]): Delivery[] =>
  firings.flatMap(({ rule, id, channels, dueAt, isDigest }) =>
    channels.map((channel) => ({
      ...{ rule, channel, firing: id, message: isDigest ? '' : id, dueAt, state: 'pending' as const },
      ...{ attempts: 0, firstTryAt: null, nextTryAt: dueAt, reason: '', version: 0 },
    })),
  )

const insert = async (db: Database, table: string, rows: readonly object[]) => {
  if (rows.length > 0) await db.insert({ table, rows })
}

const OF_RULES = '({all: Bool} OR rule IN {rules: Array(String)})'
const toNames = (rules: readonly string[]) => ({
  all: rules.length > MOST_NAMES,
  rules: rules.length > MOST_NAMES ? [] : rules,
})

/** By rule and revision, then by subject. */
export type States = ReadonlyMap<string, ReadonlyMap<string, SubjectState>>

export const toStateKey = ({ rule, revision }: { readonly rule: string; readonly revision: string }) =>
  `${rule} ${revision}`

/** Returns a function that reads the rule rows, by rule. */
function createRuleRows(db: Database): () => Promise<ReadonlyMap<string, StoredRule>> {
  const read = createNewestRows(db, {
    name: 'alert-rules',
    table: 'alert_rules',
    columns: { rule: 'rule', revision: 'revision', state: 'state', beganAt: toMs('began_at') },
    row: ruleRow,
    toKey: ({ rule }) => rule,
  })
  return async () => new Map((await read()).map((row) => [row.rule, row]))
}

/**
 * Returns a function that reads the states of rules. A process may die after it has stored a firing and before it stores
 * the state, so a firing with a higher number than its state replaces the state.
 */
function createStates(db: Database): (rules: readonly string[], now: number) => Promise<States> {
  const readStored = createNewestRows(db, {
    name: 'alert-states',
    table: 'alert_states',
    columns: {
      ...{ rule: 'rule', revision: 'revision', subject: 'subject', holds: 'holds', value: 'value' },
      ...{ firings: 'firing_count', firedAt: toMs('fired_at') },
    },
    row: stateRow,
    toKey: ({ rule, revision, subject }) => `${rule} ${revision} ${subject}`,
  })
  return async (rules, now) => {
    const [stored, fired] = await Promise.all([readStored(), readNewestFirings(db, rules, now)])
    const wanted = new Set(rules)
    const states = new Map<string, Map<string, SubjectState>>()
    for (const row of [...stored, ...fired]) {
      if (!wanted.has(row.rule)) continue
      const key = toStateKey(row)
      const own = states.get(key)
      const known = own?.get(row.subject)
      if (own === undefined) states.set(key, new Map([[row.subject, row]]))
      else if (known === undefined || row.firings > known.firings) own.set(row.subject, row)
    }
    return states
  }
}

/** The newest firing of each subject, as the state that it leaves behind. */
const readNewestFirings = (db: Database, rules: readonly string[], now: number) =>
  db.rows({
    name: 'alert-newest-firings',
    sql: `SELECT rule, revision, subject, holds, if(kind = 'corrected', toFloat64(${toMs('observed_at')}), value) AS value,
  firing_count AS firings, toNullable(${toMs('fired_at')}) AS firedAt
FROM alert_firings
WHERE ${OF_RULES} AND kind != '${CORRECTION}' AND fired_at >= fromUnixTimestamp64Milli({since: Int64}, 'UTC')
ORDER BY firing_count DESC, fired_at LIMIT 1 BY rule, revision, subject`,
    params: { ...toNames(rules), since: now - RECENT_MS },
    schema: stateRow,
  })

const toFiringRow = (firing: Firing) => {
  const { firings, firedAt, entityType, entityId, entityName, observedAt, dueAt, isDigest, ...rest } = firing
  return {
    ...rest,
    firing_count: firings,
    fired_at: toTime(firedAt),
    entity_type: entityType,
    entity_id: entityId,
    entity_name: entityName,
    observed_at: toTimeOrNull(observedAt),
    due_at: toTime(dueAt),
    is_digest: isDigest,
  }
}

const toDeliveryRow = ({ dueAt, firstTryAt, nextTryAt, ...rest }: Delivery) => ({
  ...rest,
  due_at: toTime(dueAt),
  first_try_at: toTimeOrNull(firstTryAt),
  next_try_at: toTime(nextTryAt),
})
