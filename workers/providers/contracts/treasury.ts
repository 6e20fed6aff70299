import type { DaoTreasuryRow } from '../../../shared/datasets/treasury.ts'
import type { Candidate, Range } from '../../job/define-job.ts'
import type { TreasuryDao } from './treasury-daos.ts'

/** Treasuries of DAOs, as one provider has them: everything held, the DAO's own tokens included, spam left out. */
export interface TreasurySource {
  /** How many DAOs may be asked for at the same time. */
  readonly concurrency: number
  /**
   * The holdings now, stamped with `slot` (Unix milliseconds). Undefined where the provider has an empty answer for one of
   * the addresses, or a price for nothing: part of a treasury must not pass for all of it.
   * @throws DataError `provider_unknown` where it does not know the DAO or one of its addresses.
   */
  fetchTreasury(dao: TreasuryDao, slot: number, signal: AbortSignal): Promise<Candidate<DaoTreasuryRow> | undefined>
  /**
   * A row for each day inside the range for which the provider knows the whole treasury.
   * @throws DataError `provider_unknown` where it does not know the DAO or one of its addresses, or no day of the range.
   */
  fetchHistory(dao: TreasuryDao, range: Range, signal: AbortSignal): Promise<Candidate<DaoTreasuryRow>[]>
}
