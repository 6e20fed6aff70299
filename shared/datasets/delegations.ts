import { z } from 'zod'
import type { Dao, VotingToken } from '../registry/entities.ts'
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
const delegation = event.extend({
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
export const delegationsRow = z.discriminatedUnion('kind', [power, delegation, reading])

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
