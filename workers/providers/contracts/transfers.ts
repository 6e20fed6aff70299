import type { ActedIn, Transfer } from '../../flows/transfer.ts'
import type { Omitted } from '../../job/define-job.ts'

/** Accounts of a chain to read in [`from`, `to`), in Unix milliseconds. */
export interface TransferRequest {
  readonly chain: string
  /** EIP-155 number. */
  readonly chainId: number
  /** In lower case. */
  readonly accounts: readonly string[]
  readonly from: number
  readonly to: number
  /** Whether the symbol and decimals of a contract are to be read, if the source does not send them with transfers. */
  needsFacts(contract: string): boolean
  readonly signal: AbortSignal
}

/** The transfers of accounts, of complete transactions. */
export interface TransferReading {
  readonly transfers: readonly Transfer[]
  readonly actedIn: ActedIn
  /** Unix milliseconds, exclusive: transfers before it are complete. */
  readonly until: number
  /** False if the limit of the run ended the reading before `to`. */
  readonly isComplete: boolean
  /** Elements of the response that cannot be read. */
  readonly omitted: Omitted | undefined
}

/** A source of the transfers of accounts. */
export interface TransferSource {
  readonly name: string
  /** Whether the source can read several accounts of a chain at the cost of one. */
  readonly readsTogether: boolean
  /** Whether the source has all native transfers, also those that contracts send. */
  readonly hasNative: boolean
  has(chain: string): boolean
  /** Opens a reading with a limit of requests. Readings of one run share it. */
  open(): TransferReader
}

export interface TransferReader {
  /** Whether the limit of the run is reached. */
  isSpent(): boolean
  /** @throws DataError if the accounts cannot be read */
  read(request: TransferRequest): Promise<TransferReading>
}
