import { afterEach, describe, expect, it } from 'vitest'
import type { Governor } from '../../shared/registry/entities.ts'
import { logAt, timeAt, toGovernorChain } from '../support/governor-chain.ts'
import {
  AUTHOR,
  blockOf,
  type GovernorPipeline,
  registry,
  startGovernors,
  toQuery,
  voterOf,
} from '../support/governor-pipeline.ts'
import type { ChainLog } from '../upstream/chain.ts'
import { encodeEvent, encodeOutcome, encodeVote, proposalValues } from '../upstream/governor-logs.ts'
import { nowAt, ONE } from '../upstream/small-chain.ts'

let pipeline: GovernorPipeline
afterEach(() => pipeline?.close())

const governorOf = (slug: string): Governor => {
  const [governor] = registry.daoBySlug.get(slug)?.governors ?? []
  if (governor === undefined) throw new Error(`${slug} has no governor`)
  return governor
}

const START_VOTE =
  'event StartVote(uint256 indexed id, address indexed creator, string metadata, uint256 a, uint256 b, uint256 c, uint256 d)'
const CAST_VOTE = 'event CastVote(uint256 indexed id, address indexed voter, bool support, uint256 weight)'

describe("votes on Aragon's voting app", () => {
  const { address } = governorOf('curve')
  const cast = (n: number, voter: number, support: boolean, more: Partial<ChainLog> = {}) =>
    logAt(n, address, encodeEvent(CAST_VOTE, [1n, voterOf(voter), support, BigInt(voter) * ONE]), more)
  const logs = [
    logAt(10, address, encodeEvent(START_VOTE, [1n, AUTHOR, 'Add a gauge', 1n, 2n, 3n, 4n])),
    ...[cast(20, 1, true), cast(21, 2, false), cast(21, 2, false, { logIndex: 0 })],
  ]

  it('last as long as the registry states, and a later vote of the voter replaces the earlier one', async () => {
    let now = logs
    const chain = toGovernorChain([])
    pipeline = await startGovernors(100, {
      ...chain,
      logs: (from, to, own) => toGovernorChain(now).logs(from, to, own),
    })
    await pipeline.collectGovernors()
    const end = new Date(Date.parse(timeAt(10)) + 604_800_000).toISOString()
    expect(await pipeline.proposalsOf('curve')).toMatchObject([
      {
        title: 'Add a gauge',
        state: 'active',
        startsAt: timeAt(10),
        endsAt: end,
        scores: [1, 2],
        votes: 2,
        timesEstimated: false,
      },
    ])
    now = [...logs, cast(120, 1, false), cast(121, 3, true), cast(122, 4, true, { removed: true })]
    pipeline.clock.now = nowAt(400)
    await pipeline.collectGovernors()
    expect(await pipeline.proposalsOf('curve')).toMatchObject([{ scores: [3, 3], scoresTotal: 6, votes: 3 }])
    expect(await pipeline.votesOf('curve')).toMatchObject([
      { voter: voterOf(3), choice: 1 },
      { voter: voterOf(1), choice: 2, createdAt: timeAt(120) },
      { voter: voterOf(2), choice: 2 },
    ])
    now = [...now, logAt(500, address, encodeEvent('event ExecuteVote(uint256 indexed id)', [1n]))]
    pipeline.clock.now = nowAt(900)
    await pipeline.collectGovernors()
    const before = await pipeline.dump()
    expect(await pipeline.proposalsOf('curve')).toMatchObject([{ state: 'closed', outcome: 'executed', votes: 3 }])
    pipeline.clock.now = nowAt(1_300)
    await pipeline.collectGovernors()
    expect(await pipeline.dump()).toEqual(before)
  })

  it('have no end if the registry has no length', async () => {
    const lido = governorOf('lido').address
    const start = encodeEvent('event StartVote(uint256 indexed id, address indexed creator, string metadata)', [
      1n,
      AUTHOR,
      'Omnibus',
    ])
    pipeline = await startGovernors(1_000, toGovernorChain([logAt(10, lido, start)]))
    await pipeline.collectGovernors()
    expect(await pipeline.proposalsOf('lido')).toMatchObject([
      { title: 'Omnibus', state: null, startsAt: timeAt(10), endsAt: null },
    ])
  })
})

describe("votes on Nouns' governor", () => {
  it('count NFTs, may get an objection period, another text and a veto', async () => {
    const { address } = governorOf('nouns')
    const created =
      'event ProposalCreated(uint256 id, address proposer, address[] targets, uint256[] values, string[] signatures, bytes[] calldatas, uint256 start, uint256 end, string description)'
    const text =
      'event ProposalDescriptionUpdated(uint256 indexed id, address indexed proposer, string description, string message)'
    const logs = [
      logAt(
        10,
        address,
        encodeEvent(
          created,
          proposalValues({ id: 3n, proposer: AUTHOR, start: blockOf(20), end: blockOf(100), description: '# Old' }),
        ),
      ),
      logAt(15, address, encodeEvent(text, [3n, AUTHOR, '# New', 'typo'])),
      logAt(30, address, encodeVote(voterOf(1), 3n, 1, 12n)),
      logAt(
        99,
        address,
        encodeEvent('event ProposalObjectionPeriodSet(uint256 indexed id, uint256 end)', [3n, blockOf(150)]),
      ),
      logAt(160, address, encodeEvent('event ProposalVetoed(uint256 id)', [3n])),
    ]
    pipeline = await startGovernors(1_000, toGovernorChain(logs))
    expect(await pipeline.collectGovernors()).toMatchObject({ rejected: 0 })
    expect(await pipeline.get(`/proposals${toQuery('nouns')}&exact=true`)).toMatchObject([
      { title: 'New', scores: [12, 0, 0], scoresExact: ['12', '0', '0'], endsAt: timeAt(150), outcome: 'canceled' },
    ])
  })
})

describe("votes on Aave's governance v2", () => {
  it('have proposals without a text, and are for or against', async () => {
    const { address } = governorOf('aave')
    const created =
      'event ProposalCreated(uint256 id, address indexed creator, address indexed executor, address[] targets, uint256[] values, string[] signatures, bytes[] calldatas, bool[] delegate, uint256 start, uint256 end, address strategy, bytes32 hash)'
    const vote = 'event VoteEmitted(uint256 id, address indexed voter, bool support, uint256 weight)'
    const calls = [[AUTHOR], [0n], ['execute()'], ['0x'], [true]]
    const logs = [
      logAt(
        10,
        address,
        encodeEvent(created, [1n, AUTHOR, AUTHOR, ...calls, blockOf(20), blockOf(100), AUTHOR, `0x${'1'.repeat(64)}`]),
      ),
      logAt(30, address, encodeEvent(vote, [1n, voterOf(1), true, 5n * ONE])),
      logAt(31, address, encodeEvent(vote, [1n, voterOf(2), false, 2n * ONE])),
      logAt(
        110,
        address,
        encodeEvent('event ProposalQueued(uint256 id, uint256 eta, address indexed by)', [1n, 1_715_000_000n, AUTHOR]),
      ),
      logAt(200, address, encodeEvent('event ProposalExecuted(uint256 id, address indexed by)', [1n, AUTHOR])),
      logAt(201, address, encodeOutcome('ProposalCanceled', 9n)),
    ]
    pipeline = await startGovernors(1_000, toGovernorChain(logs))
    expect(await pipeline.collectGovernors()).toMatchObject({ rejected: 0 })
    expect(await pipeline.proposalsOf('aave')).toMatchObject([
      { title: '', choices: ['For', 'Against'], scores: [5, 2], votes: 2, outcome: 'executed', endsAt: timeAt(100) },
    ])
  })
})
