/** A log as the chain keeps it: numbers as numbers, texts in lower case. */
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

/** A question to a factory; `fee` is null for exchanges of the second version. The tokens come in any order. */
export interface PoolQuestion {
  readonly factory: string
  readonly tokens: readonly [string, string]
  readonly fee: number | null
}

/** What a node refuses or leaves out. */
export interface NodeHabits {
  /** The widest range of blocks that eth_getLogs accepts. */
  readonly mostBlocks?: number
  /** In whose words it refuses a range that is too wide; in nobody's unless given. */
  readonly host?: 'alchemy' | 'infura' | 'quicknode' | 'drpc'
  /** The most logs that eth_getLogs answers with, 10,000 by default. */
  readonly mostLogs?: number
  /** Whether logs carry their block's time, true by default; some nodes send zero. */
  readonly logTimes?: boolean | 'zero'
  /** Takes the place of a log in an answer, in whatever form; undefined leaves the log as it is. */
  readonly spoil?: (log: ChainLog) => unknown
  /** The first block whose logs it still has (EIP-4444). */
  readonly firstLogs?: number
  /** The most calls in a batch, as on the free plan of dRPC. */
  readonly mostCalls?: number
  /** What it has in place of a transaction that is asked for by its hash, as while it builds its index; undefined for all. */
  readonly indexing?: (hash: string) => 'null' | 'refusal' | 'no sender' | undefined
  /** Transactions that it does not have in any way. */
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
    /** What one token holds, by the component's address in lower case. */
    readonly components: ReadonlyMap<string, bigint>
    readonly ether: bigint
    readonly wrappedEther: bigint
  }
}

/** A chain as a node sees it, whoever asks. Times in Unix seconds. */
export interface Chain {
  readonly chainId: number
  readonly habits: NodeHabits
  /** Number of the newest block at a time in Unix milliseconds. */
  headAt(now: number): number
  /** Null for a block that the node does not have. */
  timeOf(block: number): number | null
  /** Null where the factory has made none. */
  pool(question: PoolQuestion): string | null
  /** Logs of these addresses, oldest first, from one block to another, both inclusive. */
  logs(from: number, to: number, addresses: ReadonlySet<string>): ChainLog[]
  readonly indexToken?: IndexTokenContract
  /** What the ETH/USD feed says at a time in Unix milliseconds, and since when. */
  etherFeed?(at: number): { readonly usd: number; readonly at: number } | null
  transaction(hash: string): { readonly blockNumber: number; readonly from: string } | null
  /** Those of a block, where the chain knows them. */
  transactionsOf?(block: number): { readonly hash: string; readonly index: number; readonly from: string }[]
}

/** The factories that the chains here know, by version. */
export const FACTORIES = {
  uniswapV2: '0x5c69bee701ef814a2b6a3edd4b1652cb9cc5aa6f',
  sushiswap: '0xc0aee478e3658e2610c5f7a4a2e1777ce9e4f2ac',
  uniswapV3: '0x1f98431c8ad98523631ae4a59f267346ea31f984',
  uniswapV3OfBase: '0x33128a8fc17869897dce68ed026d694621f6fdfd',
} as const

const V2_TOPIC = '0xd78ad95fa46c994b6551d0da85fc275fe613ce37657fb8d5e3d130840159d822'
const V3_TOPIC = '0xc42079f94a6350d7e6235f29174924f928cc2ac818eb64fed8004e115fbcca67'
const ROUTER = `0x${'0'.repeat(24)}7a250d5630b4cf539739df2c5dacb4c659f2488d`

/** A number of any sign as 64 hex digits. */
export function toWord(value: bigint): string {
  return BigInt.asUintN(256, value).toString(16).padStart(64, '0')
}

/** Topics and data of a V2 swap, from what the trader received of each token; negative is paid. */
export function encodeV2Swap(net0: bigint, net1: bigint): Pick<ChainLog, 'topics' | 'data'> {
  const paid = (net: bigint) => (net < 0n ? -net : 0n)
  const words = [paid(net0), paid(net1), paid(-net0), paid(-net1)].map(toWord)
  return { topics: [V2_TOPIC, ROUTER, ROUTER], data: `0x${words.join('')}` }
}

/** The same as a V3 swap, whose amounts are the pool's balance changes; the price is what the amounts give. */
export function encodeV3Swap(net0: bigint, net1: bigint): Pick<ChainLog, 'topics' | 'data'> {
  const ratio = Math.abs(Number(net1) / Number(net0))
  const root = BigInt(Math.floor(Math.sqrt(ratio) * 2 ** 96))
  const tick = BigInt(Math.floor(Math.log(ratio) / Math.log(1.0001)))
  const words = [-net0, -net1, root, 10n ** 21n, tick].map(toWord)
  return { topics: [V3_TOPIC, ROUTER, ROUTER], data: `0x${words.join('')}` }
}
