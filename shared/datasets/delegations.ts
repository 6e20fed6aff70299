import { z } from 'zod'
import { toIdSql } from '../ids.ts'
import { idValue, timeValue } from '../record-values.ts'
import type { Dao, VotingToken } from '../registry/entities.ts'
import type { Registry } from '../registry/registry.ts'
import { defineDataset } from './define-dataset.ts'
import { account } from './governance.ts'

const integer = z.string().regex(/^\d{1,78}$/)

const read = z.strictObject({ dao: z.int().nonnegative(), space: z.string().min(1), at: z.iso.datetime() })
const event = read.extend({
  block_number: z.int().nonnegative(),
  log_index: z.int().nonnegative(),
  tx: z.string().regex(/^0x[0-9a-f]{64}$/),
})
const power = event.extend({
  kind: z.literal('power'),
  delegate: account,
  /** In base units of the token, before and after the event. */
  previous: integer,
  power: integer,
  decimals: z.int().min(0).max(77),
  cause: z.enum(['delegation', 'transfer']),
})
const change = event.extend({
  kind: z.literal('delegation'),
  delegator: account,
  /** Empty for no delegate. */
  from_delegate: z.union([account, z.literal('')]),
  to_delegate: z.union([account, z.literal('')]),
})
const reading = read.extend({ kind: z.literal('reading') })

/**
 * A reading of a voting token: a change of a delegate's power, a change of a delegation, or a reading, which means that
 * all events up to `at` were read.
 */
export const delegationsRow = z.discriminatedUnion('kind', [power, change, reading])

export type DelegationsRow = z.infer<typeof delegationsRow>

/** A DAO whose governors count a token with delegations. */
export type DelegatingDao = Dao & { readonly votingToken: VotingToken }

export const delegations = defineDataset({
  name: 'delegations',
  title: 'Delegations of voting power',
  cadence: '1d',
  table: 'delegations_in',
  row: delegationsRow,
  entities: (registry) => registry.daos.filter((dao): dao is DelegatingDao => dao.live && dao.votingToken !== null),
  needsDaos: true,
  entity: 'dao',
  isCollected: true,
  resumes: true,
  series: { table: 'delegation_readings', entity: 'dao', time: 'read_at' },
})

/** A change of the delegate of an account (docs/contract.md, section 4). */
export const delegation = z
  .strictObject({
    _id: idValue.describe('Id of the event.'),
    recordedAt: timeValue.describe('Time of the block.'),
    delegator: z.string().describe('Account that delegates, in lower case.'),
    from: z.string().nullable().describe('Previous delegate; null if there was none.'),
    to: z.string().nullable().describe('New delegate; null if there is none.'),
    transactionHash: z.string().describe('The transaction.'),
  })
  .meta({ id: 'GovernanceDelegation', description: 'A change of the delegate of an account.' })

/** SQL of the members of a change, from a row of `delegation_events`. */
export const DELEGATION_VALUES = {
  _id: toIdSql("'delegation'", 'dao', 'space', 'block_number', 'log_index'),
  recordedAt: "toDateTime64(at, 3, 'UTC')",
  delegator: 'delegator',
  from: "nullIf(from_delegate, '')",
  to: "nullIf(to_delegate, '')",
  transactionHash: 'tx',
} as const satisfies Readonly<Record<keyof typeof delegation.shape, string>>

/** The voting tokens of all DAOs as parameters of `OF_READ_TOKENS`. */
export function toVotingTokenParams({ daos }: Registry) {
  const own = daos.flatMap(({ key, votingToken }) => (votingToken === null ? [] : [{ key, space: votingToken.space }]))
  return { owners: own.map(({ key }) => key), spaces: own.map(({ space }) => space) }
}

/** Condition on an event: of the current voting token of a DAO, which was read completely at least once. */
export const OF_READ_TOKENS = `(dao, space) IN (SELECT pair.1, pair.2 FROM (SELECT arrayJoin(arrayZip({owners: Array(UInt64)}, {spaces: Array(String)})) AS pair))
  AND (dao, space) IN (SELECT dao, space FROM delegation_readings FINAL)`
