import { decodeAbiParameters } from 'viem/utils'
import { MOST_SYMBOL } from '../../../shared/datasets/treasury.ts'
import { isThrottled, type JsonRpc, type RpcReply, toRpcError } from './rpc/json-rpc.ts'

/** The facts that a token's contract reports. Decimals are null if it has none. */
export interface TokenFacts {
  readonly symbol: string
  readonly decimals: number | null
}

const DECIMALS = '0x313ce567'
const SYMBOL = '0x95d89b41'
const MOST_DECIMALS = 77

/** Reads decimals and symbols of contracts from a node. @throws DataError if the node is throttled */
export async function readTokenFacts(
  rpc: JsonRpc,
  contracts: readonly string[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, TokenFacts>> {
  const toCall = (to: string, data: string) => ({ method: 'eth_call', params: [{ to, data }, 'latest'] })
  const replies = await rpc.batch(
    contracts.flatMap((contract) => [toCall(contract, DECIMALS), toCall(contract, SYMBOL)]),
    signal,
  )
  return new Map(
    contracts.map((contract, at) => [
      contract,
      { decimals: toDecimals(readHex(rpc, replies[at * 2])), symbol: toSymbol(readHex(rpc, replies[at * 2 + 1])) },
    ]),
  )
}

/** A contract without the function refuses the call, which is its answer. */
function readHex(rpc: JsonRpc, reply: RpcReply | undefined): string {
  if (reply !== undefined && 'error' in reply) {
    if (isThrottled(reply.error) || reply.error.isUnreadable) throw toRpcError(rpc.name, 'eth_call', reply.error)
    return ''
  }
  const result = reply?.result
  return typeof result === 'string' && /^0x[0-9a-f]*$/i.test(result) ? result.slice(2) : ''
}

function toDecimals(hex: string): number | null {
  if (hex.length !== 64) return null
  const decimals = BigInt(`0x${hex}`)
  return decimals <= MOST_DECIMALS ? Number(decimals) : null
}

/** The longest hexadecimal text of a symbol that is decoded: early tokens return 32 bytes, others a text. */
const MOST_HEX = 64 * 2 + MOST_SYMBOL * 8

function toSymbol(hex: string): string {
  if (hex.length < 64 || hex.length > MOST_HEX) return ''
  if (hex.length === 64) return Buffer.from(hex, 'hex').toString('utf8').replaceAll('\0', '')
  try {
    return decodeAbiParameters([{ type: 'string' }], `0x${hex}`)[0]
  } catch {
    // The contract's own bytes, which need not be a text.
    return ''
  }
}
