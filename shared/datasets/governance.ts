import { z } from 'zod'
import type { Dao } from '../registry/entities.ts'
import { defineDataset } from './define-dataset.ts'

const dao = z.number().int().nonnegative()
const text = z.string().min(1)
const at = z.iso.datetime()
/** An account of an EVM chain or of Starknet; in lower case, because one account has many spellings. */
const account = z.string().regex(/^0x[0-9a-f]{40,64}$/, 'must be an address in lower case')

const vote = z.strictObject({ dao, space: text, kind: z.literal('vote'), proposal: text, address: account, at })
const proposal = vote.extend({ kind: z.literal('proposal') })
const reading = vote.extend({ kind: z.literal('reading'), proposal: z.literal(''), address: z.literal('') })

/**
 * What was read of a DAO's space: a vote (`address` voted on `proposal`), a proposal (`address` made it), both `at` the
 * time of their creation, or that the space was read to its end as of `at`.
 */
export const governanceRow = z.discriminatedUnion('kind', [vote, proposal, reading])

export type GovernanceRow = z.infer<typeof governanceRow>

/** A DAO that votes somewhere. */
export type VotingDao = Dao & { readonly snapshotSpace: string }

/** Votes and proposals of DAOs: rows go through `governance_in`, whose views tell the kinds apart. */
export const governance = defineDataset({
  name: 'governance',
  cadence: '1d',
  table: 'governance_in',
  row: governanceRow,
  entities: (registry) => registry.daos.filter((dao): dao is VotingDao => dao.live && dao.snapshotSpace !== null),
  entity: 'dao',
  resumes: true,
  series: { table: 'governance_readings', entity: 'dao', time: 'read_at' },
})
