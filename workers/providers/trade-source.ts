import type { DexTradeRow } from '../../shared/datasets/dex-trades.ts'
import type { Token } from '../../shared/registry/registry.ts'
import type { Candidate, Range } from '../define.ts'
import type { JobState } from '../state.ts'

/** Trades on decentralized exchanges, as one provider has them. A token that nobody traded gives no row. */
export interface TradeSource {
  /**
   * The trades since the last run, which `state` remembers; `slot` (Unix milliseconds) says how far back a first run goes.
   * The state moves only where trades were read to the end.
   */
  fetchNew(
    tokens: readonly Token[],
    slot: number,
    state: JobState,
    signal: AbortSignal,
  ): Promise<Candidate<DexTradeRow>[]>
  /** The trades inside the range; the state is read and stays as it is. */
  fetchHistory(
    tokens: readonly Token[],
    range: Range,
    state: JobState,
    signal: AbortSignal,
  ): Promise<Candidate<DexTradeRow>[]>
}
