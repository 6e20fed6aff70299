import { afterEach, describe, expect, it } from 'vitest'
import { toBucketStart } from '../../shared/intervals.ts'
import type { Governor } from '../../shared/registry/entities.ts'
import governors from '../../workers/jobs/governors.ts'
import { runJob } from '../../workers/run/runner.ts'
import type { Voter } from '../support/governance-records.ts'
import { logAt, toGovernorChain, toYoungRegistry } from '../support/governor-chain.ts'
import {
  createGovernorPipeline,
  ENS,
  type GovernorPipeline,
  idOf,
  proposal,
  registry,
  startGovernors,
  toQuery,
  voterOf,
} from '../support/governor-pipeline.ts'
import type { ChainLog } from '../upstream/chain.ts'
import { encodeVote } from '../upstream/governor-logs.ts'
import { nowAt, ONE } from '../upstream/small-chain.ts'

let pipeline: GovernorPipeline
afterEach(() => pipeline?.close())

describe('governor votes of a chain', () => {
  const created = logAt(10, ENS.address, proposal(1n, [20, 5_000]))
  const cast = (n: number, voter: number, support: number, more: Partial<ChainLog> = {}) =>
    logAt(n, ENS.address, encodeVote(voterOf(voter), 1n, support, BigInt(voter) * ONE), more)

  it.each([
    ['a node that knows what is final', true, 60],
    ['one that does not', false, 8],
  ])('drop all votes of reorganised blocks, from %s', async (_, finalizedTag, depth) => {
    const n = 1_000 - depth
    let logs = [created, cast(500, 1, 1), cast(n, 2, 1), cast(n, 3, 1, { logIndex: 1 })]
    const chain = toGovernorChain([], { habits: { finalizedTag } })
    pipeline = await startGovernors(1_000, {
      ...chain,
      logs: (from, to, addresses) => toGovernorChain(logs).logs(from, to, addresses),
    })
    await pipeline.collectGovernors()
    const publish = async () => (await pipeline.votesOf('ens')).map(({ voter, choice }) => [voter, choice])
    expect(await publish()).toEqual([[voterOf(1), 1]])
    // The second voter voted differently, the third never voted, and a fourth was added.
    logs = [created, cast(500, 1, 1), cast(n + 1, 2, 0), cast(n + 2, 4, 2)]
    pipeline.clock.now = nowAt(1_100)
    await pipeline.collectGovernors()
    expect(await publish()).toEqual([
      [voterOf(4), 3],
      [voterOf(2), 2],
      [voterOf(1), 1],
    ])
    expect((await pipeline.proposalsOf('ens'))[0]).toMatchObject({ scores: [1, 2, 4], votes: 3 })
  })

  it('include logs that the node missed before, but not removed ones', async () => {
    const late = cast(900, 2, 0)
    let logs = [created, cast(500, 1, 1), cast(901, 3, 1, { removed: true })]
    pipeline = await startGovernors(1_000, {
      ...toGovernorChain([]),
      logs: (from, to, addresses) => toGovernorChain(logs).logs(from, to, addresses),
    })
    await pipeline.collectGovernors()
    expect(await pipeline.votesOf('ens')).toHaveLength(1)
    logs = [...logs, late]
    pipeline.clock.now = nowAt(1_005)
    await pipeline.collectGovernors()
    expect((await pipeline.votesOf('ens')).map(({ voter }) => voter)).toEqual([voterOf(2), voterOf(1)])
    expect((await pipeline.proposalsOf('ens'))[0]).toMatchObject({ scores: [1, 2, 0], votes: 2 })
  })

  it('continue after a node failure, and are not served before the first complete reading', async () => {
    pipeline = await startGovernors(1_000, toGovernorChain([created, cast(500, 1, 1), cast(1_500, 2, 1)]))
    pipeline.upstream.faults.set('rpc', { kind: 'status', status: 503 })
    await expect(pipeline.collectGovernors()).rejects.toMatchObject({ code: 'provider_unavailable' })
    expect(await pipeline.get(`/votes${toQuery('ens')}`, 404)).toMatchObject({
      code: 'no_data',
      detail: expect.stringContaining('Its governor was not read to its end yet'),
    })
    pipeline.upstream.faults.clear('rpc')
    await pipeline.collectGovernors()
    expect(await pipeline.votesOf('ens')).toHaveLength(1)
    pipeline.clock.now = nowAt(1_700)
    await pipeline.collectGovernors()
    expect(await pipeline.votesOf('ens')).toHaveLength(2)
  })

  it("fail with a reason if the node's block limit would take weeks, and other governors are still read", async () => {
    const chain = toGovernorChain([created, cast(500, 1, 1)], { habits: { host: 'alchemy', mostBlocks: 10 } })
    pipeline = await startGovernors(1_000, chain)
    const run = (change: Parameters<typeof toYoungRegistry>[0]) => {
      const slot = toBucketStart(pipeline.clock.now, '1h')
      const context = { ...pipeline.context, registry: toYoungRegistry(change) }
      return runJob(governors, governors.connect(context), context, { kind: 'slot', slot, again: true })
    }
    const elsewhere = ['aave', 'arbitrum', 'gmx', 'livepeer', 'optimism', 'venus']
    const isOther = (slug: string) => slug !== 'rarible' && !elsewhere.includes(slug)
    expect(await run((slug, own) => (isOther(slug) ? own : []))).toMatchObject({ uncovered: 0 })
    const early = (slug: string, own: Governor[]) => own.map((one) => (isOther(slug) ? one : { ...one, fromBlock: 0 }))
    expect(await run((slug, own) => (elsewhere.includes(slug) ? [] : early(slug, own)))).toMatchObject({
      uncovered: 1,
    })
    expect(await pipeline.notes()).toMatchObject([
      {
        entity: registry.daoBySlug.get('rarible')?.key,
        reason: expect.stringMatching(
          /gives 10 blocks a call: RPC_URLS needs a node with wider pages, 19800\d+ blocks/,
        ),
      },
    ])
    pipeline.changeFeed.commit('governors')
    expect(await pipeline.votesOf('ens')).toHaveLength(1)
  })

  it('are reported as unserved without a node, with the setting', async () => {
    pipeline = await startGovernors(1_000, toGovernorChain([created]))
    expect(await pipeline.collectGovernors()).toMatchObject({ uncovered: 6 })
    const notes = await pipeline.notes()
    const ofArbitrum = { arbitrum: 'arbitrum', gmx: 'arbitrum', livepeer: 'arbitrum' }
    const chains = { aave: 'polygon', ...ofArbitrum, optimism: 'optimism', venus: 'bnb' }
    const expected = Object.entries(chains).map(([slug, chain]) => [
      registry.daoBySlug.get(slug)?.key,
      expect.stringContaining(`RPC_URLS names no node of ${chain}`),
    ])
    expect(notes.map(({ entity, reason }) => [entity, reason]).sort()).toEqual(expected.sort())
    expect(await pipeline.get(`/proposals?id=${idOf('arbitrum')}`, 404)).toMatchObject({
      detail: expect.stringContaining('use source=governor'),
    })
  })
})

describe('governors of a simulated world', () => {
  it('have all votes, also when read repeatedly, and scores are the sums of votes', async () => {
    pipeline = await createGovernorPipeline({ now: Date.parse('2024-05-06T07:01:00Z') })
    const { rows } = await pipeline.collectGovernors()
    expect(rows).toBeGreaterThan(300)
    for (const slug of ['compound', 'uniswap', 'ens', 'truefi']) {
      const [proposals, votes] = [await pipeline.proposalsOf(slug), await pipeline.allVotesOf(slug)]
      expect(proposals.length, slug).toBeGreaterThan(3)
      const voters = await pipeline.get<Voter[]>(`/voters${toQuery(slug)}`)
      expect(voters.reduce((sum, voter) => sum + voter.votes, 0)).toBe(votes.length)
      expect(new Set(votes.map(({ voter }) => voter)).size).toBe(voters.length)
      for (const { _id, scores, scoresTotal, votes: count, outcome, state } of proposals) {
        const cast = votes.filter((vote) => vote.proposal === _id)
        const toScore = (number: number) =>
          cast.reduce((sum, vote) => sum + (vote.choice === number ? vote.votingPower : 0), 0)
        expect(count).toBe(cast.length)
        expect(scores).toEqual([1, 2, 3].slice(0, scores.length).map(toScore))
        expect(scoresTotal).toBe(scores.reduce((sum, score) => sum + score, 0))
        if (outcome !== null) expect(state).toBe('closed')
        if (outcome === 'executed') expect(scores[0]).toBeGreaterThan(scores[1] ?? 0)
      }
    }
    const first = await pipeline.dump()
    await pipeline.collectGovernors()
    expect(await pipeline.dump()).toEqual(first)
  })
})
