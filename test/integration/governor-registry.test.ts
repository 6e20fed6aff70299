import { afterEach, describe, expect, it } from 'vitest'
import governors from '../../workers/jobs/governors.ts'
import { runJob } from '../../workers/run/runner.ts'
import { logAt, toGovernorChain, toYoungRegistry } from '../support/governor-chain.ts'
import {
  createGovernorPipeline,
  ENS,
  type GovernorPipeline,
  HOP,
  proposal,
  type registry,
  voterOf,
} from '../support/governor-pipeline.ts'
import { encodeVote } from '../upstream/governor-logs.ts'
import { FIRST_BLOCK, nowAt, ONE } from '../upstream/small-chain.ts'

let pipeline: GovernorPipeline
afterEach(() => pipeline?.close())

const LOGS = [
  logAt(10, ENS.address, proposal(1n, [20, 500])),
  logAt(30, ENS.address, encodeVote(voterOf(1), 1n, 1, ONE)),
  logAt(600, ENS.address, proposal(2n, [620, 900])),
  logAt(640, ENS.address, encodeVote(voterOf(2), 2n, 1, 2n * ONE)),
  logAt(650, HOP.address, proposal(7n, [660, 900])),
]

const withEns = (change: object) =>
  toYoungRegistry((slug, all) => (slug === 'ens' ? all.map((one) => ({ ...one, ...change })) : all))

/** Starts with this record of ENS' governor, collects, and records the requested first blocks from then on. */
async function startWith(change: object) {
  const chain = toGovernorChain(LOGS)
  const requests: { from: number; addresses: ReadonlySet<string> }[] = []
  const logs: typeof chain.logs = (from, to, addresses) => {
    requests.push({ from, addresses })
    return chain.logs(from, to, addresses)
  }
  pipeline = await createGovernorPipeline({
    now: nowAt(1_000),
    registry: withEns(change),
    chains: { ethereum: { ...chain, logs } },
  })
  await pipeline.collectGovernors()
  requests.length = 0
  const firstOf = (address: string) =>
    Math.min(...requests.filter(({ addresses }) => addresses.has(address)).map(({ from }) => from))
  return { firstOf }
}

/** Collects an hour later with the registry of then. */
async function collectWith(own: typeof registry) {
  pipeline.clock.now = nowAt(2_000)
  const context = { ...pipeline.context, registry: own }
  const slot = pipeline.clock.now - (pipeline.clock.now % 3_600_000)
  await runJob(governors, governors.connect(context), context, { kind: 'slot', slot, again: true })
  pipeline.changeFeed.commit('governors')
}

const powersOf = async (slug: string) => (await pipeline.votesOf(slug)).map(({ votingPower }) => votingPower)

describe('record of a governor that was read', () => {
  it('is read again from an earlier first block, with the votes before', async () => {
    const { firstOf } = await startWith({ fromBlock: FIRST_BLOCK + 550 })
    expect(await powersOf('ens')).toEqual([2])
    await collectWith(withEns({}))
    expect(await powersOf('ens')).toEqual([2, 1])
    expect((await pipeline.proposalsOf('ens')).map(({ scores }) => scores)).toEqual([
      [2, 0, 0],
      [1, 0, 0],
    ])
    expect(firstOf(ENS.address)).toBe(FIRST_BLOCK)
    expect(firstOf(HOP.address)).toBeGreaterThan(FIRST_BLOCK + 650)
  })

  it('is read again with other decimals', async () => {
    await startWith({ decimals: 17 })
    expect(await powersOf('ens')).toEqual([20, 10])
    await collectWith(withEns({}))
    expect(await powersOf('ens')).toEqual([2, 1])
  })

  it('is continued at its cursor if nothing changed', async () => {
    const { firstOf } = await startWith({})
    await collectWith(withEns({}))
    expect(firstOf(ENS.address)).toBeGreaterThan(FIRST_BLOCK + 650)
  })
})
