import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { formatUnits } from 'viem/utils'
import { afterEach, describe, expect, it } from 'vitest'
import { loadRegistry } from '../../shared/registry/registry.ts'
import delegations from '../../workers/jobs/delegations.ts'
import { createGovernorPipeline, type GovernorPipeline, idOf, voterOf } from '../support/governor-pipeline.ts'
import { encodeProposal, encodeVote } from '../upstream/governor-logs.ts'
import { createLoggedChain } from '../upstream/logged-chain.ts'
import { OPTIMISM, readOptimismPowers, readRows, readUniswapLogs, UNISWAP } from '../upstream/recorded-governors.ts'
import { hashOf } from '../upstream/small-chain.ts'

const dataDir = process.env.UPSTREAM_DATA_DIR || join(import.meta.dirname, '../../../shared/data')
const isRecorded = existsSync(join(dataDir, 'governance-dao-node'))
if (!isRecorded) console.log(`records of recorded delegates are not tested: there are none in ${dataDir}`)

let pipeline: GovernorPipeline
afterEach(() => pipeline?.close())

/** The shipped registry with one governor of one DAO, and no Snapshot spaces. */
function only(slug: string, address: string) {
  const registry = loadRegistry()
  const daos = registry.daos.map((dao) => ({
    ...{ ...dao, snapshotSpace: null, formerSnapshotSpaces: [] },
    governors: dao.slug === slug ? dao.governors.filter((one) => one.address === address) : [],
    votingToken: dao.slug === slug ? dao.votingToken : null,
  }))
  return {
    ...{ ...registry, daos, daoById: new Map(daos.map((dao) => [dao.id, dao])) },
    daoBySlug: new Map(daos.map((dao) => [dao.slug, dao])),
  }
}

type Row = Record<string, unknown>
const getAll = async (path: string) => {
  const rows = await pipeline.get<Row[]>(path)
  return new Map(rows.map((row) => [String(row.address), row]))
}
const toTokens = (units: bigint) => Number(formatUnits(units, 18))

describe.skipIf(!isRecorded)('records of 200 recorded delegates', () => {
  it("of Uniswap's last proposal equal an independent computation", async () => {
    const [first, last] = [Date.parse('2021-08-31T00:00:00Z') / 1000, Date.parse('2025-03-20T00:00:00Z') / 1000]
    const [firstBlock, lastBlock] = [13_129_516, 22_200_000]
    const timeOf = (block: number) =>
      first + Math.floor(((last - first) * (block - firstBlock)) / (lastBlock - firstBlock))
    const times = new Map([firstBlock, lastBlock].map((block) => [block, timeOf(block)]))
    const ethereum = createLoggedChain({ logs: readUniswapLogs(dataDir), times, pools: [] })
    const now = (last + 7_200) * 1000
    pipeline = await createGovernorPipeline({ now, registry: only('uniswap', UNISWAP), chains: { ethereum } })
    await pipeline.collectGovernors()
    const proposals = readRows(dataDir, 'uniswap_ProposalCreated')
    const end = timeOf(Number(proposals.find(({ id }) => id === '83')?.end_block))
    const cast = readRows(dataDir, 'uniswap_83_VoteCast')
    const sums = ['0', '1'].map((support) =>
      cast.reduce((sum, row) => sum + (row.support === support ? BigInt(row.votes ?? '') : 0n), 0n),
    )
    const leading = (sums[0] ?? 0n) > (sums[1] ?? 0n) ? '0' : '1'
    const found = await getAll(`/records?id=${idOf('uniswap')}&start=2021-01-01`)
    expect(found.size).toBe(cast.length)
    const votes = cast.slice(0, 200)
    for (const { voter = '', support = '', votes: power = '', block_number: block } of votes) {
      const at = timeOf(Number(block))
      expect(found.get(voter), voter).toMatchObject({
        ...{ votingPower: null, rank: null, proposals: 83, voted: 1, missed: 82, unknown: 0, participation: 1 / 83 },
        ...{ eligible: null, participationWhenEligible: null, powerCast: expect.closeTo(toTokens(BigInt(power)), 6) },
        ...{
          firstVoteAt: new Date(at * 1000).toISOString(),
          medianHoursBeforeEnd: expect.closeTo((end - at) / 3600, 9),
        },
        withMajorityShare: support === '2' ? null : Number(support === leading),
      })
    }
    const [{ voter } = {}] = votes
    const record = await pipeline.get<Row>(`/record?id=${idOf('uniswap')}&start=2021-01-01&address=${voter}`)
    expect(record).toMatchObject({ voted: 1, missed: 82, incomplete: [] })
    expect(record.missedProposals).toHaveLength(82)
  })

  it("of Optimism's token have the powers at two snapshots of an independent computation", async () => {
    const changes = readRows(dataDir, 'optimism_DelegateVotesChanged_first5000')
    const [T0, B0] = [Date.parse('2025-05-02T00:00:00Z') / 1000, 135_300_000]
    const timeOf = (block: number) => T0 + (block - B0) * 2
    const delegates = [...new Set(changes.map(({ delegate = '' }) => delegate))].slice(0, 200)
    /** The power of a delegate after the last change until a block. */
    const powerAt = (delegate: string, block: number) =>
      changes.reduce(
        (power, row) =>
          row.delegate === delegate && Number(row.block_number) <= block ? BigInt(row.new_balance ?? '') : power,
        0n,
      )
    const starts = [135_315_000, 135_335_000] as const
    const end = 135_345_000
    const at = (blockNumber: number, logIndex: number, event: { topics: readonly string[]; data: string }) => ({
      ...{ address: OPTIMISM, blockNumber, logIndex, transactionIndex: 0, ...event },
      transactionHash: hashOf(blockNumber * 1_000 + logIndex),
    })
    const proposals = starts.map((start, number) =>
      at(
        start - 10,
        number,
        encodeProposal({
          id: BigInt(number + 1),
          proposer: voterOf(1),
          start: BigInt(start),
          end: BigInt(end),
          description: 'A',
        }),
      ),
    )
    // Every third delegate votes on the second proposal.
    const voters = delegates.filter((_, number) => number % 3 === 0)
    const votes = voters.map((voter, number) =>
      at(starts[1] + 100, number + 10, encodeVote(voter, 2n, number % 2, powerAt(voter, starts[1]))),
    )
    const { logs } = readOptimismPowers(dataDir)
    const times = new Map([
      [71_801_427, Date.parse('2023-01-30T00:00:00Z') / 1000] as const,
      ...[B0, B0 + 200_000].map((block) => [block, timeOf(block)] as const),
    ])
    const optimism = {
      ...createLoggedChain({ logs: [...logs, ...proposals, ...votes], times, pools: [] }),
      chainId: 10,
    }
    pipeline = await createGovernorPipeline({
      ...{
        now: (timeOf(end) + 86_400) * 1000,
        registry: only('optimism', OPTIMISM),
        chains: { optimism },
        nodes: ['ethereum', 'optimism'],
      },
    })
    await pipeline.collectGovernors()
    await pipeline.collect(delegations)
    const found = await getAll(`/records?id=${idOf('optimism')}`)
    const LAST = Number.POSITIVE_INFINITY
    const last = new Map(
      [...new Set(changes.map(({ delegate = '' }) => delegate))].map((one) => [one, powerAt(one, LAST)]),
    )
    for (const delegate of delegates) {
      const powers = starts.map((start) => powerAt(delegate, start))
      const eligible = powers.filter((power) => power > 0n).length
      const hasVoted = voters.includes(delegate)
      const own = last.get(delegate) ?? 0n
      if (own === 0n && !hasVoted) {
        expect(found.has(delegate), delegate).toBe(false)
        continue
      }
      const held = toTokens(powers.reduce((sum, power) => sum + power, 0n))
      const castPower = hasVoted ? toTokens(powers[1] ?? 0n) : 0
      expect(found.get(delegate), delegate).toMatchObject({
        ...{ proposals: 2, voted: hasVoted ? 1 : 0, missed: hasVoted ? 1 : 2, eligible },
        participationWhenEligible: eligible === 0 ? null : (hasVoted && (powers[1] ?? 0n) > 0n ? 1 : 0) / eligible,
        participationByPower: held === 0 ? null : expect.closeTo(castPower / held, 9),
        rank: own === 0n ? null : 1 + [...last.values()].filter((power) => power > own).length,
      })
    }
  })
})
