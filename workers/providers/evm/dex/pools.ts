import { encodeFunctionData, parseAbi, toFunctionSelector } from 'viem/utils'
import { z } from 'zod'
import { DataError } from '../../../../shared/errors.ts'
import { type JsonRpc, type RpcCall, toRpcError } from '../rpc/json-rpc.ts'
import { type DexChain, V3_FEES } from './exchanges.ts'

/** A pool that trades two tokens; `quote` is the one with a known dollar value. Addresses are lower-case. */
export interface Pool {
  readonly address: string
  /** The exchange's label. */
  readonly exchange: string
  readonly token: string
  readonly quote: string
  /**
   * Time of a search (Unix milliseconds) that did not find the pool; undefined if the first search for its token found
   * it.
   */
  readonly absentAt?: number | undefined
}

export const poolList = z.array(
  z.object({
    address: z.string(),
    exchange: z.string(),
    token: z.string(),
    quote: z.string(),
    absentAt: z.number().optional(),
  }),
)

const pairAbi = parseAbi(['function getPair(address,address) view returns (address)'])
const poolAbi = parseAbi(['function getPool(address,address,uint24) view returns (address)'])
// Hashed once instead of for each of thousands of calls.
const getPair = { abi: pairAbi, functionName: toFunctionSelector(pairAbi[0]) } as const
const getPool = { abi: poolAbi, functionName: toFunctionSelector(poolAbi[0]) } as const

const WORD = /^0x0{24}([0-9a-f]{40})$/i
/** Reply for an address without a contract. */
const NO_CONTRACT = '0x'
const ZERO_ADDRESS = '0'.repeat(40)

/** The found pools, and the error per token address whose search failed. */
export interface PoolSearch {
  readonly pools: readonly Pool[]
  readonly failed: ReadonlyMap<string, DataError>
}

/**
 * Queries every factory of the chain for the pools of each token with each quote token (docs/providers.md, section
 * 6.2). A pool of two quote tokens is found from both sides, and listed once with the quote token of the first find. A
 * call with an error or an unexpected reply affects only its token.
 */
export async function findPools(
  rpc: JsonRpc,
  chain: DexChain,
  tokens: readonly string[],
  signal: AbortSignal,
): Promise<PoolSearch> {
  const questions = tokens.flatMap((token) => toQuestions(chain, token))
  const replies = await rpc.batch(
    questions.map(({ call }) => call),
    signal,
  )
  const pools = new Map<string, Pool>()
  const failed = new Map<string, DataError>()
  for (const [index, { pool, call }] of questions.entries()) {
    const reply = replies[index] ?? { result: null }
    if ('error' in reply) {
      failed.set(pool.token, toRpcError(rpc.name, call.method, reply.error))
      continue
    }
    const [, found] = WORD.exec(String(reply.result)) ?? []
    if (found === undefined && reply.result !== NO_CONTRACT) {
      const text = `${rpc.name} ${call.method}: ${String(reply.result).slice(0, 80)} is no address of a pool`
      failed.set(pool.token, new DataError('provider_malformed', text))
    }
    // A zero address means that the pool does not exist.
    if (found === undefined || found === ZERO_ADDRESS) continue
    const address = `0x${found.toLowerCase()}`
    if (!pools.has(address)) pools.set(address, { address, ...pool })
  }
  return { pools: [...pools.values()], failed }
}

function toQuestions(chain: DexChain, token: string): { pool: Omit<Pool, 'address'>; call: RpcCall }[] {
  const quotes = chain.quotes.filter(({ address }) => address !== token)
  return chain.exchanges.flatMap(({ label, kind, factory }) =>
    quotes.flatMap(({ address: quote }) =>
      toCalldata(kind, token as `0x${string}`, quote as `0x${string}`).map((data) => ({
        pool: { exchange: label, token, quote },
        call: { method: 'eth_call', params: [{ to: factory, data }, 'latest'] },
      })),
    ),
  )
}

function toCalldata(kind: 'v2' | 'v3', token: `0x${string}`, quote: `0x${string}`): string[] {
  if (kind === 'v2') return [encodeFunctionData({ ...getPair, args: [token, quote] })]
  return V3_FEES.map((fee) => encodeFunctionData({ ...getPool, args: [token, quote, fee] }))
}
