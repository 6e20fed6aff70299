import { afterEach, describe, expect, it } from 'vitest'
import { probeProviders } from '../../workers/probe/probe.ts'
import { toReport } from '../../workers/probe/report.ts'
import { logAt, timeAt, toGovernorChain, toYoungRegistry } from '../support/governor-chain.ts'
import {
  ALPHA,
  AUTHOR,
  blockOf,
  createGovernorPipeline,
  ENS,
  type GovernorPipeline,
  HOP,
  proposal,
  registry,
  startGovernors,
  voterOf,
} from '../support/governor-pipeline.ts'
import { silent } from '../support/silent.ts'
import type { NodeHabits } from '../upstream/chain.ts'
import { encodeOutcome, encodeProposal, encodeVote } from '../upstream/governor-logs.ts'
import { toRpcLog } from '../upstream/providers/rpc-logs.ts'
import { FIRST_BLOCK, nowAt, ONE } from '../upstream/small-chain.ts'

let pipeline: GovernorPipeline
afterEach(() => pipeline?.close())

const LOGS = [
  logAt(10, ENS.address, proposal(1n, [20, 500])),
  logAt(30, ENS.address, encodeVote(voterOf(1), 1n, 1, ONE)),
  logAt(31, ENS.address, encodeVote(voterOf(2), 1n, 0, 2n * ONE)),
  logAt(40, HOP.address, proposal(7n, [50, 500])),
  logAt(60, HOP.address, encodeVote(voterOf(3), 7n, 1, 3n * ONE)),
]
const startWith = (habits: NodeHabits, logs = LOGS) => startGovernors(1_000, toGovernorChain(logs, { habits }))
const powersOf = async (slug: string) => (await pipeline.votesOf(slug)).map(({ votingPower }) => votingPower)

describe('votes on a governor', () => {
  it('count once if the node returns a log twice', async () => {
    pipeline = await startWith({}, [...LOGS, ...LOGS.slice(1, 3)])
    await pipeline.collectGovernors()
    expect(await powersOf('ens')).toEqual([2, 1])
    expect(await pipeline.proposalsOf('ens')).toMatchObject([{ scores: [1, 2, 0], scoresTotal: 3, votes: 2 }])
  })

  it('have the times of their blocks if the node returns zero with the logs', async () => {
    pipeline = await startWith({ logTimes: 'zero' })
    await pipeline.collectGovernors()
    expect((await pipeline.votesOf('ens')).map(({ createdAt }) => createdAt)).toEqual([timeAt(31), timeAt(30)])
  })

  it("are read in batches of three if that is the node's limit", async () => {
    pipeline = await startWith({ logTimes: false, mostCalls: 3 })
    await pipeline.collectGovernors()
    expect([await powersOf('ens'), await powersOf('hop')]).toEqual([[2, 1], [3]])
  })

  it('wait for a malformed log of their governor, without delaying other governors', async () => {
    let isSpoiled = true
    const spoil: NodeHabits['spoil'] = (log) =>
      isSpoiled && log.blockNumber === FIRST_BLOCK + 31
        ? { ...toRpcLog(log, toGovernorChain([])), data: '0x12' }
        : undefined
    pipeline = await startWith({ spoil })
    await expect(pipeline.collectGovernors()).rejects.toMatchObject({
      entities: [registry.daoBySlug.get('ens')?.id],
      message: expect.stringContaining('data: must be words of 32 bytes'),
    })
    expect(await powersOf('hop')).toEqual([3])
    isSpoiled = false
    pipeline.clock.now = nowAt(3_000)
    await pipeline.collectGovernors()
    pipeline.changeFeed.commit('governors')
    expect(await powersOf('ens')).toEqual([2, 1])
  })
})

describe('a log of a known event with another number of topics', () => {
  const word = `0x${'1'.padStart(64, '0')}`
  const [created, vote, ...others] = LOGS
  it.each([
    ['more', (topics: readonly string[]) => [...topics, word]],
    ['fewer', (topics: readonly string[]) => topics.slice(0, 1)],
  ])('is a gap with a reason if it has %s, and the others are stored', async (_what, change) => {
    if (created === undefined || vote === undefined) throw new Error('no logs')
    pipeline = await startWith({}, [created, { ...vote, topics: change(vote.topics) }, ...others])
    await expect(pipeline.collectGovernors()).rejects.toMatchObject({
      entities: [registry.daoBySlug.get('ens')?.id],
      message: expect.stringMatching(/VoteCast has \d topics, known versions have 2/),
    })
    expect(await powersOf('hop')).toEqual([3])
    const stored = await pipeline.dump()
    expect(JSON.stringify(stored)).toContain(voterOf(2))
    // After a day the log is left out, which the coverage names.
    pipeline.clock.now = nowAt(1_000) + 26 * 3_600_000
    await pipeline.collectGovernors()
    expect((await pipeline.notes()).some(({ reason }) => /left out.*VoteCast has/.test(reason))).toBe(true)
    pipeline.changeFeed.commit('governors')
    expect(await powersOf('ens')).toEqual([2])
  })
})

describe('governor whose first logs the node has pruned', () => {
  it('fails with the required node, and the others are read', async () => {
    const old = (slug: string) => slug === 'compound'
    const own = toYoungRegistry((slug, all) =>
      all.map((one) => (old(slug) && one.address === ALPHA.address ? { ...one, fromBlock: FIRST_BLOCK - 5_000 } : one)),
    )
    const chain = toGovernorChain(LOGS, { habits: { firstLogs: FIRST_BLOCK - 10 } })
    pipeline = await createGovernorPipeline({ now: nowAt(1_000), registry: own, chains: { ethereum: chain } })
    expect(await pipeline.collectGovernors()).toMatchObject({ uncovered: 7 })
    const notes = await pipeline.notes()
    expect(notes.find(({ entity }) => entity === own.daoBySlug.get('compound')?.key)?.reason).toMatch(
      /rpc-ethereum has no logs of block 19795000 any more \(error 4444.*RPC_URLS needs a node that has the logs from block/,
    )
    expect([await powersOf('ens'), await powersOf('hop')]).toEqual([[2, 1], [3]])
  })

  it('is named by a check of the providers', async () => {
    const old = toYoungRegistry((slug, all) =>
      slug === 'compound' ? all.map((one) => ({ ...one, fromBlock: FIRST_BLOCK - 5_000 })) : all,
    )
    const chain = toGovernorChain(LOGS, { habits: { firstLogs: FIRST_BLOCK - 10 } })
    pipeline = await createGovernorPipeline({ now: nowAt(1_000), registry: old, chains: { ethereum: chain } })
    const { config, db, now } = pipeline.context
    const own = { config, db, now: now(), log: silent, isShort: false, timeoutMs: 20_000, backoffMs: 1 }
    const probes = await probeProviders({ ...own, registry: old, signal: new AbortController().signal })
    const observed = probes.filter(({ dataset }) => dataset === 'governors')
    expect(observed.map(({ entity, finding }) => [entity, finding])).toContainEqual(['Compound', 'unconfigured'])
    expect(toReport(probes)).toMatch(/governors.*Compound.*RPC_URLS needs a node that has the logs from block/)
  })

  it('does not change the start blocks of other governors, which are requested together', async () => {
    const first = FIRST_BLOCK - 40_000
    const own = toYoungRegistry((slug, all) =>
      slug === 'compound' ? all.map((one) => ({ ...one, fromBlock: first })) : all,
    )
    const chain = toGovernorChain(LOGS)
    const governors = own.daos.flatMap((dao) => dao.governors.map(({ address }) => address))
    const requests: { from: number; addresses: ReadonlySet<string> }[] = []
    const logs: typeof chain.logs = (from, to, addresses) => {
      // Timelocks are read after the governors.
      if (governors.some((address) => addresses.has(address))) requests.push({ from, addresses })
      return chain.logs(from, to, addresses)
    }
    pipeline = await createGovernorPipeline({
      now: nowAt(1_000),
      registry: own,
      chains: { ethereum: { ...chain, logs } },
    })
    await pipeline.collectGovernors()
    for (const { from, addresses } of requests) expect(addresses.has(ENS.address)).toBe(from >= FIRST_BLOCK)
    expect(requests.at(-1)?.addresses.has(ALPHA.address)).toBe(true)
    expect(await powersOf('ens')).toEqual([2, 1])
  })
})

describe('governor with unusual counting', () => {
  const startAs = (more: object, logs = LOGS) => {
    const own = toYoungRegistry((slug, all) => (slug === 'ens' ? all.map((one) => ({ ...one, ...more })) : all))
    return createGovernorPipeline({ now: nowAt(1_000), registry: own, chains: { ethereum: toGovernorChain(logs) } })
  }

  it('stores integer voting power for a token without decimals', async () => {
    pipeline = await startAs({ decimals: 0 }, [
      logAt(10, ENS.address, proposal(1n, [20, 500])),
      logAt(30, ENS.address, encodeVote(voterOf(1), 1n, 1, 12n)),
    ])
    await pipeline.collectGovernors()
    expect(await powersOf('ens')).toEqual([12])
  })

  it('stores null times if its clock counts rounds', async () => {
    pipeline = await startAs({ clock: 'rounds' }, [
      logAt(
        10,
        ENS.address,
        encodeProposal({ id: 1n, proposer: AUTHOR, start: 3_400n, end: 3_410n, description: 'x' }),
      ),
      logAt(
        12,
        ENS.address,
        encodeProposal({ id: 2n, proposer: AUTHOR, start: blockOf(20), end: blockOf(30), description: 'y' }),
      ),
      logAt(900, ENS.address, encodeOutcome('ProposalExecuted', 2n)),
    ])
    await pipeline.collectGovernors()
    const fields = (await pipeline.proposalsOf('ens')).map(({ startsAt, endsAt, state }) => [startsAt, endsAt, state])
    expect(fields).toEqual([
      [null, null, 'closed'],
      [null, null, null],
    ])
  })
})
