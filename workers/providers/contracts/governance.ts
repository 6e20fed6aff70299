import type { GovernanceRow } from '../../../shared/datasets/governance.ts'
import type { Allowance } from '../../job/allowance.ts'
import type { Candidate } from '../../job/define-job.ts'

/** Where to go on in a list in order of creation: at `from` (Unix seconds), after `skip` elements from then on. */
export interface Cursor {
  readonly from: number
  readonly skip: number
}

/** Where to go on in the lists of a space. */
export interface Cursors {
  readonly proposals: Cursor
  readonly votes: Cursor
}

/** A space and the key of the DAO that votes in it, or did. */
export interface Space {
  readonly dao: number
  readonly space: string
}

export interface Reading {
  readonly rows: Candidate<GovernanceRow>[]
  /** Where the next run goes on. */
  readonly cursors: Cursors
  /** Whether the space was read to its end. */
  readonly isComplete: boolean
}

/** A source of votes and proposals. */
export interface GovernanceSource {
  /** How many pages a run may take, so that its rows fit into memory and the run into its time. */
  readonly pagesPerRun: number
  readonly concurrency: number
  /** What is new in a space, as far as the allowance goes; undefined for one that does not exist. */
  fetchGovernance(
    space: Space,
    cursors: Cursors,
    allowance: Pick<Allowance, 'take'>,
    signal: AbortSignal,
  ): Promise<Reading | undefined>
}
