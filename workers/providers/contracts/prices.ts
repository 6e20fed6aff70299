import type { TokenPriceRow } from '../../../shared/datasets/token-prices.ts'
import type { Token } from '../../../shared/registry/entities.ts'
import type { Candidate, Range, Run } from '../../job/define-job.ts'

/**
 * Token market data in USD, as one provider has it: values as sent, unknown ones null. A token that the provider does
 * not know gives no row; a quote without a price gives a row with a null price, which the row check then counts.
 */
export interface PriceSource {
  /** At most one row for each token, with the quote's own time. */
  fetchLatest(tokens: readonly Token[], run: PriceRun): Promise<Candidate<TokenPriceRow>[]>
  /**
   * The observations inside the range, at its interval where the provider keeps it and at a coarser one elsewhere, which
   * it tells the run.
   */
  fetchHistory(tokens: readonly Token[], range: Range, run: PriceRun): Promise<Candidate<TokenPriceRow>[]>
}

/** What a source needs of a run. */
type PriceRun = Pick<
  Run<unknown, Token>,
  'slot' | 'piece' | 'state' | 'providerName' | 'signal' | 'log' | 'refuse' | 'noteStep'
>
