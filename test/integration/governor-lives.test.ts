import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { formatUnits } from 'viem/utils'
import { afterEach, describe, expect, it } from 'vitest'
import type { Governor } from '../../shared/registry/entities.ts'
import { GOVERNOR_FAMILIES } from '../../shared/registry/schema.ts'
import { logAt, timeAt, toGovernorChain, toYoungRegistry } from '../support/governor-chain.ts'
import {
  AUTHOR,
  BRAVO,
  blockOf,
  createGovernorPipeline,
  type GovernorPipeline,
  proposal,
  toQuery,
  voterOf,
} from '../support/governor-pipeline.ts'
import type { ChainLog } from '../upstream/chain.ts'
import {
  encodeAlphaVote,
  encodeEvent,
  encodeExtension,
  encodeOutcome,
  encodeVote,
  encodeVoteWithParams,
  proposalValues,
} from '../upstream/governor-logs.ts'
import { readRows } from '../upstream/recorded-governors.ts'
import { nowAt, ONE } from '../upstream/small-chain.ts'

const dataDir = process.env.UPSTREAM_DATA_DIR || join(import.meta.dirname, '../../../shared/data')
const isRecorded = existsSync(join(dataDir, 'governance-dao-node'))
if (!isRecorded) console.log(`lives of proposals have invented votes: there are no recorded ones in ${dataDir}`)

interface Ballot {
  readonly voter: string
  /** 0 against, 1 for, 2 abstain. */
  readonly support: number
  readonly weight: bigint
}

/** The votes on Uniswap's proposal 83, encoded again as events of each family. */
const BALLOTS: readonly Ballot[] = isRecorded
  ? readRows(dataDir, 'uniswap_83_VoteCast').map(({ voter = '', support, votes = '' }) => ({
      ...{ voter, support: Number(support), weight: BigInt(votes) },
    }))
  : Array.from({ length: 90 }, (_, at) => ({ voter: voterOf(at), support: at % 3, weight: ONE * BigInt(at) + 1n }))

const ID = 83n
/** Blocks after the first: of the proposal, and of the start and the end of its vote. */
const [CREATED, START, END, LATER_END] = [10, 20, 900, 950]
const [QUEUED, EXECUTED] = [1_000, 1_200]
const secondsAt = (n: number) => BigInt(Date.parse(timeAt(n)) / 1000)

type Encoded = Pick<ChainLog, 'topics' | 'data'>

/** How a family encodes the life of a proposal. */
interface Life {
  readonly family: Governor['family']
  readonly governor?: Partial<Governor>
  readonly created: Encoded
  /** Its other events but votes, by their block. */
  readonly events: readonly (readonly [n: number, event: Encoded])[]
  vote(ballot: Ballot): Encoded
  readonly title: string
  readonly choices: 2 | 3
  readonly isReplaced?: boolean
  readonly end?: number
  /** Whether an event has the time of the queue. */
  readonly isQueued?: boolean
}

const period = { id: ID, proposer: AUTHOR, start: blockOf(START), end: blockOf(END), description: '# Treasury' }
const CALLS = 'address[] targets, uint256[] values, string[] signatures, bytes[] calldatas'
const outcomes = [
  [QUEUED, encodeOutcome('ProposalQueued', ID)],
  [EXECUTED, encodeOutcome('ProposalExecuted', ID)],
] as const
const toVote = ({ voter, support, weight }: Ballot) => encodeVote(voter, ID, support, weight)
const compound: Omit<Life, 'family'> = {
  ...{ created: proposal(ID, [START, END], '# Treasury'), events: outcomes, vote: toVote },
  ...{ title: 'Treasury', choices: 3, isQueued: true },
}
const toSplit = ({ support, weight }: Ballot) =>
  `0x${[0, 1, 2].map((at) => (at === support ? weight : 0n).toString(16).padStart(32, '0')).join('')}`
const indexed = (declaration: string, values: readonly unknown[] = [ID]) => encodeEvent(`event ${declaration}`, values)

const LIVES: Readonly<Record<string, Life>> = {
  alpha: {
    ...{ ...compound, family: 'alpha', choices: 2 },
    vote: ({ voter, support, weight }) => encodeAlphaVote(voter, ID, support === 1, weight),
  },
  bravo: { ...compound, family: 'bravo' },
  openzeppelin: {
    ...{ ...compound, family: 'openzeppelin', end: LATER_END },
    events: [[880, encodeExtension(ID, blockOf(LATER_END))], ...outcomes],
  },
  'openzeppelin with fractional counting': {
    ...{ ...compound, family: 'openzeppelin', governor: { counting: 'fractional' } },
    vote: (ballot) =>
      encodeVoteWithParams(ballot.voter, ID, { support: 0, weight: ballot.weight, params: toSplit(ballot) }),
  },
  agora: {
    ...{ ...compound, family: 'agora', end: LATER_END },
    created: indexed(
      'ProposalCreated(uint256 indexed id, address indexed proposer, address indexed votingModule, bytes data, uint256 start, uint256 end, string description, uint8 type)',
      [ID, AUTHOR, AUTHOR, '0x01', period.start, period.end, period.description, 1],
    ),
    events: [[30, indexed('ProposalDeadlineUpdated(uint256 id, uint64 end)', [ID, blockOf(LATER_END)])], ...outcomes],
  },
  venus: {
    ...{ ...compound, family: 'venus' },
    created: indexed(
      `ProposalCreated(uint256 id, address proposer, ${CALLS}, uint256 start, uint256 end, string description, uint8 type)`,
      [...proposalValues(period), 1],
    ),
  },
  nouns: {
    ...{ ...compound, family: 'nouns', title: 'Treasury, again', end: LATER_END },
    events: [
      [
        15,
        indexed(
          'ProposalDescriptionUpdated(uint256 indexed id, address indexed proposer, string description, string message)',
          [ID, AUTHOR, '# Treasury, again', ''],
        ),
      ],
      [890, indexed('ProposalObjectionPeriodSet(uint256 indexed id, uint256 end)', [ID, blockOf(LATER_END)])],
      ...outcomes,
    ],
  },
  aragon: {
    ...{ family: 'aragon', choices: 2, title: 'Treasury', isReplaced: true },
    governor: { votingSeconds: Number(secondsAt(END) - secondsAt(CREATED)) },
    created: indexed('StartVote(uint256 indexed id, address indexed creator, string metadata)', [
      ID,
      AUTHOR,
      'Treasury',
    ]),
    events: [[EXECUTED, indexed('ExecuteVote(uint256 indexed id)')]],
    vote: ({ voter, support, weight }) =>
      indexed('CastVote(uint256 indexed id, address indexed voter, bool support, uint256 weight)', [
        ...[ID, voter, support === 1, weight],
      ]),
  },
  'aave-v2': {
    ...{ family: 'aave-v2', choices: 2, title: '', isQueued: true },
    created: indexed(
      `ProposalCreated(uint256 id, address indexed creator, address indexed executor, ${CALLS}, bool[] delegate, uint256 start, uint256 end, address strategy, bytes32 hash)`,
      [
        ...[ID, AUTHOR, AUTHOR, [AUTHOR], [0n], ['execute()'], ['0x'], [true], period.start, period.end, AUTHOR],
        `0x${'1'.repeat(64)}`,
      ],
    ),
    events: [
      [QUEUED, indexed('ProposalQueued(uint256 id, uint256 eta, address indexed by)', [ID, secondsAt(1_100), AUTHOR])],
      [EXECUTED, indexed('ProposalExecuted(uint256 id, address indexed by)', [ID, AUTHOR])],
    ],
    vote: ({ voter, support, weight }) =>
      indexed('VoteEmitted(uint256 id, address indexed voter, bool support, uint256 weight)', [
        ...[ID, voter, support === 1, weight],
      ]),
  },
  'aave-v3': {
    ...{ family: 'aave-v3', choices: 2, title: '', isQueued: true },
    created: indexed(
      'ProposalCreated(uint256 indexed id, address indexed creator, uint8 indexed level, bytes32 hash)',
      [ID, AUTHOR, 1, `0x${'1'.repeat(64)}`],
    ),
    events: [
      [
        START,
        indexed('ProposalVoteStarted(uint256 indexed id, bytes32 indexed hash, uint256 start, uint256 end)', [
          ID,
          `0x${'2'.repeat(64)}`,
          secondsAt(START),
          secondsAt(END),
        ]),
      ],
      [QUEUED, indexed('ProposalQueued(uint256 indexed id, uint128 votesFor, uint128 votesAgainst)', [ID, 1n, 0n])],
      [EXECUTED, indexed('ProposalExecuted(uint256 indexed id)')],
    ],
    vote: ({ voter, support, weight }) =>
      indexed('VoteEmitted(uint256 indexed id, address indexed voter, bool indexed support, uint256 weight)', [
        ...[ID, voter, support === 1, weight],
      ]),
  },
  tornado: {
    ...{ family: 'tornado', choices: 2, title: 'Treasury', isReplaced: true },
    created: indexed(
      'ProposalCreated(uint256 indexed id, address indexed proposer, address target, uint256 start, uint256 end, string description)',
      [ID, AUTHOR, AUTHOR, secondsAt(START), secondsAt(END), '# Treasury'],
    ),
    events: [[EXECUTED, indexed('ProposalExecuted(uint256 indexed id)')]],
    vote: ({ voter, support, weight }) =>
      indexed('Voted(uint256 indexed id, address indexed voter, bool indexed support, uint256 weight)', [
        ...[ID, voter, support === 1, weight],
      ]),
  },
}

let pipeline: GovernorPipeline
afterEach(() => pipeline?.close())

const FIRST_VOTE = 40
/** Blocks of the readings: before the end of the vote, after the execution, and later. */
const [EARLY, LATE, LATEST] = [250, 1_400, 1_800]
/** Not final at the first reading; another block replaces it. */
const REORGANISED = EARLY - 5

describe('the life of a proposal', () => {
  it('is tested for every family', () => {
    expect(new Set(Object.values(LIVES).map(({ family }) => family))).toEqual(new Set(GOVERNOR_FAMILIES))
  })

  it.each(Object.entries(LIVES))('is read completely, and each vote once: %s', async (_, life) => {
    const own = BALLOTS.filter(({ support }) => support < life.choices)
    const cast = (n: number, ballot: Ballot, more: Partial<ChainLog> = {}) =>
      logAt(n, BRAVO.address, life.vote(ballot), more)
    const events = life.events.map(([n, event]) => logAt(n, BRAVO.address, event, { logIndex: 9 }))
    const [first] = own as [Ballot]
    const replaced = { ...first, support: 1 - first.support, weight: 7n }
    const logs = [
      logAt(CREATED, BRAVO.address, life.created),
      ...(life.isReplaced === true ? [cast(FIRST_VOTE - 1, replaced)] : []),
      ...own.map((ballot, at) => cast(FIRST_VOTE + at, ballot)),
      ...events,
    ]
    const removed = cast(FIRST_VOTE, { voter: voterOf(1_001), support: 1, weight: ONE }, { removed: true, logIndex: 5 })
    const orphaned = cast(REORGANISED, { voter: voterOf(1_002), support: 1, weight: ONE }, { logIndex: 5 })
    let now = [...logs.filter(({ blockNumber }) => blockNumber <= logAt(EARLY, '', life.created).blockNumber), orphaned]
    const chain = toGovernorChain([], { habits: { host: 'quicknode', mostBlocks: 300 } })
    const registry = toYoungRegistry((slug) =>
      slug === 'compound' ? [{ ...BRAVO, family: life.family, ...life.governor }] : [],
    )
    pipeline = await createGovernorPipeline({
      now: nowAt(EARLY),
      registry,
      chains: { ethereum: { ...chain, logs: (from, to, all) => toGovernorChain(now).logs(from, to, all) } },
    })
    expect(await pipeline.collectGovernors()).toMatchObject({ rejected: 0 })
    expect(await pipeline.proposalsOf('compound')).toMatchObject([{ title: life.title, outcome: null }])

    now = [...logs, removed, ...logs]
    pipeline.clock.now = nowAt(LATE)
    expect(await pipeline.collectGovernors()).toMatchObject({ rejected: 0 })
    const sumOf = (support: number) =>
      formatUnits(
        own.reduce((sum, ballot) => (ballot.support === support ? sum + ballot.weight : sum), 0n),
        18,
      )
    expect(await pipeline.get(`/proposals${toQuery('compound')}&exact=true`)).toEqual([
      expect.objectContaining({
        ...{ title: life.title, votes: own.length, state: 'closed', outcome: 'executed', timesEstimated: false },
        ...{ scoresExact: [1, 0, 2].slice(0, life.choices).map(sumOf), executedAt: timeAt(EXECUTED) },
        queuedAt: life.isQueued === true ? timeAt(QUEUED) : null,
        startsAt: timeAt(life.family === 'aragon' ? CREATED : START),
        endsAt: timeAt(life.end ?? END),
      }),
    ])
    const votes = await pipeline.get<{ voter: string; votingPowerExact: string }[]>(
      `/votes${toQuery('compound')}&exact=true`,
    )
    expect(votes.map(({ voter, votingPowerExact }) => `${voter} ${votingPowerExact}`).sort()).toEqual(
      own.map(({ voter, weight }) => `${voter} ${formatUnits(weight, 18)}`).sort(),
    )
    const before = await pipeline.dump()
    pipeline.clock.now = nowAt(LATEST)
    await pipeline.collectGovernors()
    expect(await pipeline.dump()).toEqual(before)
  })
})
