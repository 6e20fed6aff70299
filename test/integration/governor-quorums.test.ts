import { afterEach, describe, expect, it } from 'vitest'
import { logAt, toGovernorChain } from '../support/governor-chain.ts'
import {
  ALPHA,
  blockOf,
  ENS,
  GITCOIN,
  type GovernorPipeline,
  HOP,
  idOf,
  proposal,
  registry,
  startGovernors,
  voterOf,
} from '../support/governor-pipeline.ts'
import type { Chain, ChainLog } from '../upstream/chain.ts'
import { callGovernor, type StatedGovernor } from '../upstream/governor-calls.ts'
import { encodeEvent, encodeProposal, encodeVote } from '../upstream/governor-logs.ts'
import { RpcRefusal } from '../upstream/providers/rpc-refusal.ts'
import { nowAt, ONE } from '../upstream/small-chain.ts'

let pipeline: GovernorPipeline
afterEach(() => pipeline?.close())

interface Quorum {
  quorum: number | null
  counted: string | null
  power: number | null
  reached: boolean | null
  missing: number | null
  live: boolean
}

const firstOf = (slug: string) => {
  const [governor] = registry.daoBySlug.get(slug)?.governors ?? []
  if (governor === undefined) throw new Error(`${slug} has no governor`)
  return governor
}
const NOUNS = firstOf('nouns')
const LIDO = firstOf('lido')

/** A chain with these logs, whose governors state these quorums. Calls are recorded. */
function toStatedChain(logs: readonly ChainLog[], governors: Readonly<Record<string, Partial<StatedGovernor>>>) {
  const calls: { contract: string; selector: string }[] = []
  const chain: Chain = {
    ...toGovernorChain(logs),
    governorCall: (call) => {
      calls.push(call)
      const own = governors[call.contract]
      const all = registry.daos.flatMap((dao) => dao.governors)
      const family = all.find(({ address }) => address === call.contract)?.family
      if (own === undefined || family === undefined) return undefined
      return callGovernor(
        { family, quorumOf: () => undefined, snapshotOf: (id) => BigInt(20 * Number(id)) + blockOf(0), ...own },
        call,
      )
    },
  }
  return { chain, calls }
}

const quorumsOf = async (slug: string) => {
  const found = await pipeline.get<{ quorum: number | null; quorumState: Quorum }[]>(
    `/proposals?id=${idOf(slug)}&source=governor&include=quorum`,
  )
  expect(found.map(({ quorum }) => quorum)).toEqual(found.map(({ quorumState }) => quorumState.quorum))
  return found.map(({ quorumState }) => quorumState)
}

const vote = (n: number, address: string, voter: number, support: number, power: bigint) =>
  logAt(n, address, encodeVote(voterOf(voter), 1n, support, power), { logIndex: voter })

describe('quorums of proposals', () => {
  const logs = [
    logAt(10, ENS.address, proposal(1n, [20, 500])),
    vote(30, ENS.address, 1, 1, 60n * ONE),
    vote(31, ENS.address, 2, 2, 30n * ONE),
    vote(32, ENS.address, 3, 0, 500n * ONE),
    logAt(10, HOP.address, proposal(1n, [20, 500]), { logIndex: 1 }),
    vote(33, HOP.address, 1, 1, 60n * ONE),
    vote(34, HOP.address, 2, 2, 50n * ONE),
  ]

  it('are those of the snapshot, and count the votes that the registry or the contract states', async () => {
    const asked: bigint[] = []
    const { chain, calls } = toStatedChain(logs, {
      [ENS.address]: {
        quorumOf: (timepoint) => {
          asked.push(timepoint)
          return 100n * ONE
        },
      },
      [HOP.address]: { mode: 'support=bravo&quorum=bravo', quorumOf: () => 60n * ONE },
    })
    pipeline = await startGovernors(200, chain)
    await pipeline.collectGovernors()
    expect(asked).toEqual([blockOf(20)])
    expect(await quorumsOf('ens')).toEqual([
      { quorum: 100, counted: 'for+abstain', power: 90, reached: false, missing: 10, live: false },
    ])
    expect(await quorumsOf('hop')).toEqual([
      { quorum: 60, counted: 'for', power: 60, reached: true, missing: 0, live: false },
    ])
    const before = calls.length
    pipeline.clock.now = nowAt(1_000)
    await pipeline.collectGovernors()
    expect(calls.slice(before).filter(({ contract }) => contract === ENS.address || contract === HOP.address)).toEqual(
      [],
    )
  })

  it('are unknown before the snapshot, where the contract states none, and while the node is busy', async () => {
    let isBusy = true
    const busy = () => {
      if (isBusy) throw new RpcRefusal(429, 'Too Many Requests')
      return 70n * ONE
    }
    const early = logAt(60, ENS.address, proposal(2n, [5_000, 9_000]))
    const { chain } = toStatedChain([...logs, early], {
      [ENS.address]: { quorumOf: busy },
      [HOP.address]: { snapshotOf: () => undefined },
    })
    pipeline = await startGovernors(200, chain)
    await pipeline.collectGovernors()
    const none = { quorum: null, counted: null, power: null, reached: null, missing: null, live: false }
    expect(await quorumsOf('ens')).toEqual([none, none])
    expect(await quorumsOf('hop')).toEqual([none])
    isBusy = false
    pipeline.clock.now = nowAt(1_000)
    await pipeline.collectGovernors()
    expect((await quorumsOf('ens')).map(({ quorum }) => quorum)).toEqual([null, 70])
    expect(await quorumsOf('hop')).toEqual([none])
  })

  it('that change with the votes are read until the end, in whole votes', async () => {
    let quorum = 2n
    const nouns = [
      logAt(
        10,
        NOUNS.address,
        encodeProposal({ id: 1n, proposer: voterOf(9), start: blockOf(20), end: blockOf(1_200), description: 'A' }),
      ),
      vote(30, NOUNS.address, 1, 1, 3n),
    ]
    const { chain } = toStatedChain(nouns, { [NOUNS.address]: { quorumOf: () => quorum } })
    pipeline = await startGovernors(200, chain)
    await pipeline.collectGovernors()
    expect(await quorumsOf('nouns')).toMatchObject([{ quorum: 2, counted: 'for', reached: true, live: true }])
    quorum = 5n
    pipeline.clock.now = nowAt(1_000)
    await pipeline.collectGovernors()
    expect(await quorumsOf('nouns')).toMatchObject([{ quorum: 5, power: 3, reached: false, missing: 2 }])
    quorum = 6n
    pipeline.clock.now = nowAt(1_500)
    await pipeline.collectGovernors()
    quorum = 7n
    pipeline.clock.now = nowAt(2_000)
    await pipeline.collectGovernors()
    expect(await quorumsOf('nouns')).toMatchObject([{ quorum: 6 }])
  })

  it("of Compound's first governors are constants, and of Aragon's votes a share of all power", async () => {
    const START_VOTE = 'event StartVote(uint256 indexed id, address indexed creator, string metadata)'
    const all = [
      logAt(10, ALPHA.address, proposal(1n, [20, 150])),
      logAt(40, LIDO.address, encodeEvent(START_VOTE, [1n, voterOf(9), 'A vote'])),
    ]
    const { chain } = toStatedChain(all, {
      [ALPHA.address]: { quorumOf: () => 400_000n * ONE },
      [LIDO.address]: { quorumOf: () => 50n * ONE },
    })
    pipeline = await startGovernors(300, chain)
    await pipeline.collectGovernors()
    expect(await quorumsOf('compound')).toMatchObject([{ quorum: 400_000, counted: 'for', power: 0, missing: 400_000 }])
    expect(await quorumsOf('lido')).toMatchObject([{ quorum: 50, counted: 'for' }])
  })

  it('keep the votes in parts of a governor whose contract states fractional counting', async () => {
    const parts = `0x${[10n, 20n, 30n].map((part) => (part * ONE).toString(16).padStart(32, '0')).join('')}` as const
    const CAST =
      'event VoteCastWithParams(address indexed voter, uint256 id, uint8 support, uint256 weight, string reason, bytes params)'
    const cast = (address: string) =>
      logAt(40, address, encodeEvent(CAST, [voterOf(1), 1n, 0, 60n * ONE, '', parts]), { logIndex: 9 })
    const plain = logAt(10, ENS.address, proposal(1n, [20, 500]))
    const hop = logAt(10, HOP.address, proposal(1n, [20, 500]), { logIndex: 1 })
    const { chain } = toStatedChain([plain, hop, cast(ENS.address), cast(HOP.address)], {
      [HOP.address]: { mode: 'support=bravo,fractional&quorum=for,abstain&params=fractional', quorumOf: () => ONE },
      // The registry states how it counts, so its contract is not asked.
      [ENS.address]: { mode: 'support=bravo&params=fractional', quorumOf: () => ONE },
    })
    pipeline = await startGovernors(200, chain)
    await pipeline.collectGovernors()
    expect((await pipeline.proposalsOf('hop')).map(({ scores }) => scores)).toEqual([[20, 10, 30]])
    expect((await pipeline.proposalsOf('ens')).map(({ scores }) => scores)).toEqual([[0, 60, 0]])
    expect(await quorumsOf('hop')).toMatchObject([{ counted: 'for+abstain', power: 50 }])
    expect(GITCOIN.counting).toBe('fractional')
  })
})
