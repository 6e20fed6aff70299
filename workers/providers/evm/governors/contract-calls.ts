import type { DataError } from '../../../../shared/errors.ts'
import type { Node } from '../logs/node.ts'
import { type RpcCall, toRpcError } from '../rpc/json-rpc.ts'

/** A call of a view of a contract: at the newest block, or at one of the past. */
export interface ContractCall {
  readonly to: string
  readonly data: string
  readonly block?: number
}

/** The data that a contract returned, or the error of the contract or its node. */
export type ContractReply = { readonly data: unknown } | { readonly error: DataError }

/** Whether a later call may succeed, because the node was busy. Any other error is the answer of the contract. */
export const isTransient = (reply: ContractReply): boolean =>
  'error' in reply && reply.error.code === 'provider_unavailable'

/** Sends the calls in batches; undefined has no call and no reply. */
export async function callContracts(
  node: Node,
  calls: readonly (ContractCall | undefined)[],
  signal: AbortSignal,
): Promise<(ContractReply | undefined)[]> {
  const sent = calls.flatMap((call, at) => (call === undefined ? [] : [{ call, at }]))
  if (sent.length === 0) return []
  const requests = sent.map(({ call: { to, data, block } }): RpcCall => {
    const tag = block === undefined ? 'latest' : `0x${block.toString(16)}`
    return { method: 'eth_call', params: [{ to, data }, tag] }
  })
  const replies = await node.rpc.batch(requests, signal)
  const found = new Map<number, ContractReply>()
  for (const [index, { at }] of sent.entries()) {
    const reply = replies[index]
    if (reply === undefined) continue
    found.set(
      at,
      'error' in reply ? { error: toRpcError(node.rpc.name, 'eth_call', reply.error) } : { data: reply.result },
    )
  }
  return calls.map((_, at) => found.get(at))
}
