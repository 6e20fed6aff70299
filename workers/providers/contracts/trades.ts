import type { DexTradeRow } from '../../../shared/datasets/dex-trades.ts'
import type { DataError } from '../../../shared/errors.ts'
import type { ReadTime } from '../../../shared/ledger/ledger.ts'
import type { Token } from '../../../shared/registry/entities.ts'
import type { Logger } from '../../../shared/telemetry/log.ts'
import type { Candidate, Range, Run } from '../../job/define-job.ts'
import type { JobState } from '../../job/state.ts'

/** Request for the trades of tokens. */
export interface TradeRequest {
  readonly entities: readonly Token[]
  readonly state: JobState
  readonly log: Logger
  readonly signal: AbortSignal
  /** Reports that this token has no answer, and the reason. */
  refuse(token: Token, reason: DataError): void
  /** Reports tokens that are not completely read yet. */
  putOff(tokens: readonly Token[]): void
  /** Reports the completely read times of these tokens; see `Run`. */
  noteRead(tokens: readonly Token[], time: ReadTime): void
  /** Reports that more data can be read after the rows are stored. */
  noteMore(): void
}

export interface NewTradeRequest extends TradeRequest, Pick<Run<unknown, Token>, 'peers' | 'batch'> {
  readonly slot: number
}

/** Trades on decentralized exchanges from one provider. A token without trades has no row. */
export interface TradeSource {
  /**
   * Fetches the trades since the last run (from the state), at most the number that one run may read. `slot` (Unix
   * milliseconds) defines the start of a first run. Only tokens whose trades were completely read are noted as read.
   */
  fetchNew(request: NewTradeRequest): Promise<Candidate<DexTradeRow>[]>
  /**
   * Fetches the trades inside the range, at most the number that one run may read. Until the range is complete, the
   * state contains the position at which the next run continues.
   */
  fetchHistory(request: TradeRequest & { readonly range: Range }): Promise<Candidate<DexTradeRow>[]>
}
