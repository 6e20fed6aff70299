import type { TokenPriceRow } from '../../../shared/datasets/token-prices.ts'
import type { Token } from '../../../shared/registry/entities.ts'
import type { Candidate, Range } from '../../job/define-job.ts'

/**
 * Token market data in USD, as one provider has it: values as sent, unknown ones null. A token that the provider does
 * not know gives no row; a quote without a price gives a row with a null price, which the row check then counts.
 */
export interface PriceSource {
  /** At most one row for each token, with the quote's own time. */
  fetchLatest(tokens: readonly Token[], signal: AbortSignal): Promise<Candidate<TokenPriceRow>[]>
  /** The observations inside the range, at its interval where the provider keeps it and at a coarser one elsewhere. */
  fetchHistory(tokens: readonly Token[], range: Range, signal: AbortSignal): Promise<Candidate<TokenPriceRow>[]>
}
