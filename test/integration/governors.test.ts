import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { governanceVotersRoute } from '../../api/routes/daos/governance/voters.ts'
import governance from '../../workers/jobs/governance.ts'
import type { Vote, Voter } from '../support/governance-records.ts'
import { logAt, timeAt, toGovernorChain } from '../support/governor-chain.ts'
import {
  ALPHA,
  AUTHOR,
  BRAVO,
  blockOf,
  ENS,
  GITCOIN,
  type GovernorPipeline,
  HOP,
  idOf,
  proposal,
  startGovernors,
  TRUEFI,
  toQuery,
  voterOf,
} from '../support/governor-pipeline.ts'
import {
  encodeAlphaVote,
  encodeExtension,
  encodeOutcome,
  encodeProposal,
  encodeVote,
  encodeVoteWithParams,
} from '../upstream/governor-logs.ts'
import { hashOf, nowAt, ONE, START } from '../upstream/small-chain.ts'

/** A hash, like OpenZeppelin's ids. */
const HASH_ID = 104933844856336554027758452704713321330340501652892001249184191934279866979282n

let pipeline: GovernorPipeline
afterEach(() => pipeline?.close())

describe("votes on Compound's governors", () => {
  const logs = [
    logAt(10, ALPHA.address, proposal(1n, [20, 300])),
    logAt(30, ALPHA.address, encodeAlphaVote(voterOf(1), 1n, true, 65_000n * ONE)),
    logAt(31, ALPHA.address, encodeAlphaVote(voterOf(2), 1n, false, 3n * ONE)),
    logAt(40, BRAVO.address, proposal(42n, [50, 800], '\n## Add **cbETH** market ##\n# Not this line')),
    logAt(60, BRAVO.address, encodeVote(voterOf(1), 42n, 1, 400_000_123_456_789_012_345_678n, 'yes'), { logIndex: 1 }),
    logAt(60, BRAVO.address, encodeVote(voterOf(3), 42n, 0, ONE / 10n, ''), { logIndex: 2 }),
    logAt(61, BRAVO.address, encodeVote(voterOf(4), 42n, 2, 7n * ONE)),
    logAt(820, BRAVO.address, encodeOutcome('ProposalQueued', 42n)),
    logAt(900, BRAVO.address, encodeOutcome('ProposalExecuted', 42n)),
    logAt(320, ALPHA.address, encodeOutcome('ProposalQueued', 1n)),
    // A contract that is not in the registry.
    logAt(62, voterOf(9), encodeVote(voterOf(5), 42n, 1, ONE)),
  ]

  it('are stored exactly, for both contract families', async () => {
    pipeline = await startGovernors(1_000, toGovernorChain(logs))
    expect(await pipeline.collectGovernors()).toMatchObject({ rejected: 0, providers: ['ethereum'] })
    const [bravo, alpha] = await pipeline.proposalsOf('compound')
    expect(bravo).toMatchObject({
      ...{ title: 'Add **cbETH** market', author: AUTHOR, state: 'closed', outcome: 'executed', source: 'governor' },
      choices: ['For', 'Against', 'Abstain'],
      scores: [400_000.123456789, 0.1, 7],
      ...{ scoresTotal: 400_007.22345678904, votes: 3, timesEstimated: false },
      ...{ createdAt: timeAt(40), startsAt: timeAt(50), endsAt: timeAt(800) },
      url: `https://etherscan.io/tx/${hashOf(40_000)}`,
    })
    expect(alpha).toMatchObject({
      ...{ title: 'Proposal 1', state: 'closed', outcome: 'queued', choices: ['For', 'Against'] },
      ...{ scores: [65_000, 3], scoresTotal: 65_003, votes: 2, startsAt: timeAt(20), endsAt: timeAt(300) },
    })
    const votes = await pipeline.votesOf('compound')
    const ofBravo = { proposal: bravo?._id, source: 'governor' }
    const ofAlpha = { proposal: alpha?._id, source: 'governor' }
    expect(votes).toHaveLength(5)
    expect(votes).toEqual(
      expect.arrayContaining(
        [
          { ...ofBravo, voter: voterOf(4), choice: 3, votingPower: 7, createdAt: timeAt(61) },
          { ...ofBravo, voter: voterOf(1), choice: 1, votingPower: 400_000.123456789, createdAt: timeAt(60) },
          { ...ofBravo, voter: voterOf(3), choice: 2, votingPower: 0.1, createdAt: timeAt(60) },
          { ...ofAlpha, voter: voterOf(2), choice: 2, votingPower: 3, createdAt: timeAt(31) },
          { ...ofAlpha, voter: voterOf(1), choice: 1, votingPower: 65_000, createdAt: timeAt(30) },
        ].map((vote) => expect.objectContaining(vote)),
      ),
    )
    expect(await pipeline.get<Vote[]>(`/votes?proposal=${alpha?._id}`)).toHaveLength(2)
  })

  it('are zero before the first vote, with no voting power for any choice', async () => {
    pipeline = await startGovernors(1_000, toGovernorChain([logAt(40, BRAVO.address, proposal(42n, [50, 800]))]))
    await pipeline.collectGovernors()
    expect(await pipeline.proposalsOf('compound')).toMatchObject([{ scores: [0, 0, 0], scoresTotal: 0, votes: 0 }])
  })

  it('count each voter once, and do not change the counts of Snapshot', async () => {
    pipeline = await startGovernors(1_000, toGovernorChain(logs))
    await pipeline.collect(governance)
    const query = ['', '/proposals', '/votes', '/voters'].map((path) => `${path}?id=${idOf('compound')}`)
    const before = await Promise.all([...query, '/summary'].map((path) => pipeline.get(path)))
    await pipeline.collectGovernors()
    expect(await Promise.all([...query, '/summary'].map((path) => pipeline.get(path)))).toEqual(before)
    const voters = await pipeline.get<Voter[]>(`/voters${toQuery('compound')}`)
    governanceVotersRoute.response.parse(voters)
    const votes = await pipeline.votesOf('compound')
    expect(voters.map(({ voter }) => voter).sort()).toEqual([...new Set(votes.map(({ voter }) => voter))].sort())
    for (const { voter, votes: count, lastVotingPower } of voters) {
      const own = votes.filter((vote) => vote.voter === voter)
      expect([count, lastVotingPower]).toEqual([own.length, own[0]?.votingPower])
    }
    const totals = await Promise.all(
      ['snapshot', 'governor', 'all'].map(async (source) => {
        const response = await fetch(`${pipeline.url}/data/daos/governance/votes${toQuery('compound', source)}`)
        return Number(response.headers.get('x-total-count'))
      }),
    )
    expect(totals[1]).toBe(5)
    const [{ proposal } = { proposal: '' }] = votes
    expect(await pipeline.get<Vote[]>(`/votes?proposal=${proposal}&source=snapshot`)).toEqual([])
    expect(totals[2]).toBe((totals[0] ?? 0) + 5)
  })

  it('do not change when they are read again, with any page size of a node', async () => {
    pipeline = await startGovernors(1_000, toGovernorChain(logs))
    await pipeline.collectGovernors()
    const first = await pipeline.dump()
    pipeline.clock.now = nowAt(1_001)
    await pipeline.collectGovernors()
    expect(await pipeline.dump()).toEqual(first)
    await pipeline.close()
    pipeline = await startGovernors(
      1_000,
      toGovernorChain(logs, { habits: { host: 'alchemy', mostBlocks: 10, logTimes: false } }),
    )
    await pipeline.collectGovernors()
    expect(await pipeline.dump()).toEqual(first)
  })
})

describe("votes on OpenZeppelin's governors", () => {
  it("may be split, have 256-bit ids, and use the decimals of the DAO's token", async () => {
    const parts = [ONE, 5n * ONE, 0n].map((part) => part.toString(16).padStart(32, '0')).join('')
    const logs = [
      logAt(10, GITCOIN.address, proposal(HASH_ID, [20, 500])),
      logAt(
        30,
        GITCOIN.address,
        encodeVoteWithParams(voterOf(1), HASH_ID, { support: 1, weight: 2n * ONE, params: '0x' }),
      ),
      logAt(
        31,
        GITCOIN.address,
        encodeVoteWithParams(voterOf(2), HASH_ID, { support: 0, weight: 9n * ONE, params: `0x${parts}` }),
      ),
      logAt(40, TRUEFI.address, proposal(HASH_ID, [41, 500])),
      logAt(42, TRUEFI.address, encodeVote(voterOf(1), HASH_ID, 1, 150_000_000n)),
    ]
    pipeline = await startGovernors(1_000, toGovernorChain(logs))
    await pipeline.collectGovernors()
    const [gitcoin] = await pipeline.proposalsOf('gitcoin')
    expect(gitcoin).toMatchObject({ scores: [7, 1, 0], scoresTotal: 8, votes: 2, state: 'closed', outcome: null })
    expect(await pipeline.votesOf('gitcoin')).toMatchObject([
      { voter: voterOf(2), choice: { 1: 5, 2: 1 }, votingPower: 6 },
      { voter: voterOf(1), choice: 1, votingPower: 2 },
    ])
    const [truefi] = await pipeline.proposalsOf('truefi')
    expect(truefi).toMatchObject({ scores: [1.5, 0, 0] })
    expect(truefi?._id).not.toBe(gitcoin?._id)
  })

  it('may be cast in parts that add up, in one block or several, with or without the marker of an earlier version', async () => {
    const split = (...parts: bigint[]) => `0x${parts.map((part) => part.toString(16).padStart(32, '0')).join('')}`
    const cast = (n: number, logIndex: number, params: string) =>
      logAt(n, GITCOIN.address, encodeVoteWithParams(voterOf(1), 7n, { support: 0, weight: 9n * ONE, params }), {
        logIndex,
      })
    const logs = [
      logAt(10, GITCOIN.address, proposal(7n, [20, 500])),
      cast(30, 0, split(0n, 3n * ONE, 0n)),
      cast(30, 1, split(ONE, ONE, 0n)),
      logAt(40, GITCOIN.address, encodeVote(voterOf(1), 7n, 2, 4n * ONE)),
      logAt(41, GITCOIN.address, encodeVote(voterOf(2), 7n, 1, ONE)),
    ]
    const expectAll = async () => {
      expect(await pipeline.proposalsOf('gitcoin')).toMatchObject([{ scores: [5, 1, 4], scoresTotal: 10, votes: 3 }])
      const votes = await pipeline.votesOf('gitcoin')
      expect(votes).toMatchObject([
        { voter: voterOf(2), choice: 1, votingPower: 1 },
        { voter: voterOf(1), choice: 3, votingPower: 4 },
        { voter: voterOf(1), choice: { 1: 4, 2: 1 }, votingPower: 5 },
      ])
      expect(new Set(votes.map(({ _id }) => _id)).size).toBe(3)
      const voters = await pipeline.get<Voter[]>(`/voters${toQuery('gitcoin')}`)
      expect(voters.find(({ voter }) => voter === voterOf(1))).toMatchObject({
        ...{ votes: 1, firstVoteAt: timeAt(30), lastVoteAt: timeAt(40) },
      })
    }
    pipeline = await startGovernors(1_000, toGovernorChain(logs))
    await pipeline.collectGovernors()
    await expectAll()
    await pipeline.collect(governance)
    await expectAll()
    await pipeline.database.db.command({
      name: 'mark',
      sql: `INSERT INTO dao_cast_votes SELECT * REPLACE(true AS is_replaced, collected_at + INTERVAL 1 MILLISECOND AS collected_at)
FROM dao_cast_votes FINAL WHERE voter = {voter: String} AND JSONHas(choice, '2')`,
      params: { voter: voterOf(1) },
    })
    const marked = await pipeline.database.db.rows({
      name: 'marked',
      sql: 'SELECT voting_power AS power FROM dao_cast_votes FINAL WHERE is_replaced AND voter = {voter: String}',
      params: { voter: voterOf(1) },
      schema: z.object({ power: z.number() }),
    })
    expect(marked).toEqual([{ power: 5 }])
    pipeline.clock.now = nowAt(1_300)
    await pipeline.collectGovernors()
    await expectAll()
  })

  it("last according to the governor's clock, with an estimated end if blocks are counted", async () => {
    const seconds = (n: number) => BigInt(START + n * 12)
    const logs = [
      logAt(10, ENS.address, proposal(1n, [20, 1_500])),
      logAt(11, ENS.address, proposal(2n, [1_200, 1_900])),
      logAt(12, ENS.address, proposal(3n, [20, 5_000])),
      logAt(1_400, ENS.address, encodeExtension(1n, blockOf(1_600))),
      logAt(1_450, ENS.address, encodeOutcome('ProposalCanceled', 3n)),
      logAt(
        13,
        HOP.address,
        encodeProposal({ id: 9n, proposer: AUTHOR, start: seconds(20), end: seconds(1_500), description: '' }),
      ),
      logAt(1_400, HOP.address, encodeExtension(9n, seconds(1_600))),
    ]
    pipeline = await startGovernors(1_000, toGovernorChain(logs))
    await pipeline.collectGovernors()
    const publish = async (slug: string) =>
      (await pipeline.proposalsOf(slug)).map(({ title, state, startsAt, endsAt, outcome, timesEstimated }) =>
        [title, state, startsAt, endsAt, outcome, timesEstimated].join(' '),
      )
    expect(await publish('ens')).toEqual([
      `Proposal 3 active ${timeAt(20)} ${timeAt(5_000)}  true`,
      `Proposal 2 pending ${timeAt(1_200)} ${timeAt(1_900)}  true`,
      `Proposal 1 active ${timeAt(20)} ${timeAt(1_500)}  true`,
    ])
    expect(await publish('hop')).toEqual([` active ${timeAt(20)} ${timeAt(1_500)}  false`])
    pipeline.clock.now = nowAt(1_560)
    await pipeline.collectGovernors()
    expect(await publish('ens')).toEqual([
      `Proposal 3 closed ${timeAt(20)} ${timeAt(5_000)} canceled true`,
      `Proposal 2 active ${timeAt(1_200)} ${timeAt(1_900)}  true`,
      `Proposal 1 active ${timeAt(20)} ${timeAt(1_600)}  true`,
    ])
    expect(await publish('hop')).toEqual([` active ${timeAt(20)} ${timeAt(1_600)}  false`])
    pipeline.clock.now = nowAt(2_100)
    await pipeline.collectGovernors()
    expect((await publish('ens')).slice(1)).toEqual([
      `Proposal 2 closed ${timeAt(1_200)} ${timeAt(1_900)}  false`,
      `Proposal 1 closed ${timeAt(20)} ${timeAt(1_600)}  false`,
    ])
    expect(await publish('hop')).toEqual([` closed ${timeAt(20)} ${timeAt(1_600)}  false`])
  })
})
