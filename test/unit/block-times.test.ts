import { describe, expect, it } from 'vitest'
import { readBlockTimes, readLogTimes } from '../../workers/providers/evm/logs/block-times.ts'
import { type Block, createNode, type RpcLog } from '../../workers/providers/evm/logs/node.ts'
import type { JsonRpc, RpcCall } from '../../workers/providers/evm/rpc/json-rpc.ts'

const { signal } = new AbortController()
const toHex = (value: number) => `0x${value.toString(16)}`

/** A node that answers for each block with what `tell` says, and the numbers of the blocks that it was asked for. */
function nodeThat(tell: (number: number) => Block) {
  const asked: number[] = []
  const reply = ({ params }: RpcCall) => {
    asked.push(Number(params[0]))
    const { number, timestamp } = tell(Number(params[0]))
    return { result: { number: toHex(number), timestamp: toHex(timestamp) } }
  }
  const rpc: JsonRpc = {
    name: 'rpc-ethereum',
    call: async (call) => reply(call),
    batch: async (calls) => calls.map(reply),
  }
  return { node: createNode(rpc), asked }
}

const logIn = (blockNumber: number, blockTimestamp?: number): RpcLog => ({
  ...{ address: '0xa', topics: [], data: '0x', transactionHash: '0x1', logIndex: 0, removed: false },
  ...{ blockNumber, blockTimestamp },
})

describe('the times of blocks', () => {
  it('are those of their headers, each asked for once', async () => {
    const { node, asked } = nodeThat((number) => ({ number, timestamp: number * 12 }))
    const timeOf = await readBlockTimes(node, [7, 9, 7], signal)
    expect([timeOf(7), timeOf(9)]).toEqual([84, 108])
    expect(asked).toEqual([7, 9])
  })

  it('are those of their logs where a node tells them there', async () => {
    const { node, asked } = nodeThat((number) => ({ number, timestamp: number * 12 }))
    const timeOf = await readLogTimes(node, [logIn(7, 85), logIn(7), logIn(9)], signal)
    expect([timeOf(7), timeOf(9)]).toEqual([85, 108])
    expect(asked).toEqual([9])
  })

  it('are never made up: a block without one is named', async () => {
    const { node } = nodeThat((number) => ({ number: number === 9 ? 8 : number, timestamp: number * 12 }))
    const problem = expect.objectContaining({
      code: 'provider_malformed',
      message: expect.stringContaining('rpc-ethereum: the node did not tell when block 9 was made'),
    })
    for (const timeOf of [await readBlockTimes(node, [7, 9], signal), await readLogTimes(node, [logIn(9)], signal)])
      expect(() => timeOf(9)).toThrow(problem)
    const timeOf = await readBlockTimes(node, [7], signal)
    expect(timeOf(7)).toBe(84)
    expect(() => timeOf(10)).toThrow('block 10')
  })
})
