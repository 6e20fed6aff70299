import { expect, it } from 'vitest'
import { readStretch } from '../../workers/providers/evm/logs/contract-logs.ts'
import { createPager } from '../../workers/providers/evm/logs/log-pages.ts'
import type { Node, RpcLog } from '../../workers/providers/evm/logs/node.ts'
import { countCases, SEED } from '../support/cases.ts'
import { createRandom } from '../support/random.ts'

const { signal } = new AbortController()
const LAST = 2_000

/** A node with some logs in some blocks, in no order. */
function createNode(stored: readonly number[]): Node {
  const logs: Node['logs'] = async (_, { from, to }) =>
    stored.flatMap((blockNumber, logIndex) =>
      blockNumber < from || blockNumber > to ? [] : [{ blockNumber, logIndex } as RpcLog],
    )
  return { pager: createPager(), logs } as Node
}

it.each(Array.from({ length: countCases(20) }, (_, nth) => SEED + nth))(
  'reads every log once, however many a reading may take (seed %d)',
  async (seed) => {
    const { below } = createRandom(seed)
    const stored = Array.from({ length: 1 + below(300) }, () => 1 + below(below(2) === 0 ? LAST : 40))
    const node = createNode(stored)
    const found: number[] = []
    for (let from = 1; from <= LAST; ) {
      const most = 1 + below(60)
      const { logs, end } = await readStretch(node, { contracts: [], topics: [], from, to: LAST }, most, signal)
      expect(end).toBeGreaterThanOrEqual(from)
      expect(logs.every(({ blockNumber }) => blockNumber >= from && blockNumber <= end)).toBe(true)
      for (const { logIndex } of logs) found.push(logIndex)
      from = end + 1
    }
    expect(found.sort((a, b) => a - b)).toEqual(stored.map((_, at) => at))
  },
)
