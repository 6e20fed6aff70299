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
  /** On the columns of the table that identify a transfer: all versions of a transfer have the same. */
  readonly isInRange: string
  /** On columns that a later version may correct. */
  readonly isSelected: string
  /** SQL of the filter by value, which needs prices; undefined if the query has none. */
  readonly isWorth: string | undefined
  /** Whether the sums of days suffice: they have every column of the conditions and count every selected transfer. */
  readonly isOfDays: boolean
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
  const params: Record<string, unknown> = { from: query.start ?? 0, to: query.end ?? END_OF_TIME }
  const add = (name: string, value: unknown, condition: string, param: unknown = value) => {
    if (value === undefined) return
    conditions.push(condition)
    params[name] = param
  }
  if (spam !== 'true' && kind !== 'spam') conditions.push("kind != 'spam'")
  add('direction', direction, 'direction = {direction: String}')
  add('kind', kind, 'kind = {kind: String}')
  add('category', category, 'category = {category: String}')
  const slugs = chain && [...findSlugs('chain', chain, registry.chains)]
  add('of_chains', slugs, 'has({of_chains: Array(String)}, toString(chain))')
  add('asset', asset, 'contract_address = {asset: String}', asset === NATIVE ? '' : asset)
  add('wallet', wallet, 'wallet = {wallet: String}')
  add('counterparty', counterparty, 'counterparty = {counterparty: String}')
  const isWorth = minUsd === undefined ? undefined : `ifNull(${FLOW_VALUES.valueUsd} >= {min_usd: Float64}, false)`
  if (isWorth !== undefined) params.min_usd = minUsd
  const isOfDays =
    spam !== 'true' &&
    kind !== 'spam' &&
    [query.start, query.end, category, wallet, counterparty, minUsd].every((one) => one === undefined)
  const isSelected = conditions.join(' AND ') || 'true'
  return { isInRange: isWithin('recorded_at'), isSelected, isWorth, isOfDays, params }
}

/** SQL for all selected transfers, as `fromFlows`. */
export const fromSelection = ({ isInRange, isSelected, isWorth }: FlowSelection): string =>
  `${fromFlows('= {dao: UInt64}', `${isInRange} AND ${isSelected}`)}${isWorth === undefined ? '' : `\nWHERE ${isWorth}`}`

/** SQL for the number of selected transfers. */
export const toCountSql = (selection: FlowSelection): string => {
  const { isInRange, isSelected, isWorth, isOfDays } = selection
  if (isOfDays) return `SELECT sum(transfers) AS total FROM (${toFlowDays('dao = {dao: UInt64}')}) WHERE ${isSelected}`
  return isWorth === undefined
    ? `SELECT count() AS total FROM treasury_flows FINAL WHERE dao = {dao: UInt64} AND ${isInRange} AND ${isSelected}`
    : `SELECT count() AS total ${fromSelection(selection)}`
}

/** The range of a query whose later pages begin at a time, newest first. */
export const upTo = (selection: FlowSelection, last: number): FlowSelection => {
  const { from, to } = selection.params as unknown as TimeRange
  return { ...selection, params: { ...selection.params, from, to: Math.min(to, last + 1) } }
}
