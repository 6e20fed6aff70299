import { afterEach, describe, expect, it } from 'vitest'
import type { Governor } from '../../shared/registry/entities.ts'
import { logAt, timeAt, toGovernorChain, toYoungRegistry } from '../support/governor-chain.ts'
import {
  AUTHOR,
  blockOf,
  createGovernorPipeline,
  type GovernorPipeline,
  registry,
  startGovernors,
  toQuery,
  voterOf,
} from '../support/governor-pipeline.ts'
import type { ChainLog, NodeHabits } from '../upstream/chain.ts'
import { encodeEvent, encodeOutcome, encodeVote, proposalValues } from '../upstream/governor-logs.ts'
import { toRpcLog } from '../upstream/providers/rpc-logs.ts'
import { FIRST_BLOCK, nowAt, ONE } from '../upstream/small-chain.ts'

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

  const lido = governorOf('lido').address
  const startVote = (n: number, id: bigint) =>
    logAt(
      n,
      lido,
      encodeEvent('event StartVote(uint256 indexed id, address indexed creator, string metadata)', [
        id,
        AUTHOR,
        'Omnibus',
      ]),
    )
  const startWith = (votingSeconds: Governor['votingSeconds']) => {
    const own = toYoungRegistry((slug, all) => (slug === 'lido' ? all.map((one) => ({ ...one, votingSeconds })) : all))
    const ethereum = toGovernorChain([startVote(10, 1n), startVote(60, 2n)])
    return createGovernorPipeline({ now: nowAt(1_000), registry: own, chains: { ethereum } })
  }

  it('have no end if the registry has no length', async () => {
    pipeline = await startWith(undefined)
    await pipeline.collectGovernors()
    const unknown = { title: 'Omnibus', state: null, endsAt: null }
    expect(await pipeline.proposalsOf('lido')).toMatchObject([
      { ...unknown, startsAt: timeAt(60) },
      { ...unknown, startsAt: timeAt(10) },
    ])
  })

  it('have the length of the block in which they start', async () => {
    pipeline = await startWith([
      { fromBlock: FIRST_BLOCK, seconds: 600 },
      { fromBlock: FIRST_BLOCK + 60, seconds: 1_200 },
    ])
    await pipeline.collectGovernors()
    expect(await pipeline.proposalsOf('lido')).toMatchObject([{ endsAt: timeAt(160) }, { endsAt: timeAt(60) }])
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

describe("votes on Aave's governance v3", () => {
  const young = toYoungRegistry((slug, own) =>
    slug === 'aave' ? own.map((one) => ({ ...one, fromBlock: FIRST_BLOCK })) : own,
  )
  const machines = (young.daoBySlug.get('aave')?.governors ?? []).filter(({ family }) => family === 'aave-v3')
  const core = machines.find(({ space, proposalSpace }) => space === proposalSpace)?.address ?? ''
  const machineOf = (chain: string) => machines.findLast((one) => one.chain === chain && one.address !== core)?.address
  const at = (n: number) => BigInt(Date.parse(timeAt(n)) / 1000)

  const create = (n: number, id: bigint) =>
    logAt(
      n,
      core,
      encodeEvent(
        'event ProposalCreated(uint256 indexed id, address indexed creator, uint8 indexed accessLevel, bytes32 ipfsHash)',
        [id, AUTHOR, 1, `0x${'1'.repeat(64)}`],
      ),
    )
  const queue = (n: number, id: bigint) =>
    logAt(
      n,
      core,
      encodeEvent('event ProposalQueued(uint256 indexed id, uint128 votesFor, uint128 votesAgainst)', [id, 5n, 2n]),
    )
  const execute = (n: number, id: bigint) =>
    logAt(n, core, encodeEvent('event ProposalExecuted(uint256 indexed id)', [id]))
  const open = (chain: string, n: number, id: bigint, end: number) =>
    logAt(
      n,
      machineOf(chain) ?? '',
      encodeEvent(
        'event ProposalVoteStarted(uint256 indexed id, bytes32 indexed l1BlockHash, uint256 startTime, uint256 endTime)',
        [id, `0x${'2'.repeat(64)}`, at(n), at(end)],
      ),
    )
  const VOTE = 'event VoteEmitted(uint256 indexed id, address indexed voter, bool indexed support, uint256 votingPower)'
  const cast = (
    chain: string,
    n: number,
    voter: number,
    support: boolean,
    more: Partial<ChainLog> & { id?: bigint } = {},
  ) => {
    const { id = 7n, ...log } = more
    return logAt(n, machineOf(chain) ?? '', encodeEvent(VOTE, [id, voterOf(voter), support, BigInt(voter) * ONE]), log)
  }
  const forward = (n: number, voter: number) =>
    logAt(
      n,
      core,
      encodeEvent(
        'event VoteForwarded(uint256 indexed id, address indexed voter, bool indexed support, (address asset, uint128 slot)[] assets)',
        [7n, voterOf(voter), true, [{ asset: AUTHOR, slot: 0n }]],
      ),
    )

  type Logs = Readonly<Record<'ethereum' | 'polygon' | 'avalanche', ChainLog[]>>
  /** Starts with the chains of `logs`, which a test may replace later. */
  const start = (n: number, logs: () => Logs, habits: Partial<Record<keyof Logs, NodeHabits>> = {}) => {
    const chains = Object.fromEntries(
      (['ethereum', 'polygon', 'avalanche'] as const).map((slug) => [
        slug,
        {
          ...toGovernorChain([], { habits: habits[slug] ?? {} }),
          logs: (from: number, to: number, own: ReadonlySet<string>) =>
            toGovernorChain(logs()[slug]).logs(from, to, own),
        },
      ]),
    )
    return createGovernorPipeline({ now: nowAt(n), registry: young, chains, nodes: Object.keys(chains) })
  }
  const v3 = async () => (await pipeline.proposalsOf('aave')).sort((a, b) => a.votes - b.votes)

  it('open on the voting machine of another chain, and are queued and executed on Ethereum', async () => {
    let logs: Logs = { ethereum: [create(10, 7n)], polygon: [], avalanche: [] }
    pipeline = await start(150, () => logs)
    await pipeline.collectGovernors()
    const created = { title: '', choices: ['For', 'Against'], createdAt: timeAt(10), votes: 0 }
    expect(await v3()).toMatchObject([{ ...created, state: null, startsAt: null, endsAt: null, outcome: null }])

    const avalanche = [
      open('avalanche', 110, 7n, 800),
      cast('avalanche', 120, 5, true),
      cast('avalanche', 121, 2, false),
    ]
    logs = { ethereum: [...logs.ethereum, forward(115, 5)], polygon: [], avalanche }
    pipeline.clock.now = nowAt(400)
    expect(await pipeline.collectGovernors()).toMatchObject({ rejected: 0 })
    const voted = { scores: [5, 2], scoresTotal: 7, votes: 2, startsAt: timeAt(110), endsAt: timeAt(800) }
    expect(await v3()).toMatchObject([{ ...voted, state: 'active', outcome: null, timesEstimated: false }])
    expect(await pipeline.votesOf('aave')).toMatchObject([
      { voter: voterOf(2), choice: 2, votingPower: 2, createdAt: timeAt(121) },
      { voter: voterOf(5), choice: 1, votingPower: 5, createdAt: timeAt(120) },
    ])

    logs = { ...logs, ethereum: [...logs.ethereum, queue(850, 7n)] }
    pipeline.clock.now = nowAt(1_000)
    await pipeline.collectGovernors()
    expect(await v3()).toMatchObject([{ ...voted, outcome: 'queued', queuedAt: timeAt(850), executableAt: null }])

    logs = { ...logs, ethereum: [...logs.ethereum, execute(1_100, 7n)] }
    pipeline.clock.now = nowAt(1_300)
    await pipeline.collectGovernors()
    expect(await v3()).toMatchObject([{ ...voted, state: 'closed', outcome: 'executed', executedAt: timeAt(1_100) }])
    const before = await pipeline.dump()
    pipeline.clock.now = nowAt(1_700)
    await pipeline.collectGovernors()
    expect(await pipeline.dump()).toEqual(before)
  })

  it('count once each, on the machine of their proposal, without removed and reorganised ones', async () => {
    const vote = cast('avalanche', 120, 5, true)
    let avalanche = [
      open('avalanche', 110, 7n, 5_000),
      ...[vote, vote, cast('avalanche', 130, 9, true, { removed: true })],
      // Not final at the first reading.
      ...[cast('avalanche', 940, 2, true), cast('avalanche', 940, 3, true, { logIndex: 1 })],
    ]
    const polygon = [open('polygon', 110, 8n, 5_000), cast('polygon', 120, 4, false, { id: 8n })]
    pipeline = await start(1_000, () => ({ ethereum: [create(10, 7n), create(11, 8n)], polygon, avalanche }))
    await pipeline.collectGovernors()
    const scores = async () => (await v3()).map((one) => one.scores).sort()
    expect(await scores()).toEqual([
      [0, 4],
      [5, 0],
    ])
    avalanche = [...avalanche.slice(0, 2), cast('avalanche', 941, 2, false)]
    pipeline.clock.now = nowAt(1_400)
    await pipeline.collectGovernors()
    expect(await scores()).toEqual([
      [0, 4],
      [5, 2],
    ])
  })

  it('are read in the ranges that the node of the machine accepts', async () => {
    const avalanche = [
      open('avalanche', 110, 7n, 5_000),
      cast('avalanche', 120, 5, true),
      cast('avalanche', 800, 2, false),
    ]
    const habits = { avalanche: { host: 'quicknode' as const, mostBlocks: 300 } }
    pipeline = await start(1_000, () => ({ ethereum: [create(10, 7n)], polygon: [], avalanche }), habits)
    await pipeline.collectGovernors()
    expect(await v3()).toMatchObject([{ scores: [5, 2], votes: 2 }])
  })

  it('are not served before the voting machines of all chains are read', async () => {
    let isSpoiled = true
    const spoil: NodeHabits['spoil'] = (log) =>
      isSpoiled && log.address === machineOf('polygon')
        ? { ...toRpcLog(log, toGovernorChain([])), data: '0x12' }
        : undefined
    const polygon = [open('polygon', 110, 7n, 5_000), cast('polygon', 120, 4, false)]
    pipeline = await start(1_000, () => ({ ethereum: [create(10, 7n)], polygon, avalanche: [] }), {
      polygon: { spoil },
    })
    await expect(pipeline.collectGovernors()).rejects.toMatchObject({
      entities: [registry.daoBySlug.get('aave')?.id],
    })
    pipeline.changeFeed.commit('governors')
    expect(await v3()).toEqual([])
    isSpoiled = false
    pipeline.clock.now = nowAt(3_000)
    await pipeline.collectGovernors()
    expect(await v3()).toMatchObject([{ scores: [0, 4], votes: 1 }])
  })

  it('are refused with the setting if a chain of votes has no node', async () => {
    pipeline = await startGovernors(1_000, toGovernorChain([create(10, 7n)]))
    await pipeline.collectGovernors()
    const key = registry.daoBySlug.get('aave')?.key
    expect((await pipeline.notes()).find(({ entity }) => entity === key)?.reason).toMatch(
      /RPC_URLS names no node of polygon/,
    )
    expect(await v3()).toEqual([])
  })
})
