import { z } from 'zod'
import { readCompleteness } from '../../shared/coverage/completeness.ts'
import { datasets } from '../../shared/datasets/list.ts'
import { DataError, toReason } from '../../shared/errors.ts'
import { groupBy } from '../../shared/group-by.ts'
import { DAY_MS } from '../../shared/intervals.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import { readFailing } from '../../shared/store/failing-providers.ts'
import { readNewest, toFreshnessState, toLagSeconds } from '../../shared/store/readiness.ts'
import { type AlertEntity, findEntities, type Rule, type What } from './rules.ts'
import { LISTS, SERIES, type Series, type SeriesName } from './series.ts'
import { EVENTS_MS, toTime } from './state.ts'

/** What a message says about a subject. Times are Unix milliseconds, `page` and `request` are paths. */
export interface Facts {
  readonly entity: AlertEntity | null
  readonly title: string
  readonly text: string
  readonly observedAt: number | null
  readonly value: number | null
  readonly before: number | null
  readonly threshold: number | null
  readonly unit: string
  readonly page: string | null
  readonly request: string | null
}

/**
 * The result of a rule.
 * - `state`: whether the condition holds for each subject. A subject that is not listed is unknown, or does not hold if
 *   the list `isComplete`.
 * - `events`: each fires once. `at` is when it happened.
 * - `progress`: fires when the position of a subject has grown.
 */
export type Result =
  | {
      readonly type: 'state'
      readonly isComplete: boolean
      readonly subjects: readonly (Facts & { readonly subject: string; readonly holds: boolean })[]
    }
  | { readonly type: 'events'; readonly events: readonly (Facts & { readonly subject: string; readonly at: number })[] }
  | {
      readonly type: 'progress'
      readonly subjects: readonly (Facts & { readonly subject: string; readonly position: number })[]
    }

export interface ConditionContext {
  readonly db: Database
  readonly registry: Registry
  /** The base URL of the API, for rules about lists. */
  readonly apiUrl: string
  readonly now: number
}

type RuleOf<K extends What['kind']> = Rule & { readonly what: Extract<What, { kind: K }> }
type Evaluate<K extends What['kind']> = (
  rules: readonly RuleOf<K>[],
  context: ConditionContext,
) => Promise<ReadonlyMap<string, Result>>

const NOTHING = { entity: null, observedAt: null, value: null, before: null, threshold: null, unit: '', page: null }

const USD = new Intl.NumberFormat('en-US', { style: 'currency', currency: 'USD', maximumSignificantDigits: 6 })
const NUMBER = new Intl.NumberFormat('en-US', { maximumSignificantDigits: 6 })
const formatValue = (value: number, unit: string): string => (unit === 'USD' ? USD : NUMBER).format(value)

const toPage = ({ type, id }: AlertEntity) => `/${type}s/${id}`

/** The facts of an entity: its page, and the route with its records. */
const toEntityFacts = (entity: AlertEntity | null, request: string) => ({
  entity,
  page: entity === null ? null : toPage(entity),
  request: entity === null ? request : `${request}?id=${entity.id}`,
})

/** Key of the rows of a series without entities. */
const NO_ENTITY = 0

const newestRow = z.object({ entity: z.number(), at: z.int(), value: z.number() })
const movedRow = newestRow.extend({ low: z.number(), high: z.number() })

/** The rows of a series as `entity`, `at` and `value`, without unknown values. */
function toRows(series: Series, table: string, isWithin: string): string {
  const { entity = NO_ENTITY, time, value, where } = series
  const conditions = [isWithin, ...(where === undefined ? [] : [where])].join(' AND ')
  return `SELECT toUInt64(${entity}) AS entity, toInt64(toUnixTimestamp64Milli(toDateTime64(${time}, 3, 'UTC'))) AS at,
  toFloat64(assumeNotNull(${value})) AS value
FROM ${table} FINAL WHERE ${conditions} AND isNotNull(${value})`
}

/** Values older than this are no news. */
const NEWEST_WITHIN_MS = 7 * DAY_MS

/** Longer lists of keys do not fit in a request; all rows are read then. */
const MOST_KEYS = 1_000

const isSelected = (column: string | number) => `({all: Bool} OR toUInt64(${column}) IN {keys: Array(UInt64)})`

const toSelection = (keys: readonly number[]) => {
  const all = keys.length > MOST_KEYS
  return { all, keys: all ? [] : keys }
}

const isSince = ({ time, entity = String(NO_ENTITY) }: Series) =>
  `${time} >= fromUnixTimestamp64Milli({since: Int64}, 'UTC') AND ${isSelected(entity)}`

const toKeys = (rules: readonly Rule[], registry: Registry): number[] => [
  ...new Set(rules.flatMap((rule) => toSubjects(rule, registry).map((entity) => entity?.key ?? NO_ENTITY))),
]

async function readNewestValues(name: SeriesName, keys: readonly number[], { db, now }: ConditionContext) {
  const series: Series = SERIES[name]
  const rows = await db.rows({
    name: `alert-series-${name}`,
    sql: `SELECT entity, max(t.at) AS at, argMax(t.value, t.at) AS value
FROM (${toRows(series, series.newest ?? series.table, isSince(series))}) AS t GROUP BY entity`,
    params: { since: now - NEWEST_WITHIN_MS, ...toSelection(keys) },
    schema: newestRow,
  })
  return new Map(rows.map((row) => [row.entity, row]))
}

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
const toSubjects = (rule: Rule, registry: Registry): readonly (AlertEntity | null)[] =>
  findEntities(rule, registry) ?? [null]

const evaluateLevels: Evaluate<'level'> = async (rules, context) => {
  const results = new Map<string, Result>()
  for (const [name, own] of groupBy(rules, ({ what }) => what.series)) {
    const newest = await readNewestValues(name, toKeys(own, context.registry), context)
    const { label, unit, request }: Series = SERIES[name]
    for (const rule of own) {
      const { above, below } = rule.what
      const threshold = above ?? below ?? 0
      const side = above === undefined ? 'below' : 'above'
      const subjects = toSubjects(rule, context.registry).flatMap((entity) => {
        const row = newest.get(entity?.key ?? NO_ENTITY)
        if (row === undefined) return []
        const [shown, bound] = [formatValue(row.value, unit), formatValue(threshold, unit)]
        return {
          ...toEntityFacts(entity, request),
          ...{ subject: entity?.id ?? '', holds: above === undefined ? row.value < threshold : row.value > threshold },
          ...{ observedAt: row.at, value: row.value, before: null, threshold, unit },
          title: `${entity === null ? '' : `${entity.name}: `}${label} ${side} ${bound}`,
          text: `${label} is ${shown} at ${toTime(row.at)}. The level is ${bound}.`,
        }
      })
      results.set(rule.name, { type: 'state', isComplete: false, subjects })
    }
  }
  return results
}

/** The change of the newest value against the lowest and the highest value of the window, in percent. */
function toMove({ value, low, high }: z.infer<typeof movedRow>, { direction }: RuleOf<'move'>['what']) {
  const up = low > 0 ? { change: (value / low - 1) * 100, before: low } : undefined
  const down = high > 0 ? { change: (value / high - 1) * 100, before: high } : undefined
  if (direction === 'up') return up
  if (direction === 'down' || up === undefined || down === undefined) return down
  return up.change >= -down.change ? up : down
}

const formatDuration = (ms: number) => (ms % DAY_MS === 0 ? `${ms / DAY_MS} d` : `${ms / 3_600_000} h`)

const evaluateMoves: Evaluate<'move'> = async (rules, context) => {
  const results = new Map<string, Result>()
  for (const own of groupBy(rules, ({ what }) => `${what.series} ${what.within}`).values()) {
    const [first] = own
    if (first === undefined) continue
    const moves = await readMoves(
      first.what.series,
      { within: first.what.within, keys: toKeys(own, context.registry) },
      context,
    )
    const { label, unit, request }: Series = SERIES[first.what.series]
    for (const rule of own) {
      const { percent, within } = rule.what
      const subjects = toSubjects(rule, context.registry).flatMap((entity) => {
        const row = moves.get(entity?.key ?? NO_ENTITY)
        const move = row && toMove(row, rule.what)
        if (row === undefined || move === undefined) return []
        const change = `${move.change > 0 ? '+' : ''}${move.change.toFixed(1)} %`
        return {
          ...toEntityFacts(entity, request),
          ...{ subject: entity?.id ?? '', holds: Math.abs(move.change) >= percent },
          ...{ observedAt: row.at, value: row.value, before: move.before, threshold: percent, unit },
          title: `${entity === null ? '' : `${entity.name}: `}${label} ${change} within ${formatDuration(within)}`,
          text: `${label} is ${formatValue(row.value, unit)} at ${toTime(row.at)}, after ${formatValue(move.before, unit)}.`,
        }
      })
      results.set(rule.name, { type: 'state', isComplete: false, subjects })
    }
  }
  return results
}

const listed = z.array(z.object({ _id: z.string(), name: z.string() }))
const problem = z.object({ detail: z.string() })

const LIST_TIMEOUT_MS = 30_000

/** @throws DataError `provider_unavailable` if the API does not answer, `config` if it rejects the filter. */
export async function readList(
  { list, filter }: RuleOf<'list'>['what'],
  apiUrl: string,
  limit?: number,
): Promise<z.infer<typeof listed>> {
  const found: z.infer<typeof listed> = []
  let next: URL | undefined = new URL(list, apiUrl)
  for (const text of filter) next.searchParams.append('filter', text)
  next.searchParams.set('fields', '_id,name')
  if (limit !== undefined) next.searchParams.set('limit', String(limit))
  while (next !== undefined) {
    const { answer, body } = await requestList(next)
    found.push(...listed.parse(body))
    const [, link] = limit === undefined ? (/<([^>]+)>; rel="next"/.exec(answer.headers.get('link') ?? '') ?? []) : []
    next = link === undefined ? undefined : new URL(new URL(link, apiUrl).search, next)
  }
  return found
}

async function requestList(url: URL) {
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(LIST_TIMEOUT_MS) })
    const body: unknown = await answer.json()
    if (answer.status === 400)
      throw new DataError('config', `${url.pathname}: ${problem.safeParse(body).data?.detail ?? 'rejected'}`)
    if (!answer.ok) throw new Error(`status ${answer.status}`)
    return { answer, body }
  } catch (cause) {
    if (cause instanceof DataError) throw cause
    throw new DataError('provider_unavailable', `ALERTS_API_URL: ${url.origin}${url.pathname}: ${toReason(cause)}`, {
      cause,
    })
  }
}

const evaluateLists: Evaluate<'list'> = async (rules, { registry, apiUrl }) => {
  const results = new Map<string, Result>()
  for (const own of groupBy(rules, ({ what }) => JSON.stringify([what.list, what.filter])).values()) {
    const [first] = own
    if (first === undefined) continue
    const records = await readList(first.what, apiUrl)
    const inList = new Set(records.map(({ _id }) => _id))
    const { list, filter } = first.what
    const query = filter.map((text) => `filter=${encodeURIComponent(text)}`).join('&')
    for (const rule of own) {
      const subjects = (findEntities(rule, registry) ?? []).map((entity) => {
        const holds = inList.has(entity.id)
        return {
          ...{ ...NOTHING, ...toEntityFacts(entity, list), request: `${list}?${query}` },
          ...{ subject: entity.id, holds },
          title: `${entity.name}: ${holds ? 'entered' : 'left'} the list of ${LISTS[list].of === 'token' ? 'tokens' : 'DAOs'}`,
          text: `The filter is ${filter.join(' and ')}.`,
        }
      })
      results.set(rule.name, { type: 'state', isComplete: true, subjects })
    }
  }
  return results
}

const timeOrNull = z.int().nullable()
const proposalRow = z.object({
  dao: z.number(),
  space: z.string(),
  proposal: z.string(),
  id: z.string(),
  title: z.string(),
  created: z.int(),
  starts: timeOrNull,
  ends: timeOrNull,
  isSettled: z.boolean(),
  queued: timeOrNull,
  executed: timeOrNull,
  canceled: timeOrNull,
})
type ProposalRow = z.infer<typeof proposalRow>

const seconds = (column: string) => `toInt64(toUnixTimestamp(${column})) * 1000`
const outcome = (kind: string) =>
  `if(countIf(kind = '${kind}') = 0, NULL, maxIf(${seconds('at')}, kind = '${kind}')) AS ${kind}`

/** Proposals with a time since {since}, without deleted and flagged ones. */
const PROPOSALS = `
SELECT p.dao AS dao, p.space AS space, p.proposal AS proposal, p.id AS id, d.title AS title,
  ${seconds('p.created_at')} AS created, ${seconds('d.starts_at')} AS starts, ${seconds('d.ends_at')} AS ends,
  toBool(d.outcome != '' OR d.scores_state NOT IN ('pending', 'invalid')) AS isSettled, e.queued AS queued, e.executed AS executed,
  e.canceled AS canceled
FROM (SELECT dao, space, proposal, id, created_at FROM dao_proposals FINAL WHERE ${isSelected('dao')}) AS p
LEFT JOIN (SELECT * FROM dao_proposal_details FINAL WHERE ${isSelected('dao')}) AS d
  ON d.dao = p.dao AND d.space = p.space AND d.proposal = p.proposal
LEFT JOIN
(
  SELECT dao, space, proposal, ${outcome('queued')}, ${outcome('executed')}, ${outcome('canceled')}
  FROM governor_events FINAL WHERE ${isSelected('dao')} GROUP BY dao, space, proposal
) AS e ON e.dao = p.dao AND e.space = p.space AND e.proposal = p.proposal
WHERE NOT d.is_deleted AND NOT d.is_flagged
  AND greatest(created, ifNull(starts, 0), ifNull(ends, 0), ifNull(queued, 0), ifNull(executed, 0), ifNull(canceled, 0)) >= {since: Int64}`

const voteRow = z.object({ dao: z.number(), space: z.string(), proposal: z.string(), voter: z.string() })
const toVote = ({ dao, space, proposal, voter }: z.infer<typeof voteRow>) => `${dao} ${space} ${proposal} ${voter}`

async function readVotes(rules: readonly RuleOf<'proposal'>[], daos: readonly number[], db: Database) {
  const voters = [...new Set(rules.flatMap(({ what }) => what.unlessVotedBy ?? []))]
  if (voters.length === 0) return new Set<string>()
  const sql = `SELECT DISTINCT dao, space, proposal, voter FROM dao_votes
WHERE ${isSelected('dao')} AND voter IN {voters: Array(String)}`
  const rows = await db.rows({ name: 'alert-votes', sql, params: { ...toSelection(daos), voters }, schema: voteRow })
  return new Set(rows.map(toVote))
}

const PAST_TENSE = {
  created: 'new proposal',
  started: 'vote started',
  ending: 'vote ends soon',
  ended: 'vote ended',
  queued: 'proposal queued',
  executed: 'proposal executed',
  canceled: 'proposal canceled',
} as const

/** When an event of a proposal happened, if it has happened by now. */
function toEventTime(
  row: ProposalRow,
  { on, hours = 0, unlessVotedBy }: RuleOf<'proposal'>['what'],
  votes: ReadonlySet<string>,
  now: number,
): number | null {
  const past = (at: number | null) => (at !== null && at <= now ? at : null)
  if (on === 'created') return row.created
  if (on === 'started') return row.canceled === null ? past(row.starts) : null
  if (on === 'ended') return row.isSettled && row.canceled === null ? past(row.ends) : null
  if (on !== 'ending') return past(row[on])
  const { starts, ends, canceled } = row
  if (starts === null || ends === null || canceled !== null || starts > now || ends <= now) return null
  const hasVoted = unlessVotedBy !== undefined && votes.has(toVote({ ...row, voter: unlessVotedBy }))
  return hasVoted ? null : past(ends - hours * 3_600_000)
}

const evaluateProposals: Evaluate<'proposal'> = async (rules, { db, registry, now }) => {
  const entities = new Map(rules.map((rule) => [rule.name, findEntities(rule, registry) ?? []]))
  const daos = [...new Set([...entities.values()].flatMap((own) => own.map(({ key }) => key)))]
  const params = { ...toSelection(daos), since: now - EVENTS_MS }
  const [proposals, votes] = await Promise.all([
    db.rows({ name: 'alert-proposals', sql: PROPOSALS, params, schema: proposalRow }),
    readVotes(rules, daos, db),
  ])
  const byDao = groupBy(proposals, ({ dao }) => dao)
  return new Map(
    rules.map((rule): [string, Result] => {
      const events = (entities.get(rule.name) ?? []).flatMap((entity) =>
        (byDao.get(entity.key) ?? []).flatMap((row) => {
          const happenedAt = toEventTime(row, rule.what, votes, now)
          if (happenedAt === null) return []
          const isReminder = rule.what.on === 'ending'
          const ends = row.ends === null ? '' : ` The vote ${row.ends > now ? 'ends' : 'ended'} at ${toTime(row.ends)}.`
          return {
            ...NOTHING,
            ...toEntityFacts(entity, '/data/daos/governance/proposals'),
            // A vote that ends after the rule began is worth a reminder, even if its time came before.
            ...{ subject: row.id, at: isReminder ? now : happenedAt, observedAt: happenedAt },
            title: `${entity.name}: ${PAST_TENSE[rule.what.on]}`,
            text: `${row.title || 'A proposal without a title'}.${ends}`,
          }
        }),
      )
      return [rule.name, { type: 'events', events }]
    }),
  )
}

const treasuryRow = z.object({
  dao: z.number(),
  at: z.int(),
  collectedAt: z.int(),
  source: z.string(),
  tokens: z.array(z.tuple([z.string(), z.number(), z.number().nullable()])),
})

/** The largest movement of an asset between two days of a treasury, at the prices of the later day; null without one. */
export function findMovement(
  before: z.infer<typeof treasuryRow>['tokens'],
  after: z.infer<typeof treasuryRow>['tokens'],
  direction: 'in' | 'out' | 'any',
): { readonly symbol: string; readonly usd: number; readonly quantity: number } | null {
  const quantities = new Map<string, { before: number; after: number; price: number | null }>()
  const add = (side: 'before' | 'after', tokens: typeof before) => {
    for (const [symbol, quantity, value] of tokens) {
      const own = quantities.get(symbol) ?? { before: 0, after: 0, price: null }
      const price = value !== null && quantity > 0 ? value / quantity : null
      quantities.set(symbol, { ...own, [side]: own[side] + quantity, price: price ?? own.price })
    }
  }
  add('before', before)
  add('after', after)
  const moves = [...quantities].flatMap(([symbol, own]) => {
    const quantity = own.after - own.before
    const isWanted = direction === 'any' || quantity > 0 === (direction === 'in')
    return own.price === null || quantity === 0 || !isWanted ? [] : { symbol, quantity, usd: quantity * own.price }
  })
  const size = ({ usd }: { readonly usd: number }) => Math.abs(usd)
  return moves.reduce<(typeof moves)[number] | null>(
    (most, one) => (most && size(most) >= size(one) ? most : one),
    null,
  )
}

const TREASURY_WITHIN_MS = 8 * DAY_MS

const evaluateTreasuries: Evaluate<'treasury'> = async (rules, { db, registry, now }) => {
  const rows = await db.rows({
    name: 'alert-treasuries',
    sql: `SELECT dao, toUnixTimestamp64Milli(observed_at) AS at, toUnixTimestamp64Milli(collected_at) AS collectedAt, source,
  arrayMap(token -> tuple(token.1, token.2, token.3), tokens) AS tokens
FROM dao_treasuries FINAL WHERE observed_at >= fromUnixTimestamp64Milli({since: Int64}, 'UTC') ORDER BY dao, observed_at`,
    params: { since: now - TREASURY_WITHIN_MS },
    schema: treasuryRow,
  })
  const byDao = groupBy(rows, ({ dao }) => dao)
  return new Map(
    rules.map((rule): [string, Result] => {
      const { movedUsd, direction } = rule.what
      const events = (findEntities(rule, registry) ?? []).flatMap((entity) => {
        const days = byDao.get(entity.key) ?? []
        return days.flatMap((day, index) => {
          const before = days[index - 1]
          // Two sources count different assets.
          if (before === undefined || before.source !== day.source) return []
          const moved = findMovement(before.tokens, day.tokens, direction)
          if (moved === null || Math.abs(moved.usd) < movedUsd) return []
          const verb = moved.usd > 0 ? 'received' : 'spent'
          return {
            ...toEntityFacts(entity, '/data/daos/treasury/historic'),
            // A back-fill collects earlier days again, which are no news.
            ...{
              subject: `${entity.id} ${day.at}`,
              at: Math.min(day.collectedAt, day.at + DAY_MS),
              observedAt: day.at,
            },
            ...{ value: moved.usd, before: null, threshold: movedUsd, unit: 'USD' },
            title: `${entity.name}: treasury ${verb} ${formatValue(Math.abs(moved.usd), 'USD')} of ${moved.symbol}`,
            text: `${NUMBER.format(Math.abs(moved.quantity))} ${moved.symbol} between ${toTime(before.at)} and ${toTime(day.at)}.`,
          }
        })
      })
      return [rule.name, { type: 'events', events }]
    }),
  )
}

const correctedRow = z.object({
  dataset: z.string(),
  position: z.int(),
  entities: z.int(),
  from: z.int(),
  to: z.int(),
})

async function readCorrected(rules: readonly RuleOf<'dataset'>[], { db, now }: ConditionContext) {
  if (!rules.some(({ what }) => what.is === 'corrected')) return new Map()
  const rows = await db.rows({
    name: 'alert-corrected',
    sql: `SELECT dataset, toUnixTimestamp64Milli(max(changed_at)) AS position, uniqExact(entity) AS entities,
  toUnixTimestamp64Milli(min(begins_at)) AS from, toUnixTimestamp64Milli(max(ends_at)) AS to
FROM history_changes FINAL WHERE changed_at >= fromUnixTimestamp64Milli({since: Int64}, 'UTC') GROUP BY dataset`,
    params: { since: now - DAY_MS },
    schema: correctedRow,
  })
  return new Map(rows.map((row) => [row.dataset, row]))
}

const evaluateDatasets: Evaluate<'dataset'> = async (rules, context) => {
  const { db, registry, now } = context
  const named = new Set(rules.map(({ what }) => what.dataset))
  const watched = datasets.filter(({ name }) => named.has(name))
  const needsShare = rules.some(({ what }) => what.is === 'incomplete')
  const [newest, completeness, corrected] = await Promise.all([
    Promise.all(watched.map(async (dataset) => [dataset.name, await readNewest(db, dataset)] as const)),
    needsShare ? readCompleteness(db, registry, watched, now) : new Map(),
    readCorrected(rules, context),
  ])
  const newestOf = new Map(newest)
  return new Map(
    rules.map((rule): [string, Result] => {
      const { dataset: name, is, below } = rule.what
      const dataset = watched.find((one) => one.name === name)
      const at = newestOf.get(name) ?? null
      const facts = { ...NOTHING, subject: name, request: '/data/status', observedAt: at }
      if (is === 'corrected') {
        const row = corrected.get(name)
        const request = `/data/changes?dataset=${name}`
        const text =
          row &&
          `History of ${row.entities} entities between ${toTime(row.from)} and ${toTime(row.to)} was stored anew.`
        const title = `Dataset ${name}: history was corrected`
        const subjects = row
          ? [{ ...facts, request, title, text, observedAt: row.position, position: row.position }]
          : []
        return [rule.name, { type: 'progress', subjects }]
      }
      const told = at === null ? 'It has no data.' : `Its newest value is of ${toTime(at)}.`
      if (is === 'stale') {
        // An empty dataset was never collected: that is how a service without its key begins.
        const state = toFreshnessState(toLagSeconds(at, now), dataset?.cadence ?? '1d')
        const subject = { ...facts, holds: state === 'stale', title: `Dataset ${name}: stale`, text: told }
        return [rule.name, { type: 'state', isComplete: true, subjects: [subject] }]
      }
      const share = completeness.get(name)?.complete ?? null
      const percent = share === null ? '' : `${Math.floor(share * 1000) / 10} % of the expected data is stored.`
      const subject = {
        ...{ ...facts, holds: share !== null && share < (below ?? 1), value: share, threshold: below ?? null },
        ...{ title: `Dataset ${name}: incomplete`, text: `${percent} ${told}` },
      }
      return [rule.name, { type: 'state', isComplete: share !== null, subjects: share === null ? [] : [subject] }]
    }),
  )
}

const evaluateProviders: Evaluate<'provider'> = async (rules, { db, now }) => {
  const failing = [...(await readFailing(db))].flatMap(([dataset, providers]) =>
    Object.entries(providers).map(([provider, { since, reason }]) => ({
      ...{ dataset, provider, since: Date.parse(since), reason },
    })),
  )
  return new Map(
    rules.map((rule): [string, Result] => {
      const { provider, dataset, failingFor } = rule.what
      const subjects = failing
        .filter((one) => provider === undefined || one.provider === provider)
        .filter((one) => dataset === undefined || one.dataset === dataset)
        .map((one) => ({
          ...{ ...NOTHING, request: '/data/status', subject: `${one.dataset} ${one.provider}` },
          ...{ holds: now - one.since >= failingFor, observedAt: one.since },
          title: `Provider ${one.provider} fails for ${one.dataset}`,
          text: `Since ${toTime(one.since)}: ${one.reason}`,
        }))
      return [rule.name, { type: 'state', isComplete: true, subjects }]
    }),
  )
}

const EVALUATE: { readonly [K in What['kind']]: Evaluate<K> } = {
  level: evaluateLevels,
  move: evaluateMoves,
  list: evaluateLists,
  proposal: evaluateProposals,
  treasury: evaluateTreasuries,
  dataset: evaluateDatasets,
  provider: evaluateProviders,
}

/**
 * Evaluates rules of one kind, by their names.
 * @throws DataError `storage`, and for lists those of `readList`.
 */
export function evaluateConditions(
  kind: What['kind'],
  rules: readonly Rule[],
  context: ConditionContext,
): Promise<ReadonlyMap<string, Result>> {
  const evaluate = EVALUATE[kind] as (rules: readonly Rule[], context: ConditionContext) => ReturnType<Evaluate<'list'>>
  return evaluate(rules, context)
}
