import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { formatUnits } from 'viem/utils'
import { afterEach, describe, expect, it } from 'vitest'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { createGovernorPipeline, type GovernorPipeline, idOf, toQuery } from '../support/governor-pipeline.ts'
import { createLoggedChain } from '../upstream/logged-chain.ts'
import { OPTIMISM, readOptimismLogs, readRows, readUniswapLogs, UNISWAP } from '../upstream/recorded-governors.ts'

const dataDir = process.env.UPSTREAM_DATA_DIR || join(import.meta.dirname, '../../../shared/data')
const isRecorded = existsSync(join(dataDir, 'governance-dao-node'))
if (!isRecorded) console.log(`recorded governors are not tested: there are none in ${dataDir}`)

const [FIRST, LAST] = [Date.parse('2021-08-31T00:00:00Z') / 1000, Date.parse('2025-03-20T00:00:00Z') / 1000]

let pipeline: GovernorPipeline
afterEach(() => pipeline?.close())

/** The shipped registry with one governor of one DAO. */
function only(slug: string, address: string) {
  const registry = loadRegistry()
  const toOwn = (dao: (typeof registry.daos)[number]) => ({
    ...dao,
    governors: dao.slug === slug ? dao.governors.filter((one) => one.address === address) : [],
  })
  const daos = registry.daos.map(toOwn)
  return {
    ...registry,
    daos,
    daoById: new Map(daos.map((dao) => [dao.id, dao])),
    daoBySlug: new Map(daos.map((dao) => [dao.slug, dao])),
  }
}

interface Exact {
  _id: string
  title: string
  votes: number
  scoresTotal: number
  scoresExact: string[]
  scoresTotalExact: string
  state: string
}

describe.skipIf(!isRecorded)("recorded events of Uniswap's governor", () => {
  it('are proposals and votes, equal to the wei, also if logs are repeated', async () => {
    const logs = readUniswapLogs(dataDir)
    const times = new Map([
      [13_129_516, FIRST],
      [22_200_000, LAST],
    ])
    const ethereum = createLoggedChain({ logs: [...logs, ...logs], times, pools: [] })
    pipeline = await createGovernorPipeline({
      now: (LAST + 3600) * 1000,
      registry: only('uniswap', UNISWAP),
      chains: { ethereum },
    })
    expect(await pipeline.collectGovernors()).toMatchObject({ rejected: 0 })
    const proposals = await pipeline.get<Exact[]>(`/proposals${toQuery('uniswap')}&exact=true`)
    expect(proposals).toHaveLength(83)
    const [last] = proposals
    const cast = readRows(dataDir, 'uniswap_83_VoteCast')
    const sum = (support?: string) =>
      formatUnits(
        cast.reduce(
          (all, row) => all + (support === undefined || row.support === support ? BigInt(row.votes ?? '') : 0n),
          0n,
        ),
        18,
      )
    expect(last).toMatchObject({
      ...{ votes: 352, scoresTotal: 70_611_911.185979, state: 'closed' },
      ...{ scoresTotalExact: '70611911.185978996357211157', scoresExact: ['1', '0', '2'].map(sum) },
    })
    const votes = await pipeline.get<{ voter: string; votingPowerExact: string; votingPower: number }[]>(
      `/votes?proposal=${last?._id}&exact=true&limit=1000`,
    )
    const expected = new Map(cast.map(({ voter, votes: power = '' }) => [voter, formatUnits(BigInt(power), 18)]))
    expect(new Map(votes.map(({ voter, votingPowerExact }) => [voter, votingPowerExact]))).toEqual(expected)
    const voters = await pipeline.get<{ voter: string; lastVotingPowerExact: string }[]>(
      `/voters${toQuery('uniswap')}&exact=true`,
    )
    expect(new Map(voters.map(({ voter, lastVotingPowerExact }) => [voter, lastVotingPowerExact]))).toEqual(expected)
    expect(Object.keys(votes[0] ?? {})).not.toContain('source')
    const [usual] = await pipeline.get<object[]>(`/votes?id=${idOf('uniswap')}&source=governor&limit=1`)
    expect(Object.keys(usual ?? {})).not.toContain('votingPowerExact')
  })
})

describe.skipIf(!isRecorded)("recorded events of Optimism's governor", () => {
  it('are proposals of four event forms', async () => {
    const logs = readOptimismLogs(dataDir)
    const times = new Map([
      [71_801_427, Date.parse('2023-01-30T00:00:00Z') / 1000],
      [136_000_000, Date.parse('2025-05-20T00:00:00Z') / 1000],
    ])
    const optimism = { ...createLoggedChain({ logs, times, pools: [] }), chainId: 10 }
    const now = Date.parse('2025-05-19T00:00:00Z')
    pipeline = await createGovernorPipeline({
      ...{ now, registry: only('optimism', OPTIMISM), chains: { optimism }, nodes: ['ethereum', 'optimism'] },
    })
    expect(await pipeline.collectGovernors()).toMatchObject({ rejected: 0 })
    const proposals = await pipeline.proposalsOf('optimism')
    expect(proposals).toHaveLength(127)
    expect(proposals.filter(({ title }) => title === '')).toEqual([])
    expect(proposals.filter(({ state }) => state !== 'closed')).toEqual([])
  })
})
