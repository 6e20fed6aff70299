import { daoTreasury, treasurySeries } from '../../shared/datasets/treasury.ts'
import {
  EXACT_QUANTITY,
  exactQuantity,
  FLOW_CHAIN_ID,
  TREASURY_FLOW_VALUES,
  toFlowAssets,
  treasuryFlow,
  treasuryFlows,
  withPrices,
} from '../../shared/datasets/treasury-flows.ts'
import { dailyHolding, selectDailyHoldings, toChainParams } from '../../shared/datasets/treasury-holdings.ts'
import {
  type Columns,
  DAY,
  from,
  MOMENT_FROM,
  type Published,
  publishSeries,
  RANGE,
  toValues,
} from './define-published.ts'

const FLOW_VALUES = { ...TREASURY_FLOW_VALUES, chain: FLOW_CHAIN_ID }
const FLOWS: Columns<typeof FLOW_VALUES> = [
  ['recorded_at', 'recordedAt'],
  ['flow_id', '_id'],
  ['chain_id', 'chain'],
  ['transaction_hash', 'transactionHash'],
  ['wallet', 'wallet'],
  ['direction', 'direction'],
  ['leg', 'leg'],
  ['symbol', 'symbol'],
  ['contract_address', 'contractAddress'],
  ['quantity', 'quantity'],
]
const FLOWS_AFTER_QUANTITY: Columns<typeof FLOW_VALUES> = [
  ['price_usd', 'priceUsd'],
  ['value_usd', 'valueUsd'],
  ['counterparty', 'counterparty'],
  ['counterparty_label', 'counterpartyLabel'],
  ['kind', 'kind'],
  ['rule', 'rule'],
  ['category', 'category'],
  ['proposal_id', 'proposal'],
  ['swap_group', 'swapGroup'],
]
const ANY_DAO = '>= 0'

/** The datasets about treasuries. */
export const treasuryFiles: readonly Published[] = [
  publishSeries(treasurySeries, 'The value of each treasury by day. The same points as /data/daos/treasury/historic.'),
  {
    name: 'treasury-holdings',
    description:
      'The assets of each treasury by day and chain, all addresses added up. The same records as /data/daos/treasury/holdings/historic.',
    of: daoTreasury,
    about: 'dao',
    extent: () => daoTreasury.series,
    params: toChainParams,
    rows: () => `SELECT dao AS key, ${DAY} AS day, symbol, token AS token_id, contract AS contract_address, chain AS chain_id, kind, quantity,
  price_usd, value_usd
FROM (${selectDailyHoldings(`SELECT dao, observed_at, holdings, tokens FROM dao_treasuries FINAL WHERE ${RANGE('observed_at')}`)})`,
    columns: from(dailyHolding, [
      ['day', 'recordedAt'],
      ['symbol', 'symbol'],
      ['token_id', 'token'],
      ['contract_address', 'contractAddress'],
      ['chain_id', 'chain'],
      ['kind', 'kind'],
      ['quantity', 'quantity', 'tokens'],
      ['price_usd', 'priceUsd', 'USD'],
      ['value_usd', 'valueUsd', 'USD'],
    ]),
    order: ['symbol', 'chain_id', 'contract_address', 'quantity'],
  },
  {
    name: 'treasury-flows',
    description:
      'Transfers into and out of each treasury, with their values and kinds, without spam. The same transfers as /data/daos/treasury/flows.',
    of: treasuryFlows,
    about: 'dao',
    extent: () => treasuryFlows.series,
    params: toChainParams,
    rows: () => `SELECT f.dao AS key, ${toValues(FLOW_VALUES, FLOWS)}, ${EXACT_QUANTITY} AS quantity_exact, ${toValues(FLOW_VALUES, FLOWS_AFTER_QUANTITY)}
${withPrices(
  ANY_DAO,
  `SELECT * FROM treasury_flows FINAL WHERE kind != 'spam' AND ${RANGE('recorded_at')}`,
  toFlowAssets(ANY_DAO, RANGE('recorded_at')),
  MOMENT_FROM,
)}`,
    columns: [
      ...from(treasuryFlow, FLOWS),
      { name: 'quantity_exact', description: exactQuantity.description ?? '', unit: 'tokens' },
      ...from(treasuryFlow, FLOWS_AFTER_QUANTITY),
    ],
    order: ['flow_id'],
  },
]
