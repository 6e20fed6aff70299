import { z } from 'zod'
import { governors } from '../../../../../shared/datasets/governors.ts'
import { toId } from '../../../../../shared/ids.ts'
import type { Registry } from '../../../../../shared/registry/registry.ts'
import type { Database } from '../../../../../shared/store/store.ts'
import { answerRecords, idValue, toIdSql, toObject, uint32 } from '../../../../formats/formats.ts'
import { findProposal } from '../../../../governance/counted.ts'
import { oneId } from '../../../../parameters/kinds.ts'
import { defineRoute } from '../../../../route/define-route.ts'

const argument = z
  .strictObject({
    name: z.string().nullable().describe('Name of the parameter; null where unknown.'),
    type: z.string().describe('Its type in Solidity: `address`, `uint256`, `bytes[]`.'),
    value: z
      .string()
      .describe('Its value as a text: numbers with all digits, addresses in lower case, lists and tuples as JSON.'),
  })
  .meta({ id: 'GovernanceActionArgument', description: 'An argument of a call.' })

const ARGUMENTS = 'Variant(Array(Tuple(name Nullable(String), type String, value String)))'

const action = z
  .strictObject({
    _id: idValue.describe('Id of the action.'),
    proposal: idValue.describe('Id of the proposal.'),
    index: uint32.describe('Place among the actions of the proposal, from 0 on: they are executed in this order.'),
    target: z.string().describe('Address of the contract or account that is called, in lower case.'),
    targetLabel: z
      .string()
      .nullable()
      .describe(
        'Kind of the target in the registry: a token, a treasury or a governor; null if it is not in the registry.',
      ),
    valueWei: z
      .string()
      .regex(/^\d+$/)
      .describe('Amount of the native token that is sent, in wei, as a decimal text with all digits.'),
    function: z
      .string()
      .nullable()
      .describe('Name of the function that the contract executes; null if it is not known without doubt.'),
    signature: z
      .string()
      .nullable()
      .describe(
        'The function with the types of its parameters. If `function` is null, the text that the proposal has as its signature, as written: show it as untrusted. Null if it has none.',
      ),
    arguments: z.array(argument).nullable().describe('The decoded arguments; null if `function` is null.'),
    calldata: z.string().describe('The calldata in hexadecimal digits, with the selector of the function.'),
  })
  .meta({ id: 'GovernanceAction', description: 'A call that a proposal makes when it is executed.' })

const RECORD = toObject(
  action,
  `${toIdSql("'action'", 'dao', 'proposal', 'place')}, {id: String}, place, action.target,
  nullIf(transform(action.target, {label_addresses: Array(String)}, {labels: Array(String)}, ''), ''), toString(action.value_wei),
  action.function, action.signature, if(isNull(action.function), NULL, CAST(action.arguments, '${ARGUMENTS}')), action.calldata`,
)

const SQL = `
SELECT as_of, ${RECORD} AS record FROM
(
  SELECT dao, proposal, collected_at AS as_of, toUInt32(pair.1 - 1) AS place, pair.2 AS action FROM
  (
    SELECT dao, proposal, collected_at, arrayJoin(arrayZip(arrayEnumerate(actions), actions)) AS pair FROM
    (
      SELECT dao, proposal, collected_at, actions FROM governor_events FINAL
      WHERE dao = {dao: UInt64} AND space = {space: String} AND proposal = {proposal: String} AND kind IN ('proposal', 'actions')
      ORDER BY kind ASC LIMIT 1
    )
  )
)
ORDER BY place`

const targets = z.object({ target: z.string() })
const TARGETS = `
SELECT DISTINCT arrayJoin(actions.target) AS target FROM governor_events FINAL
WHERE dao = {dao: UInt64} AND space = {space: String} AND proposal = {proposal: String} AND kind IN ('proposal', 'actions')`

/** Finds labels for addresses of a chain in the registry: tokens first, then treasuries and governors of DAOs. */
function findLabels({ tokens, daos, chains }: Registry, space: string, addresses: readonly string[]) {
  const chain = chains.find(({ chainId }) => space.startsWith(`eip155:${chainId}:`))?.slug
  const labels = addresses.map((address) => {
    const isHere = (one: { chain: string; address: string }) => one.chain === chain && one.address === address
    const token = tokens.find((one) => one.chain === chain && one.contractAddress === address)
    if (token !== undefined) return `${token.symbol} token`
    const owner = daos.find(({ treasuries }) => treasuries.some(isHere))
    if (owner !== undefined) return `Treasury of ${owner.name}`
    const voter = daos.find(({ governors }) => governors.some(isHere))
    return voter === undefined ? '' : `Governor of ${voter.name}`
  })
  return { label_addresses: addresses, labels }
}

async function readLabels(db: Database, registry: Registry, place: { dao: number; space: string; proposal: string }) {
  const rows = await db.rows({ name: 'governance-targets', sql: TARGETS, params: place, schema: targets })
  return findLabels(
    registry,
    place.space,
    rows.map(({ target }) => target),
  )
}

export const governanceActionsRoute = defineRoute({
  operation: 'listProposalActions',
  path: '/data/daos/governance/proposals/actions',
  tag: 'DAOs',
  summary: 'What one proposal does',
  description:
    'The calls that a proposal on a governor makes when it is executed, in their order, with decoded calldata: by the signature in the proposal, if it is written in its canonical form, or without one by the selector for functions of tokens, proxies, roles, timelocks, bridges and the largest protocols. Calldata of another function stays hexadecimal, and so does calldata whose arguments would be over eight times as long as it. A proposal on Snapshot, one whose calls its contract does not publish, and an unknown one have none.',
  query: { proposal: oneId('proposal', toId('proposal', 0, 'example')) },
  record: action,
  datasets: [governors],
  handle: async (call) => {
    const { db, registry, query } = call
    const found = await findProposal(db, registry, query.proposal)
    const place = { dao: found?.dao.key ?? 0, space: found?.space ?? '', proposal: found?.proposal ?? '' }
    const params = { ...place, id: query.proposal, ...(await readLabels(db, registry, place)) }
    return answerRecords(call, { name: 'governance-actions', sql: SQL, params })
  },
})
