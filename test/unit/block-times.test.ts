import { describe, expect, it } from 'vitest'
import { readBlockTimes, readLogTimes } from '../../workers/providers/evm/logs/block-times.ts'
import { type Block, createNode, type RpcLog } from '../../workers/providers/evm/logs/node.ts'
import type { JsonRpc, RpcCall } from '../../workers/providers/evm/rpc/json-rpc.ts'

const { signal } = new AbortController()
const toHex = (value: number) => `0x${value.toString(16)}`
const START = Date.parse('2024-05-06T00:00:00Z') / 1000
const timeAt = (number: number) => START + number * 12

/** A node that returns the blocks of `blockOf`, and the requested block numbers. */
function nodeThat(blockOf: (number: number) => Block) {
  const requests: number[] = []
  const reply = ({ params }: RpcCall) => {
    requests.push(Number(params[0]))
    const { number, timestamp } = blockOf(Number(params[0]))
    return { result: { number: toHex(number), timestamp: toHex(timestamp) } }
  }
  const rpc: JsonRpc = {
    name: 'rpc-ethereum',
    call: async (call) => reply(call),
    batch: async (calls) => calls.map(reply),
  }
  return { node: createNode(rpc), requests }
}

const logIn = (blockNumber: number, blockTimestamp?: number): RpcLog => ({
  ...{ address: '0xa', topics: [], data: '0x', transactionHash: '0x1', logIndex: 0, removed: false },
  ...{ blockNumber, blockTimestamp },
})

/** A node with the given timestamp in the header of block 9. */
const nodeWith = (timestamp: number) =>
  nodeThat((number) => ({ number, timestamp: number === 9 ? timestamp : timeAt(number) }))

describe('block times', () => {
  it('readBlockTimes() reads each header once', async () => {
    const { node, requests } = nodeThat((number) => ({ number, timestamp: timeAt(number) }))
    const timeOf = await readBlockTimes(node, [7, 9, 7], signal)
    expect([timeOf(7), timeOf(9)]).toEqual([timeAt(7), timeAt(9)])
    expect(requests).toEqual([7, 9])
  })

  it('readLogTimes() uses the timestamps of the logs if the node returns them', async () => {
    const { node, requests } = nodeThat((number) => ({ number, timestamp: timeAt(number) }))
    const timeOf = await readLogTimes(node, [logIn(7, 85), logIn(7), logIn(9)], signal)
    expect([timeOf(7), timeOf(9)]).toEqual([85, timeAt(9)])
    expect(requests).toEqual([9])
  })

  it('return an error for a block if the node returns a block of another number', async () => {
    const { node } = nodeThat((number) => ({ number: number === 9 ? 8 : number, timestamp: timeAt(number) }))
    for (const timeOf of [await readBlockTimes(node, [7, 9], signal), await readLogTimes(node, [logIn(9)], signal)])
      expect(timeOf(9)).toMatchObject({
        code: 'provider_malformed',
        message: 'rpc-ethereum: block 8 in place of block 9',
      })
    const timeOf = await readBlockTimes(node, [7], signal)
    expect(timeOf(7)).toBe(timeAt(7))
    expect(timeOf(10)).toMatchObject({ message: expect.stringContaining('block 10') })
  })

  it.each([
    ['zero', 0],
    ['before the first EVM chain', Date.parse('2015-07-29T00:00:00Z') / 1000],
    ['in milliseconds', START * 1000],
    ['in the future', Date.now() / 1000 + 3_600],
  ])('return an error for a timestamp %s', async (_, seconds) => {
    const timeOf = await readBlockTimes(nodeWith(Math.floor(seconds)).node, [7, 9], signal)
    expect(timeOf(7)).toBe(timeAt(7))
    expect(timeOf(9)).toMatchObject({ code: 'provider_malformed', message: expect.stringContaining('block 9') })
  })
})
