import { DataError } from '../../shared/errors.ts'
import { INTERVAL_SECONDS } from '../../shared/intervals.ts'
import type { Token } from '../../shared/registry/entities.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import { openSlotAllowance, toShare } from '../job/allowance.ts'
import type { Run } from '../job/define-job.ts'
import { orderByMarketCap } from './stored/market-caps.ts'

/** Of the longest month: what is spread over so many days is never used up before the month is over. */
const DAYS_PER_MONTH = 31

/** Parts of a day for the newest prices and for links, at most; history has what they leave. */
const SHARES = { latest: 0.9, links: 0.05 }

/** What is kept for the newest prices where a plan has plenty: calls of a slot, which do for four hundred tokens. */
const RESERVED_PER_SLOT = 4

const SLOT_MS = INTERVAL_SECONDS['5m'] * 1000
const SLOTS_PER_DAY = INTERVAL_SECONDS['1d'] / INTERVAL_SECONDS['5m']

/** What a plan that counts by the month has for a day, in the units that it bills. */
export interface MonthBudget {
  readonly perDay: number
  /** For the newest prices of all slots of the day. */
  readonly latestPerDay: number
  /** For the links of that day. */
  readonly linksPerDay: number
  /** What history may use. */
  readonly historyPerDay: number
}

/**
 * Spreads a month's units over its days, and a day's over what they are for. The newest prices are the most useful.
 * `historyShare` is the part of any limit that history may use.
 */
export function toMonthBudget(perMonth: number, historyShare: number): MonthBudget {
  const perDay = Math.max(1, Math.floor(perMonth / DAYS_PER_MONTH))
  const latestPerDay = Math.ceil(perDay * SHARES.latest)
  const linksPerDay = Math.floor(perDay * SHARES.links)
  const left = perDay - Math.min(latestPerDay, RESERVED_PER_SLOT * SLOTS_PER_DAY) - linksPerDay
  return { perDay, latestPerDay, linksPerDay, historyPerDay: Math.min(left, Math.floor(perDay * historyShare)) }
}

/**
 * How many of a day's calls are those of one 5-minute slot (Unix milliseconds), so that they are spread evenly over the
 * day. Where there are fewer than slots, some slots have none.
 */
export function toCallsInSlot(perDay: number, slot: number): number {
  const place = Math.floor(slot / SLOT_MS) % SLOTS_PER_DAY
  const before = (slots: number) => Math.floor((slots * perDay) / SLOTS_PER_DAY)
  return before(place + 1) - before(place)
}

/** The budget as limits of requests, each of which counts as many units as it is billed. */
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
 * Asks for the newest prices of the tokens that the calls of a slot do for, the largest first. The others are refused as
 * `provider_unconfigured`, naming the setting, so that the next provider is asked about them. A slot that is tried again has
 * what its earlier tries left, of which those that failed took nothing. Without a budget all are asked for.
 */
export async function askWithinBudget<Row>(
  budget: MonthBudget | undefined,
  tokens: readonly Token[],
  { name, setting, tokensPerCall, db }: Latest,
  run: Pick<Run<unknown, Token>, 'slot' | 'piece' | 'state' | 'refuse'>,
  ask: (tokens: readonly Token[]) => Promise<Row[]>,
): Promise<Row[]> {
  if (budget === undefined) return ask(tokens)
  const { slot, piece, state, refuse } = run
  const calls = toShare(toCallsInSlot(budget.latestPerDay, slot), slot, piece)
  const allowance = await openSlotAllowance(state, { name, slot, calls, piece })
  const mostTokens = allowance.left() * tokensPerCall
  const isEnough = tokens.length <= mostTokens
  const ordered = isEnough || mostTokens === 0 ? tokens : await orderByMarketCap(db, tokens, slot)
  const message = `${setting} leaves no call for it in these five minutes; larger tokens come first`
  const overBudget = new DataError('provider_unconfigured', message)
  for (const token of ordered.slice(mostTokens)) refuse(token, overBudget)
  const affordable = ordered.slice(0, mostTokens)
  if (affordable.length === 0) return []
  for (let calls = Math.ceil(affordable.length / tokensPerCall); calls > 0; calls -= 1) allowance.take()
  const rows = await ask(affordable)
  await allowance.save()
  return rows
}

/** @throws DataError `provider_unconfigured` where the budget has nothing for history on any day. */
export function requireHistory(budget: MonthBudget | undefined, setting: string): void {
  if (budget?.historyPerDay === 0) throw new DataError('provider_unconfigured', `${setting} leaves no call for history`)
}
