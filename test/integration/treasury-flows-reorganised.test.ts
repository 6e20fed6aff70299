import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { loadRegistry } from '../../shared/registry/registry.ts'
import treasuryFlowsJob from '../../workers/jobs/treasury-flows.ts'
import { runJob } from '../../workers/run/runner.ts'
import { countCases, SEED } from '../support/cases.ts'
import { toPendingReport } from '../support/pending-report.ts'
import { createPipeline } from '../support/pipeline.ts'
import { createRandom } from '../support/random.ts'
import type { Chain, ChainLog } from '../upstream/chain.ts'
import { createLoggedChain } from '../upstream/logged-chain.ts'

const DAY = 86_400_000
const SLOT = Date.parse('2026-05-06T00:00:00Z')
const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'
const USDC = '0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48'
const SECONDS = 12
/** The block of the slot's start. */
const AT_SLOT = 1_000_000
const DEPTH = 12

const all = loadRegistry()
const ens = all.daoBySlug.get('ens')
if (ens === undefined) throw new Error('no DAO ens')
const registry = { ...all, daos: [ens] }
const [wallet] = ens.treasuries.filter(({ role = 'wallet', chain }) => role === 'wallet' && chain === 'ethereum')

const word = (value: bigint | string) =>
  (typeof value === 'string' ? value.slice(2) : value.toString(16)).padStart(64, '0')
const toTime = (block: number) => SLOT + (block - AT_SLOT) * SECONDS * 1000

/** A payment to or from the wallet; the transaction is also its place in the block, so that no two are the same. */
const toLog = (block: number, transaction: number, units: number, isOut: boolean): ChainLog => {
  const parties = [wallet?.address ?? '', `0x${(7 + (transaction % 5)).toString(16).padStart(40, '0')}`]
  const topics = (isOut ? parties : parties.reverse()).map((party) => `0x${word(party)}`)
  return {
    ...{ address: USDC, topics: [TRANSFER, ...topics], data: `0x${word(BigInt(units))}`, blockNumber: block },
    ...{ transactionHash: `0x${word(BigInt(transaction))}`, transactionIndex: transaction, logIndex: transaction },
  }
}

/**
 * Transfers of the blocks up to `head`, and the same chain after a reorganisation of its last blocks: their transactions are
 * gone, moved to another block, have other quantities, or are new. Both have the same earlier blocks; the new one goes on.
 */
function toChains(random: ReturnType<typeof createRandom>, head: number) {
  const { below, chance } = random
  const first = head - DEPTH + 1
  let transaction = 1
  const create = (from: number, to: number, count: number) =>
    Array.from({ length: count }, () => {
      transaction += 1
      return toLog(from + below(to - from + 1), transaction, 1 + below(1e9), chance(0.5))
    })
  const common = create(head - 4_000, first - 1, 30)
  const gone = create(first, head, 20)
  const moved = gone.flatMap((log): ChainLog[] => {
    if (chance(0.3)) return []
    const block = first + below(DEPTH)
    if (chance(0.5)) return [{ ...log, blockNumber: block }]
    return [{ ...log, data: `0x${word(BigInt(1 + below(1e9)))}` }]
  })
  const fresh = create(first, head, 10)
  const later = create(head + 1, head + 3_000, 20)
  return { before: [...common, ...gone], after: [...common, ...moved, ...fresh, ...later], gone }
}

const toRow = ({ transactionHash, data, blockNumber }: ChainLog) =>
  [transactionHash, BigInt(data), blockNumber, new Date(toTime(blockNumber)).toISOString()].join(' ')

const stored = z.object({ row: z.string() })

describe('transfers of a treasury after a reorganisation of 12 blocks', () => {
  const cases = Array.from({ length: countCases(2) }, (_, n) => n)
  it.each(
    cases.flatMap((n) => [
      // The head is a block after the start of the slot, which is thus among the reorganised blocks.
      { n, finalizedTag: true, head: AT_SLOT + 5 },
      // A later run of the slot, before its end is final.
      { n, finalizedTag: false, head: AT_SLOT + 70 },
    ]),
  )('are those of the new chain: case $n, finalized tag $finalizedTag', async ({ n, finalizedTag, head }) => {
    const { before, after, gone } = toChains(createRandom(SEED + 1_000 * n + head), head)
    const open = (logs: readonly ChainLog[]) =>
      createLoggedChain({
        ...{ logs, pools: [], habits: { finalizedTag } },
        times: new Map([-50_000, 50_000].map((at) => [AT_SLOT + at, toTime(AT_SLOT + at) / 1000])),
      })
    let logs = before
    const chain: Chain = {
      ...open([]),
      logs: (from, to, addresses) => open(logs).logs(from, to, addresses),
      allLogs: (from, to) => open(logs).allLogs?.(from, to) ?? [],
      transaction: (hash) => open(logs).transaction(hash),
    }
    const pipeline = await createPipeline({
      ...{ registry, now: toTime(head) + 1_000, chains: { ethereum: chain } },
      settings: { ETHERSCAN_CHAINS: 'polygon', BLOCKSCOUT_CHAINS: 'base' },
    })
    try {
      // Both runs share one process, so blocks that the first run cached would reappear in the second.
      const connection = treasuryFlowsJob.connect(pipeline.context)
      const collect = (slot: number) =>
        runJob(treasuryFlowsJob, connection, pipeline.context, { kind: 'slot', slot }).catch(toPendingReport)
      const read = async () => {
        const rows = await pipeline.database.db.rows({
          name: 'flows',
          sql: `SELECT concat(transaction_hash, ' ', toString(base_units), ' ', toString(block_number), ' ',
            replaceOne(toString(recorded_at), ' ', 'T'), 'Z') AS row FROM treasury_flows FINAL WHERE dao = {dao: UInt64}`,
          params: { dao: ens.key },
          schema: stored,
        })
        return rows.map(({ row }) => row).sort()
      }
      await collect(SLOT)
      const early = await read()
      expect(early.length).toBeGreaterThan(10)
      const orphaned = new Set(gone.map(({ transactionHash }) => transactionHash))
      expect(early.filter((row) => orphaned.has(row.split(' ')[0] ?? ''))).toEqual([])

      logs = after
      pipeline.clock.now = SLOT + DAY + 3_600_000
      await collect(SLOT + DAY)
      const expected = after.filter(({ blockNumber }) => toTime(blockNumber) >= SLOT - DAY).map(toRow)
      expect(await read()).toEqual(expected.sort())
      const rows = await pipeline.database.db.rows({
        name: 'doubled',
        sql: 'SELECT transaction_hash AS row FROM treasury_flows GROUP BY row HAVING uniqExact(block_number, base_units) > 1',
        schema: stored,
      })
      expect(rows).toEqual([])
    } finally {
      await pipeline.close()
    }
  })
})
