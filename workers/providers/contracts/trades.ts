import type { DexTradeRow } from '../../../shared/datasets/dex-trades.ts'
import type { DataError } from '../../../shared/errors.ts'
import type { Token } from '../../../shared/registry/entities.ts'
import type { Logger } from '../../../shared/telemetry/log.ts'
import type { Candidate, Range, Run } from '../../job/define-job.ts'
import type { JobState } from '../../job/state.ts'

/** Whose trades a source is asked for, and what it needs to find them. */
export interface TradeRequest {
  readonly entities: readonly Token[]
  readonly state: JobState
  readonly log: Logger
  readonly signal: AbortSignal
  /** There is no answer for this token, and why. */
  refuse(token: Token, reason: DataError): void
  /** These tokens were not read to the end yet. */
  putOff(tokens: readonly Token[]): void
  /** More can be read at once, when what came is stored. */
  noteMore(): void
}

export interface NewTradeRequest extends TradeRequest, Pick<Run<unknown, Token>, 'peers' | 'piece'> {
  readonly slot: number
  noteRead(tokens: readonly Token[]): void
}

/** Trades on decentralized exchanges, as one provider has them. A token that nobody traded gives no row. */
export interface TradeSource {
  /**
   * The trades since the last run, which the state remembers, or the next piece of them; `slot` (Unix milliseconds) says
   * where a first run begins. A token is noted as read only where its trades were read to the end.
   */
  fetchNew(request: NewTradeRequest): Promise<Candidate<DexTradeRow>[]>
  /** The trades inside the range, or the next piece of them; then the state remembers the range until it is done. */
  fetchHistory(request: TradeRequest & { readonly range: Range }): Promise<Candidate<DexTradeRow>[]>
}
