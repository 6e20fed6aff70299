import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { governanceConcentrationRoute } from '../../api/routes/daos/governance/concentration.ts'
import { delegateHistoryRoute } from '../../api/routes/daos/governance/delegates/historic.ts'
import { governanceDelegatesRoute } from '../../api/routes/daos/governance/delegates.ts'
import { governanceDelegationsRoute } from '../../api/routes/daos/governance/delegations.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import delegations from '../../workers/jobs/delegations.ts'
import { governorOf, logAt, timeAt, toGovernorChain } from '../support/governor-chain.ts'
import {
  createGovernorPipeline,
  type GovernorPipeline,
  idOf,
  proposal,
  registry,
  startGovernors,
  voterOf,
} from '../support/governor-pipeline.ts'
import type { ChainLog } from '../upstream/chain.ts'
import { encodeDelegation, encodeEvent, encodePower, encodeVote, ZERO_ADDRESS } from '../upstream/governor-logs.ts'
import { createLoggedChain } from '../upstream/logged-chain.ts'
import { OP_TOKEN, readOptimismPowers } from '../upstream/recorded-governors.ts'
import { hashOf, nowAt, ONE, UNI } from '../upstream/small-chain.ts'

const dataDir = process.env.UPSTREAM_DATA_DIR || join(import.meta.dirname, '../../../shared/data')
const isRecorded = existsSync(join(dataDir, 'governance-dao-node'))
if (!isRecorded) console.log(`recorded delegations are not tested: there are none in ${dataDir}`)

let pipeline: GovernorPipeline
afterEach(() => pipeline?.close())

const [HOLDER, OTHER, FIRST, SECOND] = [1, 2, 3, 4].map((n) => voterOf(n)) as [string, string, string, string]
/** The logs of one transaction. */
const inTransaction = (n: number, ...all: Pick<ChainLog, 'topics' | 'data'>[]) =>
  all.map((event, logIndex) => logAt(n, UNI, event, { logIndex, transactionHash: hashOf(n) }))

const BRAVO = governorOf(registry, 'uniswap', 'bravo').address
const logs = [
  ...inTransaction(10, encodeDelegation(HOLDER, ZERO_ADDRESS, FIRST), encodePower(FIRST, 0n, 10n * ONE)),
  ...inTransaction(20, encodePower(FIRST, 10n * ONE, 7n * ONE)),
  ...inTransaction(30, encodeDelegation(OTHER, ZERO_ADDRESS, SECOND), encodePower(SECOND, 0n, ONE + 1n)),
  ...[logAt(40, BRAVO, proposal(1n, [50, 100])), logAt(60, BRAVO, encodeVote(FIRST, 1n, 1, 7n * ONE))],
  ...[logAt(110, BRAVO, proposal(2n, [120, 150]))],
]
const moved = inTransaction(
  300,
  encodeDelegation(HOLDER, FIRST, SECOND),
  encodePower(FIRST, 7n * ONE, 0n),
  encodePower(SECOND, ONE + 1n, 8n * ONE + 1n),
)

const ask = (path: string) =>
  pipeline.get<Record<string, unknown>[]>(`${path}${path.includes('?') ? '&' : '?'}id=${idOf('uniswap')}`)

async function start() {
  let now = [...logs, ...logs]
  const chain = toGovernorChain([])
  pipeline = await startGovernors(250, { ...chain, logs: (from, to, own) => toGovernorChain(now).logs(from, to, own) })
  const collect = async () => {
    expect(await pipeline.collect(delegations)).toMatchObject({ rejected: 0 })
    await pipeline.collectGovernors()
  }
  await collect()
  return async (n: number, all: readonly ChainLog[]) => {
    now = [...all]
    pipeline.clock.now = nowAt(n)
    await collect()
  }
}

describe('/data/daos/governance/delegates', () => {
  it('lists delegates by power, with their delegators and votes', async () => {
    await start()
    const found = await ask('/delegates?exact=true')
    expect(found).toMatchObject([
      {
        delegate: FIRST,
        votingPower: 7,
        votingPowerExact: '7',
        delegators: 1,
        votesCast: 1,
        proposalsMissed: 1,
        lastVoteAt: timeAt(60),
      },
      {
        delegate: SECOND,
        votingPowerExact: '1.000000000000000001',
        share: expect.closeTo(1 / 8),
        delegators: 1,
        votesCast: 0,
        proposalsMissed: 2,
        lastVoteAt: null,
      },
    ])
    governanceDelegatesRoute.response.parse(await ask('/delegates'))
    expect(await ask('/delegates?sort=delegators&limit=1')).toHaveLength(1)
    for (const format of ['json', 'csv', 'parquet'] as const) {
      const path = `/delegates?limit=1&sort=-share&format=${format}&id=${idOf('uniswap')}`
      const response = await fetch(`${pipeline.url}/data/daos/governance${path}`)
      expect([response.headers.get('x-total-count'), response.headers.get('link')]).toEqual(['2', expect.anything()])
      const next = /<([^>]*)>/.exec(response.headers.get('link') ?? '')?.[1]
      const bytes = Buffer.from(
        await (await fetch(`${pipeline.url}/data/daos/governance/delegates${next}`)).arrayBuffer(),
      )
      if (format === 'json') expect(JSON.parse(bytes.toString())).toMatchObject([{ delegate: SECOND, share: 0.125 }])
      else expect(bytes.includes(SECOND) && !bytes.includes(FIRST)).toBe(true)
    }
    expect(await ask(`/delegates?asOf=${timeAt(15)}`)).toMatchObject([
      { delegate: FIRST, votingPower: 10, votesCast: 0, proposalsMissed: 0 },
    ])
  })

  it('follows a delegation to another delegate, without removed logs', async () => {
    const collect = await start()
    const removed = logAt(310, UNI, encodePower(SECOND, 8n * ONE + 1n, 0n), { removed: true })
    await collect(900, [...logs, ...moved, ...moved, removed])
    expect(await ask('/delegates?exact=true')).toMatchObject([
      { delegate: SECOND, votingPowerExact: '8.000000000000000001', delegators: 2, share: 1 },
    ])
    expect(await ask(`/delegates?asOf=${timeAt(200)}`)).toMatchObject([{ delegate: FIRST }, { delegate: SECOND }])
  })

  it('has no data without a voting token', async () => {
    await start()
    await pipeline.get(`/delegates?id=${idOf('aave')}`, 404)
  })
})

describe('/data/daos/governance/delegates/historic', () => {
  it('lists changes with their cause, without a break, in pages', async () => {
    const collect = await start()
    await collect(900, [...logs, ...moved])
    const found = await ask(`/delegates/historic?address=${FIRST}`)
    delegateHistoryRoute.response.parse(found)
    expect(found).toMatchObject([
      { recordedAt: timeAt(300), votingPower: 0, change: -7, cause: 'delegation', transactionHash: hashOf(300) },
      { recordedAt: timeAt(20), votingPower: 7, change: -3, cause: 'transfer' },
      { recordedAt: timeAt(10), votingPower: 10, change: 10, cause: 'delegation' },
    ])
    const response = await fetch(
      `${pipeline.url}/data/daos/governance/delegates/historic?id=${idOf('uniswap')}&address=${FIRST}&limit=2`,
    )
    const next = /<([^>]*)>/.exec(response.headers.get('link') ?? '')?.[1]
    expect(await pipeline.get(`/delegates/historic${next}`)).toEqual(found.slice(2))
  })
})

describe('/data/daos/governance/delegations', () => {
  it('lists events, newest first, also if they are read again', async () => {
    const collect = await start()
    await collect(900, [...logs, ...moved])
    await collect(1_300, [...logs, ...moved])
    const found = await ask('/delegations')
    governanceDelegationsRoute.response.parse(found)
    expect(found).toMatchObject([
      { recordedAt: timeAt(300), delegator: HOLDER, from: FIRST, to: SECOND, transactionHash: hashOf(300) },
      { delegator: OTHER, from: null, to: SECOND },
      { delegator: HOLDER, from: null, to: FIRST },
    ])
  })
})

describe('/data/daos/governance/concentration', () => {
  it('measures each day', async () => {
    await start()
    const found = await ask('/concentration')
    governanceConcentrationRoute.response.parse(found)
    expect(found).toMatchObject([
      {
        recordedAt: '2024-05-06T23:59:59.999Z',
        totalPower: 8,
        top10Share: 1,
        holdersOfHalf: 1,
        gini: expect.closeTo(3 / 8),
        ...{ quorum: 40_000_000, quorumReachableBy: null },
      },
    ])
  })

  it.each([
    [[], null, null],
    [[{ from: '2024-05-06', power: 7.5 }], 7.5, 2],
    [[{ from: '2024-05-06', power: 7 }], 7, 1],
    [
      [
        { from: '2020-01-01', power: 7 },
        { from: '2024-05-06', power: null },
      ],
      null,
      null,
    ],
    [[{ from: '2024-05-07', power: 7 }], null, null],
  ])('has the delegates that reach the quorum %j', async (quorums, quorum, quorumReachableBy) => {
    const daos = registry.daos.map((dao) =>
      dao.slug === 'uniswap' ? { ...dao, votingToken: dao.votingToken && { ...dao.votingToken, quorums } } : dao,
    )
    const own = { ...registry, daos, daoById: new Map(daos.map((dao) => [dao.id, dao])) }
    pipeline = await createGovernorPipeline({
      now: nowAt(250),
      registry: own,
      chains: { ethereum: toGovernorChain(logs) },
    })
    await pipeline.collect(delegations)
    expect(await ask('/concentration')).toMatchObject([{ quorum, quorumReachableBy }])
  })
})

describe('/data/voters', () => {
  it('has DAOs in which the address is a delegate', async () => {
    await start()
    const response = await fetch(`${pipeline.url}/data/voters?address=${SECOND}`)
    expect(await response.json()).toMatchObject([
      {
        dao: idOf('uniswap'),
        name: 'Uniswap',
        votes: 0,
        firstVoteAt: null,
        lastVoteAt: null,
        votingPower: 1,
        delegators: 1,
      },
    ])
  })
})

describe('collection of delegations', () => {
  it('waits for a truncated log, and other tokens are still read', async () => {
    const cut = { ...encodePower(FIRST, 0n, ONE), data: `0x${'0'.repeat(64)}` }
    const ens = registry.daoBySlug.get('ens')?.votingToken?.address ?? ''
    const own = encodeEvent('event DelegateChanged(address indexed a, address indexed b, address indexed c)', [
      HOLDER,
      ZERO_ADDRESS,
      FIRST,
    ])
    pipeline = await startGovernors(1_000, toGovernorChain([logAt(10, UNI, cut), logAt(11, ens, own)]))
    await expect(pipeline.collect(delegations)).rejects.toMatchObject({ entities: [idOf('uniswap')] })
    expect(await pipeline.get(`/delegations?id=${idOf('ens')}`)).toHaveLength(1)
    await pipeline.get(`/delegations?id=${idOf('uniswap')}`, 404)
  })

  it('counts a log that stays truncated for a day as rejected, and reads on', async () => {
    const cut = { ...encodePower(FIRST, 0n, ONE), data: `0x${'0'.repeat(64)}` }
    const after = encodeDelegation(HOLDER, ZERO_ADDRESS, FIRST)
    pipeline = await startGovernors(1_000, toGovernorChain([logAt(10, UNI, cut), logAt(20, UNI, after)]))
    await expect(pipeline.collect(delegations)).rejects.toMatchObject({ entities: [idOf('uniswap')] })
    const blocksOfDay = 7_200
    pipeline.clock.now = nowAt(1_000 + blocksOfDay + 400)
    expect(await pipeline.collect(delegations)).toMatchObject({ rejected: 1 })
    expect(await ask('/delegations')).toMatchObject([{ delegator: HOLDER, to: FIRST }])
  })
})

describe("delegations of Venus' vault", () => {
  it('are those of its second version, after it dropped all earlier ones', async () => {
    const vault = registry.daoBySlug.get('venus')?.votingToken?.address ?? ''
    const changed =
      'event DelegateChangedV2(address indexed delegator, address indexed fromDelegate, address indexed toDelegate)'
    const power = 'event DelegateVotesChangedV2(address indexed delegate, uint256 previousBalance, uint256 newBalance)'
    const bnb = toGovernorChain([
      logAt(10, vault, encodeDelegation(OTHER, ZERO_ADDRESS, FIRST)),
      logAt(10, vault, encodePower(FIRST, 0n, 9n * ONE), { logIndex: 1 }),
      logAt(20, vault, encodeEvent(changed, [HOLDER, ZERO_ADDRESS, SECOND])),
      logAt(20, vault, encodeEvent(power, [SECOND, 0n, 5n * ONE]), { logIndex: 1, transactionHash: hashOf(20_000) }),
    ])
    const chains = { ethereum: toGovernorChain([]), bnb }
    pipeline = await createGovernorPipeline({ now: nowAt(1_000), registry, chains, nodes: Object.keys(chains) })
    expect(await pipeline.collect(delegations)).toMatchObject({ rejected: 0 })
    const of = (path: string) => pipeline.get<unknown[]>(`${path}?id=${idOf('venus')}`)
    expect(await of('/delegates')).toMatchObject([{ delegate: SECOND, votingPower: 5, delegators: 1, share: 1 }])
    expect(await of('/delegations')).toMatchObject([{ delegator: HOLDER, from: null, to: SECOND }])
  })
})

describe.skipIf(!isRecorded)("recorded powers of Optimism's delegates", () => {
  it('form a series without a break for each delegate', async () => {
    const { logs: recorded, times } = readOptimismPowers(dataDir)
    const shipped = loadRegistry()
    const daos = shipped.daos.map((dao) => ({
      ...dao,
      governors: [],
      votingToken: dao.votingToken?.address === OP_TOKEN ? dao.votingToken : null,
    }))
    const own = {
      ...shipped,
      daos,
      daoById: new Map(daos.map((dao) => [dao.id, dao])),
      daoBySlug: new Map(daos.map((dao) => [dao.slug, dao])),
    }
    const known = new Map([...times, [4_000_000, Date.parse('2022-03-01T00:00:00Z') / 1000]])
    const optimism = { ...createLoggedChain({ logs: recorded, times: known, pools: [] }), chainId: 10 }
    const now = Date.parse('2025-05-10T00:00:00Z')
    pipeline = await createGovernorPipeline({
      now,
      registry: own,
      chains: { optimism },
      nodes: ['ethereum', 'optimism'],
    })
    expect(await pipeline.collect(delegations)).toMatchObject({ rejected: 0 })
    const [found] = await pipeline.database.db.rows({
      name: 'breaks',
      sql: `SELECT count() AS changes, countIf(previous != before AND place > 1) AS breaks FROM
(
  SELECT previous, lagInFrame(power) OVER series AS before, row_number() OVER series AS place
  FROM (SELECT * FROM delegate_powers FINAL)
  WINDOW series AS (PARTITION BY delegate ORDER BY block_number, log_index ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
)`,
      schema: z.object({ changes: z.number(), breaks: z.number() }),
    })
    expect(found).toEqual({ changes: 5000, breaks: 0 })
  })
})
