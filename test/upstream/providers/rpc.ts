import { z } from 'zod'
import type { Chain } from '../chain.ts'
import { jsonReply, type Provider, textReply } from '../exchange.ts'
import type { Asset } from '../world.ts'
import { callContract } from './rpc-contracts.ts'
import { getBalance } from './rpc-index-token.ts'
import { getLogs } from './rpc-logs.ts'
import { RpcRefusal } from './rpc-refusal.ts'

const request = z.object({ id: z.number(), method: z.string(), params: z.array(z.unknown()).default([]) })
const body = z.union([request, z.array(request)])

/** Distance of the finalized block from the newest: two epochs. */
const FINAL_DEPTH = 64

const toHex = (value: number) => `0x${value.toString(16)}`

/**
 * A JSON-RPC node of each chain, at `/rpc/<chain>`. Responses of a batch are in reverse order, as nodes may send them.
 * Source: docs/providers.md, section 6.
 */
export const rpc: Provider = {
  name: 'rpc',
  handle({ path, body: text, now }, world) {
    const chain = world.chain(path.slice(1))
    if (chain === null) return textReply('Not found', 404)
    const parsed = body.safeParse(JSON.parse(text))
    if (!parsed.success)
      return jsonReply({ jsonrpc: '2.0', id: null, error: { code: -32600, message: 'invalid request' } })
    const { mostCalls = Number.POSITIVE_INFINITY } = chain.habits
    if (Array.isArray(parsed.data) && parsed.data.length > mostCalls) return refuseBatch(mostCalls)
    const answer = (one: z.infer<typeof request>) => ({ id: one.id, ...reply(one, chain, world.assets, now) })
    if (Array.isArray(parsed.data)) return jsonReply(parsed.data.map(answer).reverse().map(toBody))
    const one = answer(parsed.data)
    return jsonReply(toBody(one), one.status)
  },
  failure: (status) =>
    jsonReply(
      { jsonrpc: '2.0', id: 1, error: { code: status, event: -33300, message: 'Too Many Requests', details: '' } },
      status,
    ),
  empty: () => jsonReply({ jsonrpc: '2.0', id: 0, result: null }),
}

function refuseBatch(most: number) {
  const message = `Batch of more than ${most} requests are not allowed on free tier, to use this feature register paid account`
  return jsonReply({ id: null, jsonrpc: '2.0', error: { message, code: 31 } }, 500)
}

const toBody = ({ id, body }: { id: number; body: object }) => ({ jsonrpc: '2.0', id, ...body })

function reply({ method, params }: z.infer<typeof request>, chain: Chain, assets: readonly Asset[], now: number) {
  try {
    return { status: 200, body: { result: answerMethod(method, params, chain, assets, now) } }
  } catch (error) {
    if (error instanceof RpcRefusal)
      return { status: error.status, body: { error: { code: error.code, message: error.message } } }
    throw error
  }
}

function answerMethod(
  method: string,
  params: readonly unknown[],
  chain: Chain,
  assets: readonly Asset[],
  now: number,
): unknown {
  const head = chain.headAt(now)
  switch (method) {
    case 'eth_chainId':
      return toHex(chain.chainId)
    case 'eth_blockNumber':
      return toHex(head)
    case 'eth_getBlockByNumber':
      return getBlock(String(params[0]), params[1] === true, chain, head)
    case 'eth_getLogs':
      return getLogs(params[0], chain, head)
    case 'eth_call':
      return callContract(params[0], chain, assets, toTime(params[1], chain, head))
    case 'eth_getBalance':
      return getBalance(chain, String(params[0]), toTime(params[1], chain, head))
    case 'eth_getTransactionByHash':
      return getTransaction(String(params[0]), chain, head)
    case 'eth_getTransactionByBlockNumberAndIndex':
      return (
        transactionsOf(chain, Number(params[0])).find(({ transactionIndex }) => transactionIndex === params[1]) ?? null
      )
    default:
      throw new RpcRefusal(-32601, `the method ${method} does not exist/is not available`)
  }
}

function getTransaction(hash: string, chain: Chain, head: number): unknown {
  const found = chain.transaction(hash)
  const { indexing, lacksTransaction } = chain.habits
  if (found === null || found.blockNumber > head || lacksTransaction?.(hash)) return null
  const state = indexing?.(hash)
  if (state === 'refusal') throw new RpcRefusal(-32000, 'transaction indexing is in progress')
  if (state === 'null') return null
  const from = state === 'no sender' ? null : found.from
  return { hash, blockNumber: toHex(found.blockNumber), from, input: '0x', value: '0x0' }
}

function transactionsOf(chain: Chain, block: number) {
  const found = chain.transactionsOf?.(block) ?? []
  return found
    .filter(({ hash }) => !chain.habits.lacksTransaction?.(hash))
    .map(({ hash, index, from }) => ({
      ...{ hash, from, blockNumber: toHex(block), transactionIndex: toHex(index), input: '0x', value: '0x0' },
    }))
}

/** The time of the requested block, in Unix milliseconds. */
function toTime(tag: unknown, chain: Chain, head: number): number {
  const number = tag === undefined || tag === 'latest' ? head : Number(tag)
  const time = number > head ? null : chain.timeOf(number)
  if (time === null) throw new RpcRefusal(-32000, 'header not found')
  return time * 1000
}

function getBlock(tag: string, isComplete: boolean, chain: Chain, head: number): unknown {
  if (tag === 'finalized' && chain.habits.finalizedTag === false) throw new RpcRefusal(-32602, 'unknown block tag')
  const number = tag === 'finalized' ? head - FINAL_DEPTH : tag === 'latest' ? head : Number(tag)
  const time = number > head ? null : chain.timeOf(number)
  if (time === null) return null
  return {
    number: toHex(number),
    timestamp: toHex(time),
    transactions: isComplete ? transactionsOf(chain, number) : [],
  }
}
