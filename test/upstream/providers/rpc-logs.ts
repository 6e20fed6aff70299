import { z } from 'zod'
import type { Chain, ChainLog, NodeHabits } from '../chain.ts'
import { RpcRefusal } from './rpc-refusal.ts'

const oneOrMany = z.union([z.string().transform((one) => [one]), z.array(z.string())])
const filter = z.object({
  address: oneOrMany.optional(),
  topics: z.array(oneOrMany.nullable()).default([]),
  fromBlock: z.string().transform(Number),
  toBlock: z.string().transform(Number),
})

const MOST_LOGS = 10_000
const toHex = (value: number) => `0x${value.toString(16)}`

/** Eth_getLogs with the errors of real nodes: invalid ranges, too many blocks, too many logs. */
export function getLogs(input: unknown, chain: Chain, head: number): unknown {
  const { address, topics, fromBlock, toBlock } = filter.parse(input)
  const { mostBlocks = Number.POSITIVE_INFINITY, mostLogs = MOST_LOGS } = chain.habits
  if (fromBlock > toBlock) throw new RpcRefusal(-32602, 'invalid block range params')
  if (toBlock > head) throw new RpcRefusal(-32602, 'block range extends beyond current head block')
  if (fromBlock < (chain.habits.firstLogs ?? 0)) throw new RpcRefusal(4444, 'pruned history unavailable')
  if (toBlock - fromBlock >= mostBlocks) {
    throw refuseRange(chain.habits.host, mostBlocks, fromBlock, toBlock)
  }
  const addresses = new Set(address?.map((one) => one.toLowerCase()))
  const own =
    address === undefined ? (chain.allLogs?.(fromBlock, toBlock) ?? []) : chain.logs(fromBlock, toBlock, addresses)
  const found = own.filter((log) => fits(log, topics))
  if (found.length > mostLogs) throw new RpcRefusal(-32005, `query returned more than ${mostLogs} results`)
  return found.map((log) => {
    const spoiled = chain.habits.spoil?.(log)
    return spoiled === undefined ? toRpcLog(log, chain) : spoiled
  })
}

/** Error codes, statuses and messages of node hosts for a range of too many blocks. */
function refuseRange(host: NodeHabits['host'], most: number, from: number, to: number): RpcRefusal {
  const width = to - from + 1
  switch (host) {
    case 'alchemy': {
      const works = `this block range should work: [${toHex(from)}, ${toHex(from + most - 1)}]`
      const says = `Under the Free tier plan, you can make eth_getLogs requests with up to a ${most} block range.`
      return new RpcRefusal(-32600, `${says} Based on your parameters, ${works}.`, 400)
    }
    case 'infura':
      return new RpcRefusal(-32602, `range ${width} exceeds limit of ${most}`)
    case 'quicknode':
      return new RpcRefusal(-32614, `eth_getLogs is limited to a ${most.toLocaleString('en')} range`, 413)
    case 'drpc':
      return new RpcRefusal(35, `ranges over ${most} blocks are not supported on freetier`)
    case undefined:
      return new RpcRefusal(-32000, `eth_getLogs is limited to a ${most} blocks range`)
  }
}

/** Each position accepts any of its topics; null accepts every topic. */
function fits({ topics }: ChainLog, expected: readonly (readonly string[] | null)[]): boolean {
  return expected.every((choices, at) => choices === null || choices.includes(topics[at] ?? ''))
}

export function toRpcLog(log: ChainLog, chain: Pick<Chain, 'habits' | 'timeOf'>) {
  const { logTimes = true } = chain.habits
  const time = logTimes === false ? null : logTimes === 'zero' ? 0 : chain.timeOf(log.blockNumber)
  return {
    address: log.address,
    topics: log.topics,
    data: log.data,
    blockNumber: toHex(log.blockNumber),
    transactionHash: log.transactionHash,
    transactionIndex: toHex(log.transactionIndex),
    blockHash: `0x${log.blockNumber.toString(16).padStart(64, '0')}`,
    ...(time === null ? {} : { blockTimestamp: toHex(time) }),
    logIndex: toHex(log.logIndex),
    removed: log.removed ?? false,
  }
}
