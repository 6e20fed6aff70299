/** A log as stored in the chain: numbers as numbers, texts in lower case. */
export interface ChainLog {
  readonly address: string
  readonly topics: readonly string[]
  readonly data: string
  readonly blockNumber: number
  readonly transactionHash: string
  readonly transactionIndex: number
  readonly logIndex: number
  readonly removed?: boolean
}

/** A query to a factory; `fee` is null for exchanges of the second version. The order of the tokens does not matter. */
export interface PoolQuestion {
  readonly factory: string
  readonly tokens: readonly [string, string]
  readonly fee: number | null
}

/** Limits and gaps of a node. */
export interface NodeHabits {
  /** The widest range of blocks that eth_getLogs accepts. */
  readonly mostBlocks?: number
  /** The host whose error message rejects a range that is too wide; a generic one by default. */
  readonly host?: 'alchemy' | 'infura' | 'quicknode' | 'drpc'
  /** Limit on the logs in a response of eth_getLogs, 10,000 by default. */
  readonly mostLogs?: number
  /** Whether logs have their block's time, true by default; some nodes send zero. */
  readonly logTimes?: boolean | 'zero'
  /** Replaces a log in a response with any value; undefined leaves the log unchanged. */
  readonly spoil?: (log: ChainLog) => unknown
  /** The first block with logs; earlier ones are pruned (EIP-4444). */
  readonly firstLogs?: number
  /** Limit on the calls of a batch, as in dRPC's free plan. */
  readonly mostCalls?: number
  /**
   * The response to a request of a transaction by hash while the node builds its index; undefined for a complete
   * response.
   */
  readonly indexing?: (hash: string) => 'null' | 'refusal' | 'no sender' | undefined
  /** Transactions that are missing in every response. */
  readonly lacksTransaction?: (hash: string) => boolean
  /** Whether the node knows the tag `finalized`, true by default. */
  readonly finalizedTag?: boolean
}

/** The contract of an Index Token; times in Unix milliseconds, amounts in the smallest unit. */
export interface IndexTokenContract {
  /** Lower-case. */
  readonly address: string
  stateAt(at: number): {
    readonly supply: bigint
    /** The components of one token, by address in lower case. */
    readonly components: ReadonlyMap<string, bigint>
    readonly ether: bigint
    readonly wrappedEther: bigint
  }
}

/** A call of one contract: addresses and words in lower case, `at` the block's time in Unix milliseconds. */
export interface ContractCall {
  readonly contract: string
  readonly selector: string
  readonly words: readonly string[]
  readonly at: number
}

/** A chain as seen by a node, the same for every client. Times in Unix seconds. */
export interface Chain {
  readonly chainId: number
  readonly habits: NodeHabits
  /** Number of the newest block at a time in Unix milliseconds. */
  headAt(now: number): number
  /** Null for a block that the node does not have. */
  timeOf(block: number): number | null
  /** Null if the factory has created none. */
  pool(question: PoolQuestion): string | null
  /** Logs of these addresses, oldest first, between two blocks (inclusive). */
  logs(from: number, to: number, addresses: ReadonlySet<string>): ChainLog[]
  /** Logs of all addresses between two blocks (inclusive), for filters without an address. */
  allLogs?(from: number, to: number): ChainLog[]
  readonly indexToken?: IndexTokenContract
  /** The value of the ETH/USD feed at a time in Unix milliseconds, and the time of its update. */
  etherFeed?(at: number): { readonly usd: number; readonly at: number } | null
  /** The answer of a governor's view; undefined for other contracts. `at` is the block's time in Unix milliseconds. */
  governorCall?(call: ContractCall): string | undefined
  transaction(hash: string): { readonly blockNumber: number; readonly from: string } | null
  /** The transactions of a block, if the chain has them. */
  transactionsOf?(block: number): { readonly hash: string; readonly index: number; readonly from: string }[]
}

/** The factories of the chains, by version. */
export const FACTORIES = {
  uniswapV2: '0x5c69bee701ef814a2b6a3edd4b1652cb9cc5aa6f',
  sushiswap: '0xc0aee478e3658e2610c5f7a4a2e1777ce9e4f2ac',
  uniswapV3: '0x1f98431c8ad98523631ae4a59f267346ea31f984',
  uniswapV3OfBase: '0x33128a8fc17869897dce68ed026d694621f6fdfd',
} as const

const V2_TOPIC = '0xd78ad95fa46c994b6551d0da85fc275fe613ce37657fb8d5e3d130840159d822'
const V3_TOPIC = '0xc42079f94a6350d7e6235f29174924f928cc2ac818eb64fed8004e115fbcca67'
const ROUTER = `0x${'0'.repeat(24)}7a250d5630b4cf539739df2c5dacb4c659f2488d`

/** A signed number as 64 hex digits. */
export function toWord(value: bigint): string {
  return BigInt.asUintN(256, value).toString(16).padStart(64, '0')
}

/** Topics and data of a V2 swap, from the trader's net amount of each token; a negative amount is paid. */
export function encodeV2Swap(net0: bigint, net1: bigint): Pick<ChainLog, 'topics' | 'data'> {
  const paid = (net: bigint) => (net < 0n ? -net : 0n)
  const words = [paid(net0), paid(net1), paid(-net0), paid(-net1)].map(toWord)
  return { topics: [V2_TOPIC, ROUTER, ROUTER], data: `0x${words.join('')}` }
}

/** Topics and data of a V3 swap, which contains the pool's balance changes. The price is the ratio of the amounts. */
export function encodeV3Swap(net0: bigint, net1: bigint): Pick<ChainLog, 'topics' | 'data'> {
  const ratio = Math.abs(Number(net1) / Number(net0))
  const root = BigInt(Math.floor(Math.sqrt(ratio) * 2 ** 96))
  const tick = BigInt(Math.floor(Math.log(ratio) / Math.log(1.0001)))
  const words = [-net0, -net1, root, 10n ** 21n, tick].map(toWord)
  return { topics: [V3_TOPIC, ROUTER, ROUTER], data: `0x${words.join('')}` }
}
