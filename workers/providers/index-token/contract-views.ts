import { decodeFunctionResult, encodeFunctionData, parseAbi } from 'viem/utils'
import { z } from 'zod'
import { DataError } from '../../../shared/errors.ts'
import { checkAnswer } from '../answer.ts'
import { type JsonRpc, type RpcCall, type RpcReply, toRpcError } from '../evm/rpc/json-rpc.ts'

/** The contract views that are read (docs/providers.md, section 16). */
const abi = parseAbi([
  'function totalSupply() view returns (uint256)',
  'function decimals() view returns (uint8)',
  'function balanceOf(address) view returns (uint256)',
  'function getComponents() view returns (address[])',
  'function getTotalComponentRealUnits(address) view returns (int256)',
  'function latestRoundData() view returns (uint80, int256, uint256, uint256, uint80)',
])

type ViewName = (typeof abi)[number]['name']

const hexText = z.templateLiteral(['0x', z.string().regex(/^[0-9a-f]*$/i)])
const quantity = z.string().regex(/^0x[0-9a-f]+$/i, 'must be a hex quantity')

/** A call about the state at one block, with the parser of its reply. */
export interface StateQuestion<T> {
  readonly call: RpcCall
  read(rpc: JsonRpc, reply: RpcReply): T
}

/** Creates calls about the state at one block: all calls of one reading use the same block. */
export interface BlockState {
  readonly block: number
  view<T>(to: string, name: ViewName, args: readonly string[], answer: z.ZodType<T>): StateQuestion<T>
  balance(of: string): StateQuestion<bigint>
  /** Unix seconds. */
  time(): StateQuestion<number>
}

export function createBlockState(block: number): BlockState {
  const tag = `0x${block.toString(16)}`
  return {
    block,
    view: (to, name, args, answer) => ({
      call: { method: 'eth_call', params: [{ to, data: toData(name, args) }, tag] },
      read: (rpc, reply) => readView(rpc, name, answer, reply),
    }),
    balance: (of) => ({
      call: { method: 'eth_getBalance', params: [of, tag] },
      read: (rpc, reply) => BigInt(readResult(rpc, 'eth_getBalance', quantity, reply)),
    }),
    time: () => ({
      call: { method: 'eth_getBlockByNumber', params: [tag, false] },
      read: (rpc, reply) => {
        const header = readResult(rpc, 'eth_getBlockByNumber', z.object({ timestamp: quantity }).nullable(), reply)
        if (header !== null) return Number(header.timestamp)
        throw new DataError('provider_unavailable', `${rpc.name}: the node does not have block ${block} yet`)
      },
    }),
  }
}

/**
 * Returns the newest block minus `depth`, the number of blocks that a chain may revert.
 * @throws DataError as the JSON-RPC client does.
 */
export async function pinBlock(rpc: JsonRpc, depth: number, signal: AbortSignal): Promise<number> {
  const method = 'eth_blockNumber'
  const reply = await rpc.call({ method, params: [] }, signal)
  return Math.max(0, Number(readResult(rpc, method, quantity, reply)) - depth)
}

/** Sends several calls in one batch and parses all replies. */
export async function callAll<Questions extends readonly StateQuestion<unknown>[]>(
  rpc: JsonRpc,
  questions: Questions,
  signal: AbortSignal,
): Promise<{ [K in keyof Questions]: Questions[K] extends StateQuestion<infer T> ? T : never }> {
  const replies = await rpc.batch(
    questions.map(({ call }) => call),
    signal,
  )
  const answers = questions.map((question, at) => question.read(rpc, replies[at] ?? { result: null }))
  return answers as { [K in keyof Questions]: Questions[K] extends StateQuestion<infer T> ? T : never }
}

/**
 * Makes a call optional: if the contract returns an error, the result is undefined. A throttled node is still a
 * failure.
 */
export function orNone<T>(question: StateQuestion<T>): StateQuestion<T | undefined> {
  return {
    call: question.call,
    read: (rpc, reply) => {
      try {
        return question.read(rpc, reply)
      } catch (error) {
        if (error instanceof DataError && error.code !== 'provider_unavailable') return undefined
        throw error
      }
    },
  }
}

function toData(functionName: ViewName, args: readonly string[]): string {
  return encodeFunctionData({ abi, functionName, args } as Parameters<typeof encodeFunctionData>[0])
}

function readView<T>(rpc: JsonRpc, functionName: ViewName, answer: z.ZodType<T>, reply: RpcReply): T {
  const data = readResult(rpc, functionName, hexText, reply)
  const source = { provider: rpc.name, path: functionName }
  return checkAnswer(answer, decode(functionName, data, rpc.name), source)
}

/** An address without a contract returns an empty result. */
function decode(functionName: ViewName, data: `0x${string}`, name: string): unknown {
  try {
    return decodeFunctionResult({ abi, functionName, data })
  } catch (cause) {
    const said = data === '0x' ? 'there is no such contract' : 'an answer of another shape'
    throw new DataError('provider_malformed', `${name} ${functionName}: ${said}`, { cause })
  }
}

function readResult<T>(rpc: JsonRpc, method: string, schema: z.ZodType<T>, reply: RpcReply): T {
  if ('error' in reply) throw toRpcError(rpc.name, method, reply.error)
  return checkAnswer(schema, reply.result, { provider: rpc.name, path: method })
}
