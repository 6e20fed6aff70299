import type { GovernanceRow } from '../../../shared/datasets/governance.ts'
import type { Dao } from '../../../shared/registry/entities.ts'
import type { Candidate } from '../../job/define.ts'

/** A DAO that votes somewhere. */
export type VotingDao = Dao & { readonly snapshotSpace: string }

/** Up to where a list in order of creation was read: `from` in Unix seconds, `skip` of those from then on. */
export interface Place {
  readonly from: number
  readonly skip: number
}

/** Up to where a space was read. */
export interface Places {
  readonly proposals: Place
  readonly votes: Place
}

/** How many pages may still be asked for; shared by all spaces of a run. */
export interface Allowance {
  /** Takes one page; false when there is none left. */
  take(): boolean
}

export interface Reading {
  readonly rows: Candidate<GovernanceRow>[]
  /** Where the next run goes on. */
  readonly places: Places
  /** Whether the space was read to its end. */
  readonly isComplete: boolean
}

/** A source of votes and proposals. */
export interface GovernanceSource {
  /** How many pages a run may take, so that its rows fit into memory and the run into its time. */
  readonly pagesPerRun: number
  readonly concurrency: number
  /** What is new in a DAO's space, as far as the allowance goes; undefined for a space that does not exist. */
  fetchGovernance(
    dao: VotingDao,
    places: Places,
    allowance: Allowance,
    signal: AbortSignal,
  ): Promise<Reading | undefined>
}
