import type { DaoTreasuryRow } from '../../../shared/datasets/treasury.ts'
import type { Candidate, Range } from '../../job/define-job.ts'
import type { TreasuryDao } from './treasury-daos.ts'

/** Treasuries of DAOs from one provider: all holdings including the DAO's own tokens, without spam. */
export interface TreasurySource {
  /** Number of DAOs that may be requested concurrently. */
  readonly concurrency: number
  /**
   * Fetches the current holdings, stamped with `slot` (Unix milliseconds). Undefined if the response for one address is
   * empty or nothing has a price: part of a treasury must not be stored as the whole.
   * @throws DataError `provider_unknown` if the provider does not know the DAO or one of its addresses.
   */
  fetchTreasury(dao: TreasuryDao, slot: number, signal: AbortSignal): Promise<Candidate<DaoTreasuryRow> | undefined>
  /**
   * Fetches one row for each day inside the range for which the provider knows the whole treasury.
   * @throws DataError `provider_unknown` if the provider does not know the DAO or one of its addresses, or no day of
   *   the range.
   */
  fetchHistory(dao: TreasuryDao, range: Range, signal: AbortSignal): Promise<Candidate<DaoTreasuryRow>[]>
}
