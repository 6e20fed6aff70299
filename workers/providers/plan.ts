import { DataError } from '../../shared/errors.ts'
import { toId } from '../../shared/ids.ts'
import { type Cadence, INTERVAL_SECONDS } from '../../shared/intervals.ts'
import type { Token } from '../../shared/registry/entities.ts'
import type { Database } from '../../shared/store/store.ts'
import type { Entity, Run } from '../job/define-job.ts'
import { openSlotAllowance, toShare } from '../job/state.ts'
import { orderByMarketCap } from './stored/market-caps.ts'

/** Days of the longest month: a budget spread over them is never exhausted before the month ends. */
const DAYS_PER_MONTH = 31

/** Maximum shares of a day for the newest prices and for links; history gets the rest. */
const SHARES = { latest: 0.9, links: 0.05 }

/** Calls per slot reserved for the newest prices if a plan is large; sufficient for 400 tokens. */
const RESERVED_PER_SLOT = 4

const SLOT_MS = INTERVAL_SECONDS['5m'] * 1000
const SLOTS_PER_DAY = INTERVAL_SECONDS['1d'] / INTERVAL_SECONDS['5m']

/** Daily budget of a monthly plan, in billed units. */
export interface MonthBudget {
  readonly perDay: number
  /** Units for the newest prices of all slots of the day. */
  readonly latestPerDay: number
  /** Units for the links of the day. */
  readonly linksPerDay: number
  /** Units that history may use. */
  readonly historyPerDay: number
}

/**
 * Spreads a month's units over its days, and a day's units over their uses. The newest prices have priority.
 * `historyShare` is the share of any limit that history may use.
 */
export function toMonthBudget(perMonth: number, historyShare: number): MonthBudget {
  const perDay = Math.max(1, Math.floor(perMonth / DAYS_PER_MONTH))
  const latestPerDay = Math.ceil(perDay * SHARES.latest)
  const linksPerDay = Math.floor(perDay * SHARES.links)
  const remaining = perDay - Math.min(latestPerDay, RESERVED_PER_SLOT * SLOTS_PER_DAY) - linksPerDay
  return { perDay, latestPerDay, linksPerDay, historyPerDay: Math.min(remaining, Math.floor(perDay * historyShare)) }
}

/**
 * Returns the calls of one 5-minute slot (Unix milliseconds) if a day's calls are spread evenly. If there are fewer
 * calls than slots, some slots have none.
 */
export function toCallsInSlot(perDay: number, slot: number): number {
  const place = Math.floor(slot / SLOT_MS) % SLOTS_PER_DAY
  const before = (slots: number) => Math.floor((slots * perDay) / SLOTS_PER_DAY)
  return before(place + 1) - before(place)
}

/** Converts the budget to request limits; each request counts with its billed units. */
export function toDayLimit(budget: MonthBudget | undefined, daySetting: string) {
  if (budget === undefined) return {}
  return { requestsPerDay: budget.perDay, historyRequestsPerDay: budget.historyPerDay, daySetting }
}

interface Latest {
  /** The provider's name. */
  readonly name: string
  readonly setting: string
  readonly tokensPerCall: number
  readonly db: Database
}

/**
 * Fetches the newest prices of as many tokens as the slot's calls allow, largest first. The other tokens are refused as
 * `provider_unconfigured` with the setting's name, so that the next provider is queried for them. A retry of a slot has
 * the calls that earlier attempts left; failed attempts used none. Without a budget, all tokens are fetched.
 */
export async function fetchWithinBudget<Row>(
  budget: MonthBudget | undefined,
  tokens: readonly Token[],
  { name, setting, tokensPerCall, db }: Latest,
  run: Pick<Run<unknown, Token>, 'slot' | 'batch' | 'state' | 'refuse'>,
  fetchTokens: (tokens: readonly Token[]) => Promise<Row[]>,
): Promise<Row[]> {
  if (budget === undefined) return fetchTokens(tokens)
  const { slot, batch, state, refuse } = run
  const calls = toShare(toCallsInSlot(budget.latestPerDay, slot), slot, batch)
  const allowance = await openSlotAllowance(state, { name, slot, calls, batch })
  const mostTokens = allowance.remaining() * tokensPerCall
  const isEnough = tokens.length <= mostTokens
  const ordered = isEnough || mostTokens === 0 ? tokens : await orderByMarketCap(db, tokens, slot)
  const message = `${setting} leaves no call for it in these five minutes; larger tokens come first`
  const overBudget = new DataError('provider_unconfigured', message)
  for (const token of ordered.slice(mostTokens)) refuse(token, overBudget)
  const affordable = ordered.slice(0, mostTokens)
  if (affordable.length === 0) return []
  for (let calls = Math.ceil(affordable.length / tokensPerCall); calls > 0; calls -= 1) allowance.take()
  const rows = await fetchTokens(affordable)
  await allowance.save()
  return rows
}

/** @throws DataError `provider_unconfigured` if the budget has no calls for history on any day. */
export function requireHistory(budget: MonthBudget | undefined, setting: string): void {
  if (budget?.historyPerDay === 0) throw new DataError('provider_unconfigured', `${setting} leaves no call for history`)
}

/**
 * Returns the items that are due in a slot (Unix milliseconds) of the cadence, at most `perSlot`, which is at least 1.
 * The rotation depends only on the slot. A slot that is collected again has the same items, and no cursor is stored.
 */
export function toTurn<T>(items: readonly T[], perSlot: number, slot: number, cadence: Cadence): T[] {
  const turns = Math.max(1, Math.ceil(items.length / perSlot))
  const turn = Math.floor(slot / (INTERVAL_SECONDS[cadence] * 1000)) % turns
  return items.filter((_, index) => index % turns === turn)
}

/**
 * Returns the due entities of a run, at most `perSlot` over all batches of its slot, as if the slot were one job. If an
 * earlier provider has answered a due entity, its turn goes to an entity that was passed on, chosen by a hash of the
 * slot and its id.
 */
export function toTurnOfRun<E extends Entity>(
  { entities, peers, passedOn, slot }: Pick<Run<unknown, E>, 'entities' | 'peers' | 'passedOn' | 'slot'>,
  perSlot: number,
  cadence: Cadence,
): E[] {
  const due = new Set(toTurn(peers.all, perSlot, slot, cadence).map(({ key }) => key))
  const isDue = ({ key }: E) => due.has(key)
  const turn = entities.filter(isDue)
  const free = peers.own.filter(isDue).length - turn.length
  const lots = passedOn.filter((entity) => !isDue(entity)).map((entity) => ({ entity, lot: toId(slot, entity.id) }))
  const drawn = lots.sort((a, b) => (a.lot < b.lot ? -1 : 1)).slice(0, free)
  return [...turn, ...drawn.map(({ entity }) => entity)]
}
