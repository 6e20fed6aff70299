import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Dao } from '../../shared/registry/entities.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import governance from '../../workers/jobs/governance.ts'
import { runJob } from '../../workers/run/runner.ts'
import { startHub, toProposal, toVotes } from '../support/hub.ts'
import { createServedPipeline, type ServedPipeline } from '../support/served-pipeline.ts'
import { jsonReply } from '../upstream/exchange.ts'
import type { SpaceProposal, SpaceVote } from '../upstream/world.ts'

const HOUR = 3_600_000
const SPACE = 'one.eth'
const START = Date.parse('2024-05-06T07:01:00Z')
const at = (ms: number) => Math.floor(ms / 1000)
const opened = { created: at(START) - 7200, start: at(START) - 7200, end: at(START) + 7200 }
const voter = (n: number) => `0x${String(n).padStart(40, '0')}`

const proposals: SpaceProposal[] = [
  toProposal({
    id: '0xold',
    created: at(START) - 90 * 86_400,
    start: at(START) - 90 * 86_400,
    end: at(START) - 85 * 86_400,
    votes: 2,
  }),
  toProposal({ id: '0xnew', title: 'First title', ...opened }),
]
const cast = (n: number, created: number, choice: unknown, proposal = '0xnew'): SpaceVote => ({
  ...{ id: `0x${n}${created}`, voter: voter(n), created, proposal, choice, power: n },
})
const votes: SpaceVote[] = [
  ...toVotes(2, at(START) - 89 * 86_400).map((vote) => ({ ...vote, proposal: '0xold' })),
  cast(1, opened.start + 10, 1),
  cast(2, opened.start + 20, '0xsecret'),
]

let hub: Awaited<ReturnType<typeof startHub>>
let pipeline: ServedPipeline

beforeAll(async () => {
  hub = await startHub({ id: SPACE, name: 'Aave', proposals, votes })
  pipeline = await createServedPipeline({ now: START, settings: { SNAPSHOT_BASE_URL: hub.baseUrl }, toServed })
})
afterAll(async () => {
  await pipeline?.close()
  await hub?.close()
})

/** A registry with one DAO, which votes in the hub's only space. */
function toServed(registry: Registry): Registry {
  const aave = { ...(registry.daoBySlug.get('aave') as Dao), snapshotSpace: SPACE, formerSnapshotSpaces: [] }
  return { ...registry, daos: [aave], daoById: new Map([[aave.id, aave]]) }
}

/** Collects the slot of this hour; `behind` is how far this machine's clock is behind that of the slot's first worker. */
async function collect(behind = 0) {
  const context = { ...pipeline.context, registry: toServed(pipeline.registry) }
  const slot = Math.floor(pipeline.clock.now / HOUR) * HOUR
  const now = () => (behind > 0 ? slot - behind : pipeline.clock.now)
  await runJob(governance, governance.connect(context), { ...context, now }, { kind: 'slot', slot, again: true })
  pipeline.changeFeed.commit('governance')
}
async function get<T>(list: string): Promise<T[]> {
  const response = await fetch(`${pipeline.url}/data/daos/governance${list}name=aave`)
  expect(response.status, list).toBe(200)
  return (await response.json()) as T[]
}
const readVotes = async () =>
  (await get<{ voter: string; choice: unknown; votingPower: number }>('/votes?')).map(
    ({ voter, choice, votingPower }) => [voter, choice, votingPower],
  )
const readTitles = async () =>
  (await get<{ title: string; votes: number }>('/proposals?')).map(({ title, votes }) => [title, votes])
const readCounts = async () => {
  const [{ votes, proposals }] = (await Promise.all([get<never>('?')])) as unknown as [
    { votes: { count: number; uniqueAddressesCount: number }; proposals: number },
  ]
  return [votes.count, votes.uniqueAddressesCount, proposals]
}

describe('proposals and votes that change at the source', () => {
  it('are updated after an edit, a changed vote, a revealed vote and a deleted proposal', async () => {
    await collect()
    expect(await readTitles()).toEqual([
      ['First title', 0],
      ['One', 2],
    ])
    expect((await readVotes()).slice(0, 2)).toEqual([
      [voter(2), '0xsecret', 2],
      [voter(1), 1, 1],
    ])
    expect(await readCounts()).toEqual([4, 4, 2])

    // A vote changes: the hub deletes the previous one. The proposal is edited, and its votes are counted.
    proposals[1] = { ...(proposals[1] as SpaceProposal), title: 'Second title', votes: 2 }
    votes[2] = cast(1, opened.start + 3000, 3)
    pipeline.clock.now += HOUR
    await collect()
    expect(await readTitles()).toEqual([
      ['Second title', 2],
      ['One', 2],
    ])
    expect((await readVotes()).slice(0, 2)).toEqual([
      [voter(1), 3, 1],
      [voter(2), '0xsecret', 2],
    ])
    expect(await readCounts()).toEqual([4, 4, 2])
    const [first] = await get<{ voter: string; votes: number }>('/voters?limit=1&')
    expect(first?.votes).toBe(1)

    // Secret choices are revealed some time after the end.
    votes[3] = { ...(votes[3] as SpaceVote), choice: 2, power: 20 }
    pipeline.clock.now = (opened.end + 3 * 3600) * 1000
    await collect()
    expect((await readVotes()).slice(0, 2)).toEqual([
      [voter(1), 3, 1],
      [voter(2), 2, 20],
    ])

    // Deleted: the hub has neither the proposal nor its votes. The job detects it when it reads all proposals, once a day.
    proposals.pop()
    votes.splice(2)
    pipeline.clock.now += HOUR
    await collect()
    expect(await readCounts()).toEqual([4, 4, 2])
    pipeline.clock.now = START + 25 * HOUR
    await collect()
    expect(await readTitles()).toEqual([['One', 2]])
    expect((await readVotes()).length).toBe(2)
    expect(await readCounts()).toEqual([2, 2, 1])
    const [summary] = await get<object>('/summary?')
    expect(summary).toMatchObject({ votes: { count: 2, uniqueAddressesCount: 2 }, proposals: 1 })
    expect((await get<object>('/voters?')).length).toBe(2)

    // The hub restores the proposal: it counts again.
    proposals.push(toProposal({ id: '0xnew', title: 'Third title', ...opened, votes: 0 }))
    pipeline.clock.now += 25 * HOUR
    await collect()
    expect(await readTitles()).toEqual([
      ['Third title', 0],
      ['One', 2],
    ])

    // The daily run reads all proposals again, although the clock of this machine is before the daily time.
    pipeline.clock.now += 25 * HOUR
    await collect(500)
    expect(await readTitles()).toEqual([
      ['Third title', 0],
      ['One', 2],
    ])
  })

  it('are kept if the hub does not have the space any more', async () => {
    proposals.splice(0)
    votes.splice(0)
    pipeline.clock.now += 25 * HOUR
    hub.next.push(jsonReply({ data: { proposals: [] } }), jsonReply({ data: { space: null } }))
    await collect()
    expect((await readTitles()).length).toBe(2)
  })
})
