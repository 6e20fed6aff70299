import type { ProtocolTvlRow } from '../../../shared/datasets/protocol-tvl.ts'
import type { Dao } from '../../../shared/registry/entities.ts'
import type { Candidate, Range, Run } from '../../job/define-job.ts'

/** Total value locked in USD, as one provider has it. A DAO that the provider does not know gives no row. */
export interface TvlSource {
  /** The value now, stamped with `slot` (Unix milliseconds): the provider does not say when it measured. */
  fetchTvl(daos: readonly Dao[], slot: number, signal: AbortSignal): Promise<Candidate<ProtocolTvlRow>[]>
  /** Daily values inside the range, each with its own time. */
  fetchTvlHistory(
    daos: readonly Dao[],
    range: Range,
    run: Pick<Run<unknown, Dao>, 'signal' | 'log' | 'refuse' | 'state' | 'providerName'>,
  ): Promise<Candidate<ProtocolTvlRow>[]>
}
