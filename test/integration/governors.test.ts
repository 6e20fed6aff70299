import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { governanceProposalsRoute } from '../../api/routes/daos/governance/proposals.ts'
import { governanceVotersRoute } from '../../api/routes/daos/governance/voters.ts'
import { governanceVotesRoute } from '../../api/routes/daos/governance/votes.ts'
import { toBucketStart } from '../../shared/intervals.ts'
import type { Governor } from '../../shared/registry/entities.ts'
import governance from '../../workers/jobs/governance.ts'
import governors from '../../workers/jobs/governors.ts'
import { runJob } from '../../workers/run/run-job.ts'
import { governorOf, logAt, timeAt, toGovernorChain, toYoungRegistry } from '../support/governor-chain.ts'
import { createServedPipeline, type ServedPipeline } from '../support/served-pipeline.ts'
import type { Chain, ChainLog } from '../upstream/chain.ts'
import {
  encodeAlphaVote,
  encodeExtension,
  encodeOutcome,
  encodeProposal,
  encodeVote,
  encodeVoteWithParams,
} from '../upstream/governor-logs.ts'
import { FIRST_BLOCK, hashOf, nowAt, ONE, START } from '../upstream/small-chain.ts'

interface Proposal {
  _id: string
  title: string
  state: string | null
  scores: number[]
  scoresTotal: number
  votes: number
  startsAt: string | null
  endsAt: string | null
  outcome: string | null
  timesEstimated: boolean
}
interface Vote {
  _id: string
  proposal: string
  voter: string
  choice: unknown
  votingPower: number
  createdAt: string
}
interface Voter {
  voter: string
  votes: number
  lastVotingPower: number
}

const registry = toYoungRegistry()
const ALPHA = governorOf(registry, 'compound', 'alpha')
const BRAVO = governorOf(registry, 'compound', 'bravo')
const ENS = governorOf(registry, 'ens', 'openzeppelin')
const HOP = governorOf(registry, 'hop', 'openzeppelin')
const TRUEFI = governorOf(registry, 'truefi', 'openzeppelin')
const idOf = (slug: string) => registry.daoBySlug.get(slug)?.id ?? ''
const voterOf = (n: number) => `0x${n.toString(16).padStart(40, 'a')}`
const blockOf = (n: number) => BigInt(FIRST_BLOCK + n)
const AUTHOR = `0x${'b'.repeat(40)}`
/** A hash, as OpenZeppelin's ids are. */
const HASH_ID = 104933844856336554027758452704713321330340501652892001249184191934279866979282n

const proposal = (id: bigint, [start, end]: readonly [number, number], description = `# Proposal ${id}\n\nWhy.`) =>
  encodeProposal({ id, proposer: AUTHOR, start: blockOf(start), end: blockOf(end), description })

let pipeline: ServedPipeline
afterEach(() => pipeline?.close())

async function start(now: number, ethereum: Chain) {
  pipeline = await createServedPipeline({ now: nowAt(now), registry, chains: { ethereum } })
}
const collect = () => pipeline.collect(governors)

async function get<T>(path: string, status = 200): Promise<T> {
  const response = await fetch(`${pipeline.url}/data/daos/governance${path}`)
  expect(response.status, path).toBe(status)
  return (await response.json()) as T
}
const askFor = (slug: string, source = 'governor') => `?id=${idOf(slug)}&source=${source}&limit=1000`
async function proposalsOf(slug: string): Promise<Proposal[]> {
  const found = await get<Proposal[]>(`/proposals${askFor(slug)}`)
  governanceProposalsRoute.response.parse(found)
  return found
}
async function votesOf(slug: string): Promise<Vote[]> {
  const found = await get<Vote[]>(`/votes${askFor(slug)}`)
  governanceVotesRoute.response.parse(found)
  return found
}

/** All of them, page by page. */
async function allVotesOf(slug: string): Promise<Vote[]> {
  const votes: Vote[] = []
  for (let next: string | undefined = askFor(slug); next !== undefined; ) {
    const response: Response = await fetch(`${pipeline.url}/data/daos/governance/votes${next}`)
    votes.push(...((await response.json()) as Vote[]))
    next = /<(\?[^>]*)>; rel="next"/.exec(response.headers.get('link') ?? '')?.[1]
  }
  return votes
}

const TABLES = ['dao_votes', 'dao_cast_votes', 'dao_proposals', 'dao_proposal_details', 'governor_events']
/** All rows but for when they were collected. */
const dump = () =>
  Promise.all(
    TABLES.map((table) => {
      const without = table === 'dao_votes' || table === 'dao_proposals' ? '' : 'EXCEPT (collected_at)'
      const sql = `SELECT * ${without} FROM ${table} FINAL ORDER BY ALL`
      return pipeline.database.db.rows({ name: 'dump', sql, schema: z.record(z.string(), z.unknown()) })
    }),
  )

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
    // Of a contract that nobody asked for.
    logAt(62, voterOf(9), encodeVote(voterOf(5), 42n, 1, ONE)),
  ]

  it('are told exactly, of both families', async () => {
    await start(1_000, toGovernorChain(logs))
    expect(await collect()).toMatchObject({ rejected: 0, providers: ['ethereum'] })
    const [bravo, alpha] = await proposalsOf('compound')
    expect(bravo).toMatchObject({
      ...{ title: 'Add **cbETH** market', author: AUTHOR, state: 'closed', outcome: 'executed', source: 'governor' },
      choices: ['For', 'Against', 'Abstain'],
      scores: [400_000.123456789, 0.1, 7],
      ...{ scoresTotal: 400_007.223456789, votes: 3, timesEstimated: false },
      ...{ createdAt: timeAt(40), startsAt: timeAt(50), endsAt: timeAt(800) },
      url: `https://etherscan.io/tx/${hashOf(40_000)}`,
    })
    expect(alpha).toMatchObject({
      ...{ title: 'Proposal 1', state: 'closed', outcome: 'queued', choices: ['For', 'Against'] },
      ...{ scores: [65_000, 3], scoresTotal: 65_003, votes: 2, startsAt: timeAt(20), endsAt: timeAt(300) },
    })
    const votes = await votesOf('compound')
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
    expect(await get<Vote[]>(`/votes?proposal=${alpha?._id}`)).toHaveLength(2)
  })

  it('are none at first, which is no voting power for any choice', async () => {
    await start(1_000, toGovernorChain([logAt(40, BRAVO.address, proposal(42n, [50, 800]))]))
    await collect()
    expect(await proposalsOf('compound')).toMatchObject([{ scores: [0, 0, 0], scoresTotal: 0, votes: 0 }])
  })

  it('are told with their source where it is asked for, and otherwise with the members of the contract', async () => {
    await start(1_000, toGovernorChain(logs))
    await pipeline.collect(governance)
    await collect()
    const membersOf = async (path: string, more: string) => {
      const [record] = await get<object[]>(`${path}?id=${idOf('compound')}&limit=1${more}`)
      return Object.keys(record ?? {})
    }
    const [proposal, vote] = [await membersOf('/proposals', ''), await membersOf('/votes', '')]
    expect(proposal).toEqual(
      '_id dao title author state choices scores scoresTotal votes quorum createdAt startsAt endsAt url'.split(' '),
    )
    expect(vote).toEqual('_id proposal voter choice votingPower createdAt'.split(' '))
    for (const source of ['snapshot', 'governor', 'all']) {
      const asked = `&source=${source}`
      expect(await membersOf('/proposals', asked)).toEqual([...proposal, 'source', 'outcome', 'timesEstimated'])
      expect(await membersOf('/votes', asked)).toEqual([...vote, 'source'])
    }
    expect(await membersOf('/proposals', '&fields=source,_id')).toEqual(['_id', 'source'])
    expect(await membersOf('/votes', '&fields=voter,source&source=all')).toEqual(['voter', 'source'])
  })

  it('are as many voters as votes are of, and change nothing that is counted of Snapshot', async () => {
    await start(1_000, toGovernorChain(logs))
    await pipeline.collect(governance)
    const asked = ['', '/proposals', '/votes', '/voters'].map((path) => `${path}?id=${idOf('compound')}`)
    const before = await Promise.all([...asked, '/summary'].map((path) => get(path)))
    await collect()
    expect(await Promise.all([...asked, '/summary'].map((path) => get(path)))).toEqual(before)
    const voters = await get<Voter[]>(`/voters${askFor('compound')}`)
    governanceVotersRoute.response.parse(voters)
    const votes = await votesOf('compound')
    expect(voters.map(({ voter }) => voter).sort()).toEqual([...new Set(votes.map(({ voter }) => voter))].sort())
    for (const { voter, votes: count, lastVotingPower } of voters) {
      const own = votes.filter((vote) => vote.voter === voter)
      expect([count, lastVotingPower]).toEqual([own.length, own[0]?.votingPower])
    }
    const totals = await Promise.all(
      ['snapshot', 'governor', 'all'].map(async (source) => {
        const response = await fetch(`${pipeline.url}/data/daos/governance/votes${askFor('compound', source)}`)
        return Number(response.headers.get('x-total-count'))
      }),
    )
    expect(totals[1]).toBe(5)
    const [{ proposal } = { proposal: '' }] = votes
    expect(await get<Vote[]>(`/votes?proposal=${proposal}&source=snapshot`)).toEqual([])
    expect(totals[2]).toBe((totals[0] ?? 0) + 5)
  })

  it('are the same when they are read again, and whatever pages a node accepts', async () => {
    await start(1_000, toGovernorChain(logs))
    await collect()
    const once = await dump()
    pipeline.clock.now = nowAt(1_001)
    await collect()
    expect(await dump()).toEqual(once)
    await pipeline.close()
    await start(1_000, toGovernorChain(logs, { habits: { host: 'alchemy', mostBlocks: 10, logTimes: false } }))
    await collect()
    expect(await dump()).toEqual(once)
  })
})

describe("votes on OpenZeppelin's governors", () => {
  it('may be split, are of 256-bit ids, and are in whole tokens of the DAO', async () => {
    const parts = [ONE, 5n * ONE, 0n].map((part) => part.toString(16).padStart(32, '0')).join('')
    const logs = [
      logAt(10, ENS.address, proposal(HASH_ID, [20, 500])),
      logAt(30, ENS.address, encodeVoteWithParams(voterOf(1), HASH_ID, { support: 1, weight: 2n * ONE, params: '0x' })),
      logAt(
        31,
        ENS.address,
        encodeVoteWithParams(voterOf(2), HASH_ID, { support: 0, weight: 9n * ONE, params: `0x${parts}` }),
      ),
      logAt(40, TRUEFI.address, proposal(HASH_ID, [41, 500])),
      logAt(42, TRUEFI.address, encodeVote(voterOf(1), HASH_ID, 1, 150_000_000n)),
    ]
    await start(1_000, toGovernorChain(logs))
    await collect()
    const [ens] = await proposalsOf('ens')
    expect(ens).toMatchObject({ scores: [7, 1, 0], scoresTotal: 8, votes: 2, state: 'closed', outcome: null })
    expect(await votesOf('ens')).toMatchObject([
      { voter: voterOf(2), choice: { 1: 5, 2: 1 }, votingPower: 6 },
      { voter: voterOf(1), choice: 1, votingPower: 2 },
    ])
    const [truefi] = await proposalsOf('truefi')
    expect(truefi).toMatchObject({ scores: [1.5, 0, 0] })
    expect(truefi?._id).not.toBe(ens?._id)
  })

  it('last as long as the clock says, an estimate first where blocks are counted', async () => {
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
    await start(1_000, toGovernorChain(logs, { secondClocks: new Set([HOP.address]) }))
    await collect()
    const tell = async (slug: string) =>
      (await proposalsOf(slug)).map(({ title, state, startsAt, endsAt, outcome, timesEstimated }) =>
        [title, state, startsAt, endsAt, outcome, timesEstimated].join(' '),
      )
    expect(await tell('ens')).toEqual([
      `Proposal 3 active ${timeAt(20)} ${timeAt(5_000)}  true`,
      `Proposal 2 pending ${timeAt(1_200)} ${timeAt(1_900)}  true`,
      `Proposal 1 active ${timeAt(20)} ${timeAt(1_500)}  true`,
    ])
    expect(await tell('hop')).toEqual([` active ${timeAt(20)} ${timeAt(1_500)}  false`])
    pipeline.clock.now = nowAt(1_560)
    await collect()
    expect(await tell('ens')).toEqual([
      `Proposal 3 closed ${timeAt(20)} ${timeAt(5_000)} canceled true`,
      `Proposal 2 active ${timeAt(1_200)} ${timeAt(1_900)}  true`,
      `Proposal 1 active ${timeAt(20)} ${timeAt(1_600)}  true`,
    ])
    expect(await tell('hop')).toEqual([` active ${timeAt(20)} ${timeAt(1_600)}  false`])
    pipeline.clock.now = nowAt(2_100)
    await collect()
    expect((await tell('ens')).slice(1)).toEqual([
      `Proposal 2 closed ${timeAt(1_200)} ${timeAt(1_900)}  false`,
      `Proposal 1 closed ${timeAt(20)} ${timeAt(1_600)}  false`,
    ])
    expect(await tell('hop')).toEqual([` closed ${timeAt(20)} ${timeAt(1_600)}  false`])
  })
})

const notes = () =>
  pipeline.database.db.rows({
    name: 'notes',
    sql: "SELECT entity, reason FROM coverage_notes FINAL WHERE dataset = 'governors'",
    schema: z.object({ entity: z.number(), reason: z.string() }),
  })

describe('a chain', () => {
  const made = logAt(10, ENS.address, proposal(1n, [20, 5_000]))
  const cast = (n: number, voter: number, support: number, more: Partial<ChainLog> = {}) =>
    logAt(n, ENS.address, encodeVote(voterOf(voter), 1n, support, BigInt(voter) * ONE), more)

  it.each([
    ['a node that knows what is final', true, 60],
    ['one that does not', false, 8],
  ])('that is reorganised leaves no trace of the blocks that are no more, from %s', async (_, finalizedTag, depth) => {
    const n = 1_000 - depth
    let logs = [made, cast(500, 1, 1), cast(n, 2, 1), cast(n, 3, 1, { logIndex: 1 })]
    const chain = toGovernorChain([], { habits: { finalizedTag } })
    await start(1_000, {
      ...chain,
      logs: (from, to, addresses) => toGovernorChain(logs).logs(from, to, addresses),
    })
    await collect()
    const tell = async () => (await votesOf('ens')).map(({ voter, choice }) => [voter, choice])
    expect(await tell()).toEqual([[voterOf(1), 1]])
    // The second voter voted otherwise, the third never did, and a fourth came.
    logs = [made, cast(500, 1, 1), cast(n + 1, 2, 0), cast(n + 2, 4, 2)]
    pipeline.clock.now = nowAt(1_100)
    await collect()
    expect(await tell()).toEqual([
      [voterOf(4), 3],
      [voterOf(2), 2],
      [voterOf(1), 1],
    ])
    expect((await proposalsOf('ens'))[0]).toMatchObject({ scores: [1, 2, 4], votes: 3 })
  })

  it('is read again for what its node missed a while ago, and never for what that took back', async () => {
    const late = cast(900, 2, 0)
    let logs = [made, cast(500, 1, 1), cast(901, 3, 1, { removed: true })]
    await start(1_000, {
      ...toGovernorChain([]),
      logs: (from, to, addresses) => toGovernorChain(logs).logs(from, to, addresses),
    })
    await collect()
    expect(await votesOf('ens')).toHaveLength(1)
    logs = [...logs, late]
    pipeline.clock.now = nowAt(1_005)
    await collect()
    expect((await votesOf('ens')).map(({ voter }) => voter)).toEqual([voterOf(2), voterOf(1)])
    expect((await proposalsOf('ens'))[0]).toMatchObject({ scores: [1, 2, 0], votes: 2 })
  })

  it('whose node fails is read on from where it was, and tells nothing before it was read', async () => {
    await start(1_000, toGovernorChain([made, cast(500, 1, 1), cast(1_500, 2, 1)]))
    pipeline.upstream.faults.set('rpc', { kind: 'status', status: 503 })
    await expect(collect()).rejects.toMatchObject({ code: 'provider_unavailable' })
    expect(await get(`/votes${askFor('ens')}`, 404)).toMatchObject({
      code: 'no_data',
      detail: expect.stringContaining('Its governor was not read to its end yet'),
    })
    pipeline.upstream.faults.clear('rpc')
    await collect()
    expect(await votesOf('ens')).toHaveLength(1)
    pipeline.clock.now = nowAt(1_700)
    await collect()
    expect(await votesOf('ens')).toHaveLength(2)
  })

  it('whose node gives so few blocks a call that it would take weeks says so, and is read on for the others', async () => {
    const chain = toGovernorChain([made, cast(500, 1, 1)], { habits: { host: 'alchemy', mostBlocks: 10 } })
    await start(1_000, chain)
    const run = (change: Parameters<typeof toYoungRegistry>[0]) => {
      const slot = toBucketStart(pipeline.clock.now, '1h')
      const context = { ...pipeline.context, registry: toYoungRegistry(change) }
      return runJob(governors, governors.connect(context), context, { kind: 'slot', slot, again: true })
    }
    const isOther = (slug: string) => slug !== 'rarible' && slug !== 'arbitrum'
    expect(await run((slug, own) => (isOther(slug) ? own : []))).toMatchObject({ uncovered: 0 })
    const early = (slug: string, own: Governor[]) => own.map((one) => (isOther(slug) ? one : { ...one, fromBlock: 0 }))
    expect(await run((slug, own) => (slug === 'arbitrum' ? [] : early(slug, own)))).toMatchObject({ uncovered: 1 })
    expect(await notes()).toMatchObject([
      {
        entity: registry.daoBySlug.get('rarible')?.key,
        reason: expect.stringMatching(
          /gives 10 blocks a call: RPC_URLS needs a node with wider pages, 19800\d+ blocks/,
        ),
      },
    ])
    pipeline.commits.commit('governors')
    expect(await votesOf('ens')).toHaveLength(1)
  })

  it('without a node is named', async () => {
    await start(1_000, toGovernorChain([made]))
    expect(await collect()).toMatchObject({ uncovered: 1 })
    expect(await notes()).toMatchObject([
      {
        entity: registry.daoBySlug.get('arbitrum')?.key,
        reason: expect.stringContaining('RPC_URLS names no node of arbitrum'),
      },
    ])
    expect(await get(`/proposals?id=${idOf('arbitrum')}`, 404)).toMatchObject({
      detail: expect.stringContaining('ask with source=governor'),
    })
  })
})

describe('governors of a simulated world', () => {
  it('are told to their last vote, as often as they are read, with scores that are the votes added up', async () => {
    pipeline = await createServedPipeline({ now: Date.parse('2024-05-06T07:01:00Z') })
    const { rows } = await collect()
    expect(rows).toBeGreaterThan(300)
    for (const slug of ['compound', 'uniswap', 'ens', 'truefi']) {
      const [proposals, votes] = [await proposalsOf(slug), await allVotesOf(slug)]
      expect(proposals.length, slug).toBeGreaterThan(3)
      const voters = await get<Voter[]>(`/voters${askFor(slug)}`)
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
    const once = await dump()
    await collect()
    expect(await dump()).toEqual(once)
  })
})
