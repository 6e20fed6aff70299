import type { GovernanceRow } from '../../../shared/datasets/governance.ts'
import type { Candidate } from '../../job/define-job.ts'
import type { Allowance } from '../../job/state.ts'

/** Position in a list ordered by creation: `skip` elements after `from` (Unix seconds). */
export interface Cursor {
  readonly from: number
  readonly skip: number
}

/** An unfinished reading of a space's proposals. */
export interface Pass {
  /** The slot of its start, in Unix milliseconds. */
  readonly began: number
  /** Whether it reads every proposal. */
  readonly isSweep: boolean
  /** Creation of the oldest proposal seen so far that may still change, in Unix seconds; null if there is none. */
  readonly open: number | null
  /** Whether every proposal so far was readable. Only then is a proposal that was not seen known to be deleted. */
  readonly isWhole: boolean
}

/** Unreadable votes that may become readable. */
export interface Gap {
  /** Start of the next reading, in Unix seconds. */
  readonly from: number
  /** The first slot that saw the gap, in Unix milliseconds. */
  readonly since: number
}

/** Reading position of a space. */
export interface Progress {
  readonly proposals: Cursor
  readonly votes: Cursor
  /** Start slots of the last completed reading of the proposals and of the last completed sweep; 0 for none. */
  readonly read: number
  readonly swept: number
  readonly pass: Pass | null
  /** Ids of proposals whose vote has ended but whose scores or secret choices are not final at the source. */
  readonly unsettled: string[]
  readonly gap: Gap | null
}

/** A space and the key of the DAO that votes there, or did in the past. */
export interface Space {
  readonly dao: number
  readonly space: string
}

export interface Reading {
  readonly rows: Candidate<GovernanceRow>[]
  /** Position of the next run. */
  readonly progress: Progress
  /** Whether the space was read to its end. */
  readonly isComplete: boolean
  /** One reason per unreadable element. */
  readonly unreadable: readonly string[]
}

/** A source of votes and proposals. */
export interface GovernanceSource {
  /** Page limit of a run, so that its rows fit into memory and the run into its time. */
  readonly pagesPerRun: number
  readonly concurrency: number
  /**
   * Fetches new and possibly changed data of a space as of a slot, within the allowance. Undefined if the space does
   * not exist.
   */
  fetchGovernance(
    requested: Space & { readonly slot: number },
    progress: Progress,
    allowance: Pick<Allowance, 'take'>,
    signal: AbortSignal,
  ): Promise<Reading | undefined>
}
