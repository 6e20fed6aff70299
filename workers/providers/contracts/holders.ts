import type { TokenHoldersRow } from '../../../shared/datasets/holders.ts'
import type { Token } from '../../../shared/registry/entities.ts'
import type { Candidate } from '../../job/define-job.ts'

/** The largest holders of tokens, as one provider has them. */
export interface HoldersSource {
  readonly name: string
  /** How many tokens may be asked for at the same time. */
  readonly concurrency: number
  /** How many tokens the provider's quota allows in one slot. */
  readonly tokensPerSlot: number
  /**
   * The top holders now, stamped with `slot` (Unix milliseconds), because the provider does not say when it measured.
   * Undefined where it lists nobody: an empty list must not replace a real one.
   * @throws DataError `provider_unknown` where it does not know the token.
   */
  fetchHolders(token: Token, slot: number, signal: AbortSignal): Promise<Candidate<TokenHoldersRow> | undefined>
}

/** A provider's calls for one token: one for the list, one for what is around it. */
const CALLS_PER_TOKEN = 2
/** Collecting a slot must end well within the time that a job has, whatever the rate limit. */
const LONGEST_RUN_MINUTES = 5

/**
 * How many tokens can be asked about in one slot within the rate limit and, where the provider counts by the hour, the
 * quota.
 */
export function toTokensPerSlot(perMinute: number, perHour = Number.POSITIVE_INFINITY): number {
  return Math.max(1, Math.floor(Math.min(perHour, perMinute * LONGEST_RUN_MINUTES) / CALLS_PER_TOKEN))
}
