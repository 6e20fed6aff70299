import { z } from 'zod'
import { FLOW_KINDS } from '../../../../../shared/datasets/treasury-flows.ts'
import { DAY_MS, EARLIEST_MS, toBucketStart } from '../../../../../shared/intervals.ts'
import { idValue, numberIn, timeValue, uint32, usd } from '../../../../../shared/record-values.ts'
import type { Registry } from '../../../../../shared/registry/registry.ts'
import { readBalances } from '../../../../flows/balances.ts'
import { FLOW_SOURCES, loadFlows } from '../../../../flows/day-flows.ts'
import { findReadEnd } from '../../../../flows/read-days.ts'
import { type ReconciledSum, reconcile } from '../../../../flows/reconcile.ts'
import { checkFlowRange, rangeParameters } from '../../../../flows/selection.ts'
import {
  FLOW_GROUPS,
  FLOW_INTERVALS,
  sumFlows,
  toFlowBucket,
  toFlowBucketEnd,
  toFlowRange,
} from '../../../../flows/sums.ts'
import { LIST_HEADERS } from '../../../../http/headers.ts'
import { answerComputed, EVERYTHING } from '../../../../lists/lists.ts'
import { oneOf, page } from '../../../../parameters/kinds.ts'
import { toQuestions } from '../../../../parameters/questions.ts'
import { VALUES_PER_LIST } from '../../../../route/cost.ts'
import { defineRoute } from '../../../../route/define-route.ts'
import { treasuryDaoKind } from '../../../../route/entities.ts'
import { order } from '../../../../series/series.ts'

const quantityOf = (what: string) =>
  numberIn('tokens').nullable().describe(`${what} quantity of the asset; null unless \`by=asset\`.`)
const usdOf = (what: string) =>
  usd
    .nullable()
    .describe(`${what} value in US dollars of the transfers with a price; null if none of the transfers has one.`)

const record = z
  .strictObject({
    recordedAt: timeValue.describe('The first moment of the bucket, in UTC.'),
    kind: z.enum(FLOW_KINDS).nullable().describe('Kind of the transfers; null unless `by=kind`.'),
    symbol: z.string().nullable().describe('Symbol of the asset; null unless `by=asset`.'),
    contractAddress: z
      .string()
      .nullable()
      .describe('Contract of the asset; null for the native coin of the chain, and unless `by=asset`.'),
    chain: idValue.nullable().describe('Id of the chain of the asset; null unless `by=asset`.'),
    inQuantity: quantityOf('Received'),
    outQuantity: quantityOf('Spent'),
    netQuantity: quantityOf('Received minus spent'),
    inUsd: usdOf('Received'),
    outUsd: usdOf('Spent'),
    netUsd: usd.nullable().describe('`inUsd` minus `outUsd`; null if either is unknown.'),
    transfers: uint32.describe('Number of transfers.'),
    transfersWithoutPrice: uint32.describe('Number of transfers without a price, whose value is not in the sums.'),
    unexplainedQuantity: numberIn('tokens')
      .nullable()
      .describe(
        "Change of the stored balance from the start of the bucket to its end that these transfers do not explain: a missing transfer, interest of a rebasing token, or a holding that was read some time after the start of its day. Null unless `by=asset`, if a balance or the end of the bucket isn't known, and if another source reported the second balance.",
      ),
  })
  .meta({ id: 'TreasuryFlowSum', description: 'Transfers of a treasury in one bucket.' })

const questions = toQuestions(record)

type FlowRecord = z.infer<typeof record>

const toRecord = (
  { at, asset, ...sum }: ReconciledSum,
  by: (typeof FLOW_GROUPS)[number],
  { chainBySlug }: Pick<Registry, 'chainBySlug'>,
): FlowRecord => {
  const quantity = (value: number | null) => (by === 'asset' ? value : null)
  return {
    recordedAt: new Date(at).toISOString(),
    kind: sum.kind,
    symbol: asset?.symbol ?? null,
    contractAddress: asset?.contract || null,
    chain: asset === null ? null : (chainBySlug.get(asset.chain)?.id ?? null),
    inQuantity: quantity(sum.inQuantity),
    outQuantity: quantity(sum.outQuantity),
    netQuantity: quantity(sum.netQuantity),
    ...{ inUsd: sum.inUsd, outUsd: sum.outUsd, netUsd: sum.netUsd },
    ...{ transfers: sum.transfers, transfersWithoutPrice: sum.transfersWithoutPrice },
    unexplainedQuantity: sum.unexplainedQuantity,
  }
}

export const treasuryFlowsHistoricRoute = defineRoute({
  operation: 'getDaoTreasuryFlowHistory',
  path: '/data/daos/treasury/flows/historic',
  tag: 'DAOs',
  summary: 'Income and spending of the treasury of a DAO over time',
  description:
    'Sums of the transfers into and out of the treasury by day, week or UTC month, newest bucket first, or with `order=asc` oldest first; buckets without a transfer are absent. With `by=kind` a bucket has a record for each kind, with `by=asset` one for each asset. Spam is never counted. Transfers between addresses of the DAO are counted with `by=kind` only, on both sides. Swaps are not in the total. With `by=asset`, buckets are also listed if the stored balance changed without a transfer. `limit` is in records.',
  one: treasuryDaoKind,
  query: {
    ...rangeParameters,
    interval: oneOf(FLOW_INTERVALS, 'Length of a bucket: a day, a week from Monday on, or a UTC month.', '1M').default(
      '1d',
    ),
    by: oneOf(FLOW_GROUPS, 'One record per bucket, or one for each kind or asset.', 'kind').default('total'),
    order: order('desc'),
    ...page('records', { default: 1_000, max: 10_000 }),
  },
  record,
  estimateValues: () => VALUES_PER_LIST,
  datasets: FLOW_SOURCES,
  headers: LIST_HEADERS,
  handle: async (call) => {
    const { query, found: dao, registry, now } = call
    checkFlowRange(query)
    const { interval, by } = query
    const isOpen = query.end === undefined || query.end > now()
    const until = isOpen ? toFlowBucketEnd(toFlowBucket(now(), interval), interval) : (query.end ?? 0)
    const range = toFlowRange({ from: query.start ?? EARLIEST_MS, to: until }, interval)
    const [flows, readEnd, balances] = await Promise.all([
      loadFlows(call, dao.key),
      isOpen ? findReadEnd(call, dao.key, now()) : undefined,
      // The last bucket ends with the balance at its end.
      by === 'asset' ? readBalances(call.db, dao, { from: range.from, to: range.to + 1 }) : undefined,
    ])
    const sums = sumFlows(flows, { by, interval, range })
    const all =
      balances === undefined
        ? sums.map((sum) => ({ ...sum, unexplainedQuantity: null }))
        : reconcile(sums, balances, { interval, range })
    const newest = all.at(-1)?.at ?? null
    const records = all.map((sum) => toRecord(sum, by, registry))
    const sort = questions.toSort(query.order === 'asc' ? 'recordedAt' : '-recordedAt')
    const answer = await answerComputed(
      call,
      { name: 'treasury-flows-historic', records, asOf: readEnd ?? newest },
      { selection: EVERYTHING, sort, filters: [], limit: query.limit },
    )
    return isOpen ? { ...answer, expiresAt: toBucketStart(now(), '1d') + DAY_MS } : { ...answer, staleAt: null }
  },
})
