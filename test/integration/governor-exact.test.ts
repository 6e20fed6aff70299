import { formatUnits } from 'viem/utils'
import { afterEach, describe, expect, it } from 'vitest'
import delegations from '../../workers/jobs/delegations.ts'
import { logAt, toGovernorChain } from '../support/governor-chain.ts'
import {
  AUTHOR,
  BRAVO,
  blockOf,
  type GovernorPipeline,
  idOf,
  proposal,
  startGovernors,
  toQuery,
  voterOf,
} from '../support/governor-pipeline.ts'
import { createRandom } from '../support/random.ts'
import { encodePower, encodeProposal, encodeVote } from '../upstream/governor-logs.ts'
import { nowAt, UNI } from '../upstream/small-chain.ts'

let pipeline: GovernorPipeline
afterEach(() => pipeline?.close())

/** Whole numbers with 26 digits, of which a float holds 16. */
const toPowers = (count: number, seed: number): bigint[] => {
  const { below } = createRandom(seed)
  return Array.from({ length: count }, () => BigInt(`1${Array.from({ length: 25 }, () => below(10)).join('')}`))
}

interface Exact {
  scores: number[]
  scoresExact: string[]
  scoresTotal: number
  scoresTotalExact: string
}

describe('numbers beside exact powers', () => {
  it('are the nearest ones of votes, voters and scores', async () => {
    const powers = toPowers(240, 1)
    const logs = Array.from({ length: 8 }, (_, at) => [
      logAt(10 + at, BRAVO.address, proposal(BigInt(at + 1), [20, 500])),
      ...powers
        .slice(30 * at, 30 * at + 30)
        .map((power, n) =>
          logAt(30 + n, BRAVO.address, encodeVote(voterOf(n), BigInt(at + 1), n % 3, power), { logIndex: at }),
        ),
    ]).flat()
    pipeline = await startGovernors(1_000, toGovernorChain(logs))
    expect(await pipeline.collectGovernors()).toMatchObject({ rejected: 0 })
    const proposals = await pipeline.get<Exact[]>(`/proposals${toQuery('compound')}&exact=true`)
    expect(proposals).toHaveLength(8)
    for (const { scores, scoresExact, scoresTotal, scoresTotalExact } of proposals) {
      expect(scores).toEqual(scoresExact.map(Number))
      expect(scoresTotal).toBe(Number(scoresTotalExact))
    }
    const total = powers.reduce((sum, power) => sum + power, 0n)
    expect(proposals.reduce((sum, one) => sum + toUnits(one.scoresTotalExact), 0n)).toBe(total)
    const votes = await pipeline.get<{ votingPower: number; votingPowerExact: string }[]>(
      `/votes${toQuery('compound')}&exact=true`,
    )
    expect(votes.map(({ votingPower }) => votingPower)).toEqual(votes.map((vote) => Number(vote.votingPowerExact)))
    const voters = await pipeline.get<{ lastVotingPower: number; lastVotingPowerExact: string }[]>(
      `/voters${toQuery('compound')}&exact=true`,
    )
    expect(voters).toHaveLength(30)
    expect(voters.map((one) => one.lastVotingPower)).toEqual(voters.map((one) => Number(one.lastVotingPowerExact)))
  })

  it('are the nearest ones of delegates, and of their sum', async () => {
    const powers = toPowers(60, 2)
    const logs = powers.map((power, n) => logAt(10 + n, UNI, encodePower(voterOf(n), 0n, power)))
    pipeline = await startGovernors(1_000, toGovernorChain(logs))
    expect(await pipeline.collect(delegations)).toMatchObject({ rejected: 0 })
    const total = Number(
      formatUnits(
        powers.reduce((sum, power) => sum + power, 0n),
        18,
      ),
    )
    const delegates = await pipeline.get<{ votingPower: number; votingPowerExact: string; share: number }[]>(
      `/delegates?id=${idOf('uniswap')}&exact=true`,
    )
    expect(delegates).toHaveLength(60)
    for (const { votingPower, votingPowerExact, share } of delegates) {
      expect(votingPower).toBe(Number(votingPowerExact))
      expect(share).toBe(votingPower / total)
    }
    const [day] = await pipeline.get<{ totalPower: number }[]>(`/concentration?id=${idOf('uniswap')}&limit=1`)
    expect(day).toMatchObject({ totalPower: total })
    for (const n of [0, 59]) {
      const [change] = await pipeline.get<{ votingPower: number; change: number }[]>(
        `/delegates/historic?id=${idOf('uniswap')}&address=${voterOf(n)}`,
      )
      const power = Number(formatUnits(powers[n] ?? 0n, 18))
      expect(change).toMatchObject({ votingPower: power, change: power })
    }
  })
})

const toUnits = (text: string): bigint => {
  const [whole = '', fraction = ''] = text.split('.')
  return BigInt(whole + fraction.padEnd(18, '0'))
}

describe('data of an earlier version', () => {
  it('is read again, which replaces wrong votes, titles and calls', async () => {
    const description = '# Upgrade\\n\\n## Summary'
    const calls = [{ target: AUTHOR, signature: 'transfer(address,uint)', data: `0x${'0'.repeat(128)}` as const }]
    const proposed = { id: 7n, proposer: AUTHOR, start: blockOf(20), end: blockOf(500), description, calls }
    const weight = 7n * 10n ** 18n
    const logs = [
      logAt(10, BRAVO.address, encodeProposal(proposed)),
      logAt(30, BRAVO.address, encodeVote(voterOf(1), 7n, 1, weight)),
    ]
    pipeline = await startGovernors(1_000, toGovernorChain(logs))
    await pipeline.collectGovernors()
    const proposals = () => pipeline.get<{ _id: string }[]>(`/proposals${toQuery('compound')}`)
    const [right] = await proposals()
    expect(right).toMatchObject({ title: 'Upgrade', scores: [7, 0, 0], scoresTotal: 7, votes: 1 })
    const actions = () => pipeline.get(`/proposals/actions?proposal=${right?._id}`)
    expect(await actions()).toMatchObject([{ function: null, signature: 'transfer(address,uint)' }])

    // The rows and the cursors as an earlier version stored them.
    const { db } = pipeline.database
    const LATER = 'collected_at + INTERVAL 1 MILLISECOND AS collected_at'
    for (const sql of [
      `INSERT INTO dao_cast_votes SELECT * REPLACE('{}' AS choice, 1020 AS voting_power, [] AS choice_powers, ${LATER}) FROM dao_cast_votes FINAL`,
      `INSERT INTO governor_events SELECT * REPLACE('wrong' AS title, [] AS actions, ${LATER}) FROM governor_events FINAL WHERE kind = 'proposal'`,
      `INSERT INTO dao_proposal_details SELECT * REPLACE('wrong' AS title, [9, 9, 9] AS scores, ${LATER}) FROM dao_proposal_details FINAL`,
      "INSERT INTO job_state SELECT job, replace(name, '.quorums', '.exact'), value, written_at FROM job_state FINAL WHERE name LIKE '%.quorums'",
      "INSERT INTO job_state SELECT job, name, '', written_at + INTERVAL 1 MILLISECOND FROM job_state FINAL WHERE name LIKE '%.quorums'",
    ])
      await db.command({ name: 'an earlier version', sql })
    pipeline.changeFeed.commit('governors')
    expect((await proposals())[0]).toMatchObject({ title: 'wrong', scores: [9, 9, 9] })

    pipeline.clock.now = nowAt(1_300)
    await pipeline.collectGovernors()
    expect(await proposals()).toEqual([right])
    expect(await actions()).toMatchObject([{ function: null, signature: 'transfer(address,uint)' }])
    expect(await pipeline.votesOf('compound')).toMatchObject([{ choice: 1, votingPower: 7 }])
  })
})
