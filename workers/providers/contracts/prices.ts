import type { TokenPriceRow } from '../../../shared/datasets/token-prices.ts'
import type { Token } from '../../../shared/registry/entities.ts'
import type { Candidate, Range, Run } from '../../job/define-job.ts'

/**
 * Token market data in USD from one provider. Values are unvalidated, unknown ones are null. A token that the provider
 * does not know has no row. A quote without a price becomes a row with a null price, which the row check counts.
 */
export interface PriceSource {
  /** Fetches at most one row per token, with the quote's time. */
  fetchLatest(tokens: readonly Token[], run: PriceRun): Promise<Candidate<TokenPriceRow>[]>
  /**
   * Fetches the observations inside the range, at its interval if available. Coarser steps are reported with
   * `noteStep`.
   */
  fetchHistory(tokens: readonly Token[], range: Range, run: PriceRun): Promise<Candidate<TokenPriceRow>[]>
}

/** The members of a run that a source needs. */
type PriceRun = Pick<
  Run<unknown, Token>,
  'slot' | 'batch' | 'state' | 'providerName' | 'signal' | 'log' | 'refuse' | 'noteStep'
>
