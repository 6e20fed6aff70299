import type { ProtocolTvlRow } from '../../../shared/datasets/protocol-tvl.ts'
import type { Dao } from '../../../shared/registry/entities.ts'
import type { Candidate, Range, Run } from '../../job/define-job.ts'

/** Total value locked in USD from one provider. A DAO that the provider does not know has no row. */
export interface TvlSource {
  /**
   * Fetches the current value, stamped with `slot` (Unix milliseconds), because the provider does not report its
   * measuring time.
   */
  fetchTvl(daos: readonly Dao[], slot: number, signal: AbortSignal): Promise<Candidate<ProtocolTvlRow>[]>
  /** Fetches the daily values inside the range, each with its time. */
  fetchTvlHistory(
    daos: readonly Dao[],
    range: Range,
    run: Pick<Run<unknown, Dao>, 'signal' | 'log' | 'refuse' | 'state' | 'providerName'>,
  ): Promise<Candidate<ProtocolTvlRow>[]>
}
