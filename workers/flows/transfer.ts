/** A transfer as its source reports it. Addresses, contract and hash are in lower case. */
export interface Transfer {
  readonly chain: string
  readonly blockNumber: number
  /** Time of the block, in Unix seconds. */
  readonly time: number
  readonly transactionHash: string
  /** Contract of the token; empty for the native coin of the chain. */
  readonly contractAddress: string
  readonly sender: string
  readonly recipient: string
  readonly baseUnits: bigint
  /** As the contract reports it, empty if unknown. */
  readonly symbol: string
  /** Null if the contract has none, or if they are unknown. */
  readonly decimals: number | null
  /** Name of the source. */
  readonly provider: string
}

/** Transactions in which accounts acted themselves, by hash: as the sender, or as a contract that executed a call. */
export type ActedIn = ReadonlyMap<string, ReadonlySet<string>>

export const ZERO_ADDRESS = `0x${'0'.repeat(40)}`
