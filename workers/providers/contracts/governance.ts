import type { GovernanceRow } from '../../../shared/datasets/governance.ts'
import type { Allowance } from '../../job/allowance.ts'
import type { Candidate } from '../../job/define-job.ts'

/** Where to go on in a list in order of creation: at `from` (Unix seconds), after `skip` elements from then on. */
export interface Cursor {
  readonly from: number
  readonly skip: number
}

/** A reading of a space's proposals that is not at its end yet. */
export interface Pass {
  /** The slot in which it began, in Unix milliseconds. */
  readonly began: number
  /** Whether it sees every proposal that there is. */
  readonly isSweep: boolean
  /** The creation of the oldest proposal seen so far that may still change, in Unix seconds; null for none. */
  readonly open: number | null
  /** Whether every proposal so far could be read: what was not seen is known to be gone then. */
  readonly isWhole: boolean
}

/** Votes that could not be read and may be readable later. */
export interface Gap {
  /** Where to read again from, in Unix seconds. */
  readonly from: number
  /** The slot that saw it first, in Unix milliseconds. */
  readonly since: number
}

/** How far a space was read. */
export interface Progress {
  readonly proposals: Cursor
  readonly votes: Cursor
  /** The slots in which the last reading of the proposals began that reached its end, and the last sweep; 0 for none. */
  readonly read: number
  readonly swept: number
  readonly pass: Pass | null
  /** Ids of proposals whose vote is over and whose scores, or secret choices, the source has not settled. */
  readonly unsettled: string[]
  readonly gap: Gap | null
}

/** A space and the key of the DAO that votes in it, or did. */
export interface Space {
  readonly dao: number
  readonly space: string
}

export interface Reading {
  readonly rows: Candidate<GovernanceRow>[]
  /** Where the next run goes on. */
  readonly progress: Progress
  /** Whether the space was read to its end. */
  readonly isComplete: boolean
  /** A reason for each element that could not be read. */
  readonly unreadable: readonly string[]
}

/** A source of votes and proposals. */
export interface GovernanceSource {
  /** How many pages a run may take, so that its rows fit into memory and the run into its time. */
  readonly pagesPerRun: number
  readonly concurrency: number
  /**
   * What is new in a space or may have changed as of a slot, as far as the allowance goes; undefined for a space that does
   * not exist.
   */
  fetchGovernance(
    asked: Space & { readonly slot: number },
    progress: Progress,
    allowance: Pick<Allowance, 'take'>,
    signal: AbortSignal,
  ): Promise<Reading | undefined>
}
