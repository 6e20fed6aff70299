import { z } from 'zod'
import { daoTreasury, HOLDING_KINDS, NATIVE_COIN } from '../../../../shared/datasets/treasury.ts'
import { ASSET, ASSET_VALUE, toChainParams } from '../../../../shared/datasets/treasury-holdings.ts'
import { idValue } from '../../../../shared/record-values.ts'
import { type Database, toStaleAt } from '../../../../shared/store/store.ts'
import { toObject } from '../../../formats/formats.ts'
import { HOLDING_HEADERS, LIST_HEADERS } from '../../../http/headers.ts'
import { answerList, asOfParameter, checkPast, EVERYTHING, isCurrentAt, toListHead } from '../../../lists/lists.ts'
import { page } from '../../../parameters/kinds.ts'
import { toQuestions } from '../../../parameters/questions.ts'
import { Problem } from '../../../problem/problem.ts'
import { defineRoute } from '../../../route/define-route.ts'
import { daoKind } from '../../../route/entities.ts'

const holding = z
  .strictObject({
    dao: idValue.describe('Id of the DAO.'),
    ...ASSET,
    address: z
      .string()
      .nullable()
      .describe('Address of the holder; null if the source reports only the total of all addresses.'),
    quantity: z.number().describe('How many tokens.'),
    ...ASSET_VALUE,
    kind: z
      .enum(HOLDING_KINDS)
      .describe("The DAO's own token, a stablecoin in the list of this service, or another asset."),
  })
  .meta({ id: 'AddressHolding', description: 'The amount of one asset at one address of a treasury.' })

const questions = toQuestions(holding)

/** The newest row of the DAO, or the row that was known at a moment. */
const toRow = (columns: string, isPast: boolean) => `
SELECT ${columns}
FROM dao_treasuries FINAL
WHERE dao = {dao: UInt64} AND ${isPast ? isCurrentAt('observed_at', toStaleAt(0, daoTreasury)) : 'true'}
ORDER BY observed_at DESC
LIMIT 1`

/** The holdings of a row. In the default order the value replaces the market cap, and the symbol the name. */
const toRecords = (isPast: boolean) => `
SELECT h.place AS key, h.one.symbol AS name, h.one.value_usd AS market_cap, h.observed_at AS as_of,
  ${toObject(
    holding,
    `{id: String}, h.one.symbol, nullIf(t.id, ''), nullIf(h.one.contract, '${NATIVE_COIN}'), nullIf(h.chain_id, ''), h.one.address,
    h.one.quantity, h.one.value_usd / h.one.quantity, h.one.value_usd, h.one.kind`,
  )} AS record
FROM
(
  SELECT observed_at, one, place, transform(one.chain, {chains: Array(String)}, {chain_ids: Array(String)}, '') AS chain_id
  FROM (${toRow('observed_at, holdings', isPast)})
  ARRAY JOIN holdings AS one, arrayEnumerate(holdings) AS place
) AS h
LEFT JOIN (SELECT id, chain_id, contract_address FROM tokens FINAL) AS t
  ON t.chain_id = h.chain_id AND t.contract_address = ifNull(h.one.contract, '')`

const SQL = { now: toRecords(false), past: toRecords(true) }

const found = z.object({
  held: z.int(),
  spam_count: z.int().nullable(),
  price_sources: z.array(z.string()),
})

/** Facts of the row that the headers need; undefined if the DAO has no row. */
async function readFacts(db: Database, params: Readonly<Record<string, unknown>>, isPast: boolean) {
  const [row] = await db.rows({
    name: 'holdings-facts',
    sql: toRow(
      `length(holdings) AS held, spam_count,
  arraySort(arrayDistinct(arrayMap(one -> assumeNotNull(one.price_source), arrayFilter(one -> isNotNull(one.price_source), holdings)))) AS price_sources`,
      isPast,
    ),
    params,
    settings: { max_threads: 1 },
    schema: found,
  })
  return row
}

type Facts = z.infer<typeof found>

/**
 * @throws Problem `no_data` if the treasury is unknown, or only its total is known. With `asOf` the list is empty instead.
 */
function requireHoldings(facts: Facts | undefined, isPast: boolean): void {
  if (isPast || (facts !== undefined && facts.held > 0)) return
  const why = facts === undefined ? 'Its treasury was not read.' : 'Only the total per token is stored.'
  throw new Problem('no_data', `There are no holdings of this DAO. ${why}`)
}

const toHeaders = ({ spam_count, price_sources }: Facts): Record<keyof typeof HOLDING_HEADERS, string> => ({
  'X-Price-Sources': price_sources.join(', '),
  'X-Spam-Count': spam_count === null ? 'unknown' : String(spam_count),
})

export const holdingsRoute = defineRoute({
  operation: 'listDaoHoldings',
  path: '/data/daos/treasury/holdings',
  tag: 'DAOs',
  summary: 'Assets of the treasury of one DAO, by chain and address',
  description:
    'Each asset on each chain at each address, if the source separates them, largest value first, assets without a price last. The values add up to `valueUsd` of `/data/daos/treasury` at the same time. Spam is omitted. If the treasury is unknown, or only its totals per token are known, the code is `no_data`; with `asOf` the list is then empty.',
  one: daoKind,
  query: { ...questions.parameters, ...asOfParameter, ...page('holdings', { default: 100, max: 500 }) },
  record: holding,
  datasets: [daoTreasury],
  mayHaveNoData: true,
  headers: { ...LIST_HEADERS, ...HOLDING_HEADERS },
  handle: async (call) => {
    const { db, query, found: dao, registry, representation } = call
    checkPast(query.asOf, call.now())
    const isPast = query.asOf !== undefined
    const params = { dao: dao.key, id: dao.id, at: query.asOf, ...toChainParams(registry) }
    const facts = await readFacts(db, params, isPast)
    requireHoldings(facts, isPast)
    const sort = questions.toSort(query.sort)
    const filters = questions.toFilters(query.filter)
    const source = {
      name: 'dao-holdings',
      key: `dao-holdings ${dao.key} ${query.asOf ?? ''}`,
      datasets: [daoTreasury],
      sql: isPast ? SQL.past : SQL.now,
      params,
    }
    const answer = await answerList(call, source, { selection: EVERYTHING, sort, filters, limit: query.limit })
    const head = toListHead(answer, representation)
    return {
      ...answer,
      headers: { ...head.headers, ...(facts === undefined ? {} : toHeaders(facts)) },
      ...(isPast ? { staleAt: null } : {}),
    }
  },
})
