import { z } from 'zod'
import { toIdSql } from '../ids.ts'
import { idValue, numberIn, timeValue, usd } from '../record-values.ts'
import type { Treasury } from '../registry/entities.ts'
import { defineDataset } from './define-dataset.ts'
import { toDecimalText } from './governance-records.ts'
import { MOST_SYMBOL } from './treasury.ts'

export const FLOW_DIRECTIONS = ['in', 'out', 'internal', 'swap'] as const
export const FLOW_KINDS = ['spam', 'internal', 'swap', 'investment', 'mint', 'burn', 'income', 'spending'] as const
/** The side of a leg of a swap. */
const FLOW_LEGS = ['in', 'out'] as const

export type FlowDirection = (typeof FLOW_DIRECTIONS)[number]
export type FlowKind = (typeof FLOW_KINDS)[number]

const address = z.string().regex(/^0x[0-9a-f]{40}$/, 'must be a lower-case address')
const hash = z.string().regex(/^0x[0-9a-f]{64}$/, 'must be a lower-case transaction hash')
/** The longest label or category of the operator's file, in UTF-16 code units. */
export const MOST_LABEL = 200
const label = z.string().max(MOST_LABEL)

/**
 * A transfer of a native coin or token into or out of a treasury of a DAO. Chain, transaction, asset, sender, recipient,
 * `base_units` and `occurrence` identify it: `occurrence` numbers equal transfers of a transaction from 0 on. An empty
 * `contract_address` is the native coin. `wallet` is the DAO's address, the paying one of an internal transfer.
 */
export const treasuryFlowRow = z.strictObject({
  dao: z.int().nonnegative(),
  recorded_at: z.iso.datetime(),
  chain: z.string().min(1),
  block_number: z.int().nonnegative(),
  transaction_hash: hash,
  contract_address: z.union([address, z.literal('')]),
  sender: address,
  recipient: address,
  base_units: z.string().regex(/^\d{1,78}$/),
  occurrence: z.int().nonnegative().max(0xffff_ffff),
  symbol: z.string().max(MOST_SYMBOL),
  decimals: z.int().min(0).max(77).nullable(),
  wallet: address,
  counterparty: address,
  counterparty_label: label,
  direction: z.enum(FLOW_DIRECTIONS),
  leg: z.union([z.enum(FLOW_LEGS), z.literal('')]),
  kind: z.enum(FLOW_KINDS),
  rule: z.string().min(1),
  category: label,
  swap_group: z.union([idValue, z.literal('')]),
  /** Name of the source of the transfer. */
  provider: z.string().min(1),
})

export type TreasuryFlowRow = z.infer<typeof treasuryFlowRow>

/** Whether an address is a wallet on an EVM chain: not a contract with revenue, and not a payee. */
export const isWallet = ({ address, role = 'wallet' }: Treasury): boolean =>
  role === 'wallet' && /^0x[0-9a-f]{40}$/.test(address)

/**
 * The sums of each day that the inserted rows touch, and of those days of the read DAOs whose stored sums are not those of
 * their transfers: a killed run or a process of an older version may have inserted transfers without their sums. Only days
 * with transfers from runs that started within 7 days before the slot or 2 days after it are compared.
 */
const TREASURY_FLOW_DAYS = `
INSERT INTO treasury_flow_days (dao, day, sums, version)
SELECT dao, day,
  arraySort(groupArrayIf(tuple(chain, contract_address, kind, direction, leg, symbol, decimals, base_units, transfers, last_at), kind != 'spam')) AS sums,
  bitShiftLeft(toUInt128(sum(transfers)), 64) + toUInt128(sum(collected)) AS version
FROM
(
  SELECT f.dao AS dao, toDate(f.recorded_at) AS day, toString(f.kind) AS kind, toString(f.direction) AS direction, toString(f.leg) AS leg,
    if(f.kind = 'spam', '', toString(f.chain)) AS chain, if(f.kind = 'spam', '', f.contract_address) AS contract_address,
    argMax(f.symbol, f.recorded_at) AS symbol, max(f.decimals) AS decimals, sum(f.base_units) AS base_units, count() AS transfers,
    max(f.recorded_at) AS last_at, sum(toUnixTimestamp64Milli(f.collected_at)) AS collected,
    max(f.dao IN {entities: Array(UInt64)} AND f.recorded_at >= {from: DateTime64(3, 'UTC')} AND f.recorded_at <= {to: DateTime64(3, 'UTC')}) AS is_touched
  FROM treasury_flows AS f FINAL
  WHERE (f.dao, toDate(f.recorded_at)) IN
    (
      SELECT dao, toDate(recorded_at) FROM treasury_flows WHERE dao IN {read: Array(UInt64)}
        AND collected_at >= {slot: DateTime64(3, 'UTC')} - INTERVAL 7 DAY AND collected_at < {slot: DateTime64(3, 'UTC')} + INTERVAL 2 DAY
    )
    OR (f.dao IN {entities: Array(UInt64)}
    AND f.recorded_at >= toStartOfDay({from: DateTime64(3, 'UTC')}) AND f.recorded_at < toStartOfDay({to: DateTime64(3, 'UTC')}) + INTERVAL 1 DAY)
  GROUP BY dao, day, kind, direction, leg, chain, contract_address
)
GROUP BY dao, day
HAVING max(is_touched) OR (dao, day, version) NOT IN (SELECT dao, day, version FROM treasury_flow_days FINAL)`

/**
 * SQL for the sums of transfers by day, without spam: `dao`, `day` and the members of an element. `isWanted` is a condition
 * on `dao` and `day`.
 */
export const toFlowDays = (isWanted: string): string => `
  SELECT dao, day, one.chain AS chain, one.contract_address AS contract_address, one.kind AS kind, one.direction AS direction, one.leg AS leg,
    one.symbol AS symbol, one.decimals AS decimals, one.base_units AS base_units, one.transfers AS transfers, one.last_at AS last_at
  FROM (SELECT dao, day, sums FROM treasury_flow_days FINAL WHERE ${isWanted}) ARRAY JOIN sums AS one`

/** Transfers into and out of the treasuries of every live DAO with a wallet. */
export const treasuryFlows = defineDataset({
  name: 'treasury-flows',
  title: 'Treasury transfers',
  cadence: '1d',
  table: 'treasury_flows',
  row: treasuryFlowRow,
  entities: ({ daos }) => daos.filter(({ live, treasuries }) => live && treasuries.some(isWallet)),
  needsDaos: true,
  entity: 'dao',
  isCollected: true,
  resumes: true,
  hasHistory: true,
  derive: [{ name: 'treasury-flow-days', sql: TREASURY_FLOW_DAYS, isFull: true }],
  series: { table: 'treasury_flows', entity: 'dao', time: 'recorded_at', source: 'provider' },
})

const place = z.string()

/** A transfer (docs/contract.md, section 4). */
export const treasuryFlow = z
  .strictObject({
    _id: idValue.describe('Id of the transfer.'),
    dao: idValue.describe('Id of the DAO.'),
    recordedAt: timeValue.describe('Time of the block that holds the transfer.'),
    chain: idValue.describe('Id of the chain.'),
    transactionHash: place.describe('Hash of the transaction, which may hold several transfers.'),
    wallet: place.describe('Address of the treasury, in lower case; the paying one of an internal transfer.'),
    direction: z
      .enum(FLOW_DIRECTIONS)
      .describe('Into or out of the treasury, between addresses of the DAO (`internal`), or part of a `swap`.'),
    leg: z.enum(FLOW_LEGS).nullable().describe('Side of a transfer that is part of a swap; otherwise null.'),
    symbol: z.string().describe('Symbol of the asset, as its contract has it: anyone can choose one. May be empty.'),
    contractAddress: place
      .nullable()
      .describe('Contract of the asset, in lower case; null for the native coin of the chain.'),
    quantity: numberIn('tokens')
      .nullable()
      .describe('Transferred quantity, always positive; null if the contract has no decimals.'),
    priceUsd: usd
      .nullable()
      .describe('Stored price of the asset on the day of the transfer, in US dollars; null if there is none.'),
    valueUsd: usd.nullable().describe('Quantity times `priceUsd`, in US dollars; null if either is unknown.'),
    counterparty: place.describe('The other address, in lower case; the receiving one of an internal transfer.'),
    counterpartyLabel: z.string().nullable().describe('Name of the other address; null if it is unknown.'),
    kind: z
      .enum(FLOW_KINDS)
      .describe(
        '`internal` between addresses of the DAO, `swap` of assets in one transaction, `investment` into or out of a protocol or wrapper, `mint` from or `burn` to nobody, else `income` or `spending`; `spam` if it is unsolicited.',
      ),
    category: z.string().nullable().describe("Category in the operator's file of counterparties; null if it has none."),
    rule: z.string().describe('The rule that decided `kind`.'),
    proposal: idValue
      .nullable()
      .describe('Id of the proposal on a governor that was executed in this transaction; null if none is known.'),
    swapGroup: idValue
      .nullable()
      .describe('The same for all parts of a swap of one wallet in one transaction; otherwise null.'),
  })
  .meta({ id: 'TreasuryFlow', description: 'A transfer into or out of a treasury of a DAO.' })

/** The quantity with all digits, for `exact=true`. */
export const exactQuantity = z
  .string()
  .nullable()
  .describe('Transferred quantity with all digits, as a decimal text; null if the contract has no decimals.')

/** SQL of a quantity as a number. */
const QUANTITY = "toFloat64OrNull(concat(toString(f.base_units), 'e-', toString(f.decimals)))"

/** SQL of the members of a transfer, from a row of `fromFlows`. `dao` is the key of the DAO. */
export const TREASURY_FLOW_VALUES = {
  _id: toIdSql(
    "'treasury-flow'",
    'f.dao',
    'f.chain',
    'f.transaction_hash',
    'f.contract_address',
    'f.sender',
    'f.recipient',
    'f.base_units',
    'f.occurrence',
  ),
  dao: 'f.dao',
  recordedAt: 'f.recorded_at',
  chain: 'toString(f.chain)',
  transactionHash: 'f.transaction_hash',
  wallet: 'f.wallet',
  direction: 'toString(f.direction)',
  leg: "nullIf(toString(f.leg), '')",
  symbol: 'f.symbol',
  contractAddress: "nullIf(f.contract_address, '')",
  quantity: QUANTITY,
  priceUsd: 'p.price_usd',
  valueUsd: `${QUANTITY} * p.price_usd`,
  counterparty: 'f.counterparty',
  counterpartyLabel: "nullIf(f.counterparty_label, '')",
  kind: 'toString(f.kind)',
  category: "nullIf(toString(f.category), '')",
  rule: 'toString(f.rule)',
  proposal: "nullIf(x.proposal_id, '')",
  swapGroup: "nullIf(f.swap_group, '')",
} as const satisfies Readonly<Record<keyof typeof treasuryFlow.shape, string>>

/** SQL for the id of the chain of a transfer; parameters of `toChainParams`. */
export const FLOW_CHAIN_ID = "transform(toString(f.chain), {chains: Array(String)}, {chain_ids: Array(String)}, '')"

/** SQL of `exactQuantity`. */
export const EXACT_QUANTITY = `if(isNull(f.decimals), NULL, ${toDecimalText('f.base_units', 'assumeNotNull(f.decimals)')})`

/** SQL for the key of the registry's token with this contract, like `toKey(toId('token', chain, contract))`. */
const TOKEN_KEY = `bitShiftRight(reinterpretAsUInt64(reverse(substring(SHA256(concat('token\\x1f', toString(chain), '\\x1f', contract_address)), 1, 8))), 12)`

/** SQL for the assets of selected transfers: `chain` and `contract_address`. */
export const toFlowAssets = (isOwner: string, isInRange = 'true'): string =>
  `SELECT DISTINCT toString(chain) AS chain, contract_address FROM treasury_flows WHERE dao ${isOwner} AND ${isInRange} AND kind != 'spam'`

/**
 * SQL for the prices of assets, which `assets` selects, on UTC days: `chain`, `contract_address`, `day` and `price_usd`, the
 * first observation of each day. Tokens of the registry have the stored series of their contract; other assets have
 * the price with which treasuries of that day were valued. Values are computed from it in each answer, so a corrected
 * price corrects them. `since` is SQL of a moment: days before it are not read.
 */
export const toDayPrices = (assets: string, since = 'toDateTime(0)'): string => `
  SELECT chain, contract_address, day, toNullable(argMin(price, place)) AS price_usd FROM
  (
    SELECT a.chain AS chain, a.contract_address AS contract_address, toDate(r.bucket_at) AS day, r.price AS price, 1 AS place
    FROM (SELECT chain, contract_address, ${TOKEN_KEY} AS token FROM (${assets})) AS a
    INNER JOIN
    (
      SELECT token, bucket_at, price FROM token_price_rollups FINAL
      WHERE interval_seconds = 86400 AND token IN (SELECT ${TOKEN_KEY} FROM (${assets})) AND bucket_at >= toStartOfDay(toDateTime(${since}, 'UTC'), 'UTC')
    ) AS r ON r.token = a.token
    UNION ALL
    SELECT toString(h.chain) AS chain, h.contract_address, h.day, quantileExact(0.5)(h.price_usd), 2 FROM holding_prices AS h FINAL
    WHERE (h.contract_address, toString(h.chain)) IN (SELECT contract_address, chain FROM (${assets})) AND h.day >= toDate(${since}, 'UTC')
    GROUP BY h.chain, h.contract_address, h.day
  )
  GROUP BY chain, contract_address, day`

/**
 * SQL for transfers `f` of DAOs, which `rows` selects, with their prices `p` and the proposals `x` that their transactions
 * executed. `isOwner` is a condition on the key of the DAO, such as `= {dao: UInt64}`, and `assets` selects the assets of the
 * rows, and maybe others. No row is before the moment `since`.
 */
export const withPrices = (isOwner: string, rows: string, assets = toFlowAssets(isOwner), since?: string): string =>
  `FROM (${rows}) AS f
LEFT JOIN (${toDayPrices(assets, since)}
) AS p ON p.chain = toString(f.chain) AND p.contract_address = f.contract_address AND p.day = toDate(f.recorded_at)
LEFT JOIN
(
  SELECT d.dao AS dao, d.executed_tx AS executed_tx, min(p.id) AS proposal_id
  FROM (SELECT dao, space, proposal, executed_tx FROM dao_proposal_details FINAL WHERE dao ${isOwner} AND executed_tx != '') AS d
  INNER JOIN (SELECT dao, space, proposal, id FROM dao_proposals FINAL WHERE dao ${isOwner}) AS p
    ON p.dao = d.dao AND p.space = d.space AND p.proposal = d.proposal
  GROUP BY dao, executed_tx
) AS x ON x.dao = f.dao AND x.executed_tx = f.transaction_hash`

/** Like `withPrices`, with the transfers that fulfil `isSelected`, a condition on the columns of a row. */
export const fromFlows = (isOwner: string, isSelected = 'true'): string =>
  withPrices(isOwner, `SELECT * FROM treasury_flows FINAL WHERE dao ${isOwner} AND ${isSelected}`)
