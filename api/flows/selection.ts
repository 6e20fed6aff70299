import { z } from 'zod'
import {
  FLOW_CHAIN_ID,
  FLOW_DIRECTIONS,
  FLOW_KINDS,
  type FlowDirection,
  type FlowKind,
  fromFlows,
  MOST_LABEL,
  TREASURY_FLOW_VALUES,
  toFlowDays,
} from '../../shared/datasets/treasury-flows.ts'
import { toChainParams } from '../../shared/datasets/treasury-holdings.ts'
import { END_OF_TIME, isWithin, type TimeRange } from '../../shared/intervals.ts'
import type { Dao } from '../../shared/registry/entities.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import { account, manyReferences, oneOf, time } from '../parameters/kinds.ts'
import { Problem } from '../problem/problem.ts'
import { findSlugs } from '../route/entities.ts'

/** The word for the native coin of a chain, in place of a contract. */
const NATIVE = 'native'

const minUsdRule = 'must be a number of US dollars, at least 0'

/** The range of transfers. */
export const rangeParameters = {
  start: time('First moment, inclusive; default: the first transfer.', '2026-01-01').optional(),
  end: time('Last moment, exclusive; default: now.', '2026-02-01').optional(),
}

/** The filters on transfers. */
export const filterParameters = {
  direction: oneOf(FLOW_DIRECTIONS, 'Only transfers of this direction.', 'out').optional(),
  kind: oneOf(FLOW_KINDS, 'Only transfers of this kind.', 'spending').optional(),
  category: z
    .string()
    .max(MOST_LABEL, `must have at most ${MOST_LABEL} characters`)
    .optional()
    .meta({ description: "Only transfers of this category of the operator's file.", examples: ['grants'] }),
  chain: manyReferences('chain', 'chains', 'ethereum'),
  asset: z
    .string()
    .toLowerCase()
    .regex(/^(native|0x[0-9a-f]{40})$/, 'must be the address of a contract, or native')
    .optional()
    .meta({
      description: 'Only transfers of this asset: the address of its contract, or `native` for coins of chains.',
      examples: [NATIVE],
    }),
  wallet: account('Only transfers of this address of the treasury.').optional(),
  counterparty: account('Only transfers with this other address.').optional(),
  minUsd: z.coerce
    .number(minUsdRule)
    .min(0, minUsdRule)
    .max(1e15, minUsdRule)
    .optional()
    .meta({
      description: 'Only transfers of at least this value in US dollars; those without a price have none.',
      examples: [100_000],
    }),
  spam: oneOf(
    ['true', 'false'],
    'With `true`, also spam: transfers of quantity 0, and unsolicited ones of tokens without a price.',
    'true',
  ).optional(),
}

/** @throws Problem `invalid_parameter` for an empty range. */
export function checkFlowRange({ start, end }: { start?: number | undefined; end?: number | undefined }): void {
  if (start === undefined || end === undefined || start < end) return
  throw new Problem('invalid_parameter', 'end must be after start.', { param: 'end' })
}

/** The parsed filters of a request. */
export interface FlowQuery {
  readonly start?: number | undefined
  readonly end?: number | undefined
  readonly direction?: FlowDirection | undefined
  readonly kind?: FlowKind | undefined
  readonly category?: string | undefined
  readonly chain?: readonly string[] | undefined
  readonly asset?: string | undefined
  readonly wallet?: string | undefined
  readonly counterparty?: string | undefined
  readonly minUsd?: number | undefined
  readonly spam?: 'true' | 'false' | undefined
}

/** SQL conditions that select transfers, and their parameters. */
export interface FlowSelection {
  /**
   * On the columns of the sorting key, which all versions of a transfer have in common: whether the transfer can be
   * selected. ClickHouse skips the granules without such transfers.
   */
  readonly isPossible: string
  /** On columns that a later version may correct. */
  readonly isSelected: string
  /** SQL of the filter by value, which needs prices; undefined if the query has none. */
  readonly isWorth: string | undefined
  /** Whether the sums of days have every column of the conditions, so that they count the selected transfers of a day. */
  readonly isCounted: boolean
  /** Whether the sums of days suffice for the number of all selected transfers. */
  readonly isOfDays: boolean
  /** On the columns of the sums of days; undefined if the query has no filter on them, or includes spam. */
  readonly isOnDay: string | undefined
  readonly params: Readonly<Record<string, unknown>>
}

/** SQL of the members that need chains or the DAO as the API names them; parameters of `toFlowParams`. */
export const FLOW_VALUES = {
  ...TREASURY_FLOW_VALUES,
  dao: '{id: String}',
  chain: FLOW_CHAIN_ID,
}

/** The parameters of `FLOW_VALUES`. */
export const toFlowParams = (dao: Dao, registry: Registry) => ({
  ...{ dao: dao.key, id: dao.id },
  ...toChainParams(registry),
})

/** The filters as SQL. Without `spam`, spam is excluded unless the kind selects it. */
export function selectFlows(query: FlowQuery, registry: Registry): FlowSelection {
  checkFlowRange(query)
  const { direction, kind, category, chain, asset, wallet, counterparty, minUsd, spam } = query
  const conditions: string[] = []
  const ofKey = [isWithin('recorded_at')]
  const ofDay: string[] = []
  const params: Record<string, unknown> = { from: query.start ?? 0, to: query.end ?? END_OF_TIME }
  const add = (name: string, value: unknown, condition: string, others: readonly string[][] = []) => {
    if (value === undefined) return
    for (const list of [conditions, ...others]) list.push(condition)
    params[name] = value
  }
  const hasSpam = spam === 'true' || kind === 'spam'
  if (!hasSpam) conditions.push("kind != 'spam'")
  const ofChains = 'has({of_chains: Array(String)}, toString(chain))'
  add('direction', direction, 'direction = {direction: String}', [ofDay])
  add('kind', kind, 'kind = {kind: String}', [ofDay])
  add('category', category, 'category = {category: String}')
  add('of_chains', chain && [...findSlugs('chain', chain, registry.chains)], ofChains, [ofDay, ofKey])
  add('asset', asset === NATIVE ? '' : asset, 'contract_address = {asset: String}', [ofDay, ofKey])
  for (const [name, address] of Object.entries({ wallet, counterparty })) {
    add(name, address, `${name} = {${name}: String}`)
    if (address !== undefined) ofKey.push(`has([sender, recipient], {${name}: String})`)
  }
  const isWorth = minUsd === undefined ? undefined : `ifNull(${FLOW_VALUES.valueUsd} >= {min_usd: Float64}, false)`
  if (isWorth !== undefined) params.min_usd = minUsd
  const isCounted = !hasSpam && [category, wallet, counterparty, minUsd].every((one) => one === undefined)
  const isOfDays = isCounted && query.start === undefined && query.end === undefined
  return {
    isPossible: ofKey.join(' AND '),
    isSelected: conditions.join(' AND ') || 'true',
    isOnDay: hasSpam || ofDay.length === 0 ? undefined : ofDay.join(' AND '),
    ...{ isWorth, isCounted, isOfDays, params },
  }
}

/** SQL for all selected transfers, as `fromFlows`. */
export const fromSelection = ({ isPossible, isSelected, isWorth }: FlowSelection): string =>
  `${fromFlows('= {dao: UInt64}', `${isPossible} AND ${isSelected}`)}${isWorth === undefined ? '' : `\nWHERE ${isWorth}`}`

/** SQL for the number of selected transfers. */
export const toCountSql = (selection: FlowSelection): string => {
  const { isPossible, isSelected, isWorth, isOfDays } = selection
  if (isOfDays) return `SELECT sum(transfers) AS total FROM (${toFlowDays('dao = {dao: UInt64}')}) WHERE ${isSelected}`
  return isWorth === undefined
    ? `SELECT count() AS total FROM treasury_flows FINAL WHERE dao = {dao: UInt64} AND ${isPossible} AND ${isSelected}`
    : `SELECT count() AS total ${fromSelection(selection)}`
}

/** The range of a query whose later pages begin at a time, newest first. */
export const upTo = (selection: FlowSelection, last: number): FlowSelection => {
  const { from, to } = selection.params as unknown as TimeRange
  return { ...selection, params: { ...selection.params, from, to: Math.min(to, last + 1) } }
}
