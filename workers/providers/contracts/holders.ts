import type { TokenHoldersRow } from '../../../shared/datasets/holders.ts'
import type { Token } from '../../../shared/registry/entities.ts'
import type { Candidate } from '../../job/define-job.ts'

/** The largest holders of tokens, from one provider. */
export interface HoldersSource {
  readonly name: string
  /** Number of tokens that may be requested concurrently. */
  readonly concurrency: number
  /** Number of tokens that the provider's quota allows per slot. */
  readonly tokensPerSlot: number
  /**
   * Fetches the current top holders, stamped with `slot` (Unix milliseconds), because the provider does not report its
   * measuring time. Undefined if the list is empty: an empty list must not replace a real one.
   * @throws DataError `provider_unknown` if the provider does not know the token.
   */
  fetchHolders(token: Token, slot: number, signal: AbortSignal): Promise<Candidate<TokenHoldersRow> | undefined>
}

/** A provider's calls per token: one for the list, one for its other values. */
const CALLS_PER_TOKEN = 2
/** With any rate limit, collecting a slot must end well within the time limit of a job. */
const LONGEST_RUN_MINUTES = 5

/** Returns how many tokens fit into one slot, given the rate limit and, if the provider limits per hour, the quota. */
export function toTokensPerSlot(perMinute: number, perHour = Number.POSITIVE_INFINITY): number {
  return Math.max(1, Math.floor(Math.min(perHour, perMinute * LONGEST_RUN_MINUTES) / CALLS_PER_TOKEN))
}
