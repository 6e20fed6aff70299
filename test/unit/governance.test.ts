import { describe, expect, it } from 'vitest'
import { parseConfig } from '../../shared/config/config.ts'
import type { GovernanceRow } from '../../shared/datasets/governance.ts'
import { DataError } from '../../shared/errors.ts'
import type { Statement } from '../../shared/store/store.ts'
import type { HttpRequest } from '../../workers/http/client.ts'
import type { ProviderContext } from '../../workers/job/define-job.ts'
import governance from '../../workers/jobs/governance.ts'
import { toTestDao } from '../samples.ts'
import { HUB_START, NOTHING, toProposal, toVotes } from '../support/hub.ts'
import { createState, toRun } from '../support/run.ts'
import { silent } from '../support/silent.ts'
import { snapshot as standIn } from '../upstream/providers/snapshot.ts'
import type { Space, SpaceProposal, SpaceVote } from '../upstream/world.ts'

const CREATED = Date.parse('2024-01-01T00:00:00Z') / 1000
const VOTER = `0x${'a'.repeat(40)}`

/** A hub whose spaces have one proposal and one vote each. Requests for a space in `down` fail. */
function openHub(down: ReadonlySet<string>) {
  const json = async ({ body }: HttpRequest) => {
    const { query, variables } = body as { query: string; variables: { space: string } }
    if (down.has(variables.space)) throw new DataError('provider_unavailable', 'snapshot: status 503')
    const of = { id: `0x${variables.space}`, created: CREATED }
    if (query.includes('proposals(')) return { data: { proposals: [{ ...of, author: VOTER }] } }
    return { data: { votes: [{ ...of, voter: VOTER, proposal: { id: of.id } }] } }
  }
  const config = parseConfig({ SNAPSHOT_REQUESTS_PER_MINUTE: '6000' })
  // All texts are stored.
  const rows = async ({ params }: Statement) => [{ proposal: `0x${params?.space}`, edited: CREATED }]
  const context = { config, db: { rows }, log: silent, http: { open: () => ({ json }) } }
  const [collector] = governance.connect(context as unknown as ProviderContext)
  return collector ?? expect.unreachable('a provider')
}

it('governance keeps the rows and cursor of one space if another space of the DAO fails', async () => {
  const dao = { ...toTestDao(1, null), snapshotSpace: 'new.eth', formerSnapshotSpaces: ['old.eth'] }
  const cursors = new Map<string, string>()
  const state = {
    get: async (name: string) => cursors.get(name),
    set: (name: string, value: string) => void cursors.set(name, value),
    save: async () => {},
  }
  const read = async (down: readonly string[]) => {
    const testRun = toRun({ entities: [dao], state, slot: CREATED * 1000 + 3_600_000 })
    const rows = (await openHub(new Set(down)).collect(testRun.run)) as GovernanceRow[]
    return { ...testRun, rows: rows.map(({ space, kind }) => `${space} ${kind}`) }
  }

  const first = await read(['old.eth'])
  expect([...cursors.keys()]).toEqual(['new.eth'])
  expect(first.rows).toEqual(['new.eth proposal', 'new.eth vote', 'new.eth sweep'])
  // The DAO is not counted as completely read.
  expect([[...first.refused.keys()], first.read]).toEqual([[dao.key], []])

  const second = await read([])
  expect(second.rows).toEqual(expect.arrayContaining(['old.eth vote', 'new.eth reading', 'old.eth reading']))
  expect([second.refused.size, second.read]).toEqual([0, [dao.key]])
})

const HOUR = 3_600_000
const SLOT = (HUB_START + 86_400) * 1000
const END = HUB_START + 300

type Answer = Record<string, unknown>

/** The job with a hub of one space. `change` may replace a response of the hub. */
function openSpace(space: Pick<Space, 'proposals' | 'votes'>, change: (answer: Answer) => Answer = (answer) => answer) {
  const dao = { ...toTestDao(1, null), snapshotSpace: 'one.eth', formerSnapshotSpaces: [] }
  const state = createState()
  const world = { ...NOTHING, space: () => ({ id: 'one.eth', name: 'One', ...space }) }
  const requests: string[] = []
  const json = async ({ path, body }: HttpRequest) => {
    requests.push(JSON.stringify(body))
    const request = { method: 'POST', path, query: new URLSearchParams(), headers: {}, now: 0, plan: 'open' as const }
    const reply = await standIn.handle({ ...request, body: JSON.stringify(body) }, world)
    return change(JSON.parse(reply.body) as Answer)
  }
  const context = {
    config: parseConfig({}),
    db: { rows: async () => [] },
    log: silent,
    http: { open: () => ({ json }) },
  }
  const [collector = expect.unreachable('a provider')] = governance.connect(context as unknown as ProviderContext)
  return {
    asked: requests,
    read: async (slot = SLOT) => {
      const testRun = toRun({ entities: [dao], state, slot })
      const rows = (await collector.collect(testRun.run)) as (GovernanceRow & Record<string, unknown>)[]
      const of = (kind: string) => rows.filter((row) => row.kind === kind)
      return {
        ...testRun,
        rows,
        omitted: testRun.omitted.get(dao.key),
        proposals: of('proposal'),
        votes: of('vote'),
        of,
      }
    },
  }
}

const voteOf = (createdValue: Partial<SpaceVote>): SpaceVote => ({
  ...(toVotes(1, HUB_START + 100)[0] as SpaceVote),
  ...createdValue,
})

it('a proposal that the hub flags as spam is stored with the mark, and a mark that is no boolean counts as absent', async () => {
  const proposals = [
    toProposal({ id: '0xa', flagged: true }),
    toProposal({ id: '0xb' }),
    toProposal({ id: '0xc', flagged: 'yes' as unknown as boolean }),
  ]
  const { proposals: found } = await openSpace({ proposals, votes: [] }).read()
  expect(found.map(({ proposal, is_flagged }) => [proposal, is_flagged])).toEqual([
    ['0xa', true],
    ['0xb', false],
    ['0xc', false],
  ])
})

describe('unreadable element', () => {
  const proposals = [
    toProposal({ id: '0xa' }),
    toProposal({ id: '0xb', created: HUB_START + 95, end: 4_102_444_800 }),
    toProposal({ id: '0xc', created: HUB_START + 99 }),
  ]

  it('loses only itself if the hub returns null and an error with the data, and is reported', async () => {
    const { read } = openSpace({ proposals, votes: toVotes(3, HUB_START + 100) })
    const { proposals: found, votes, read: done, refused, omitted } = await read()
    expect(found.map(({ proposal }) => proposal)).toEqual(['0xa', '0xc'])
    expect([votes.length, done, refused.size]).toEqual([3, [expect.any(Number)], 0])
    expect(omitted).toEqual({ count: 1, reason: expect.stringMatching(/^one\.eth: Int cannot represent/) })
  })

  it('is not treated as a proposal deleted by its author', async () => {
    expect((await openSpace({ proposals, votes: [] }).read()).of('sweep')).toEqual([])
    expect((await openSpace({ proposals: [toProposal()], votes: [] }).read()).of('sweep')).toHaveLength(1)
  })

  it.each([
    ['without an id', { id: null }],
    ['older than the first chain', { created: 1 }],
    ['without a time', { created: 'yesterday' }],
    ['with a time in milliseconds', { created: HUB_START * 1000 }],
  ])('loses only a vote %s, and the other votes of the page are stored', async (_, change) => {
    const { read } = openSpace({ proposals: [toProposal()], votes: toVotes(3, HUB_START + 100) }, (answer) => {
      const data = answer.data as { votes?: Answer[] }
      return data.votes === undefined
        ? answer
        : { data: { votes: data.votes.map((vote, at) => (at === 1 ? { ...vote, ...change } : vote)) } }
    })
    const { votes, omitted, refused } = await read()
    expect([votes.length, omitted?.count, refused.size]).toEqual([2, 1, 0])
  })

  it('is requested again once a day until it is readable', async () => {
    let isBroken = true
    const votes = [...toVotes(1, HUB_START + 100), ...toVotes(1, HUB_START + 200), ...toVotes(1, HUB_START + 80_000)]
    const { read } = openSpace({ proposals: [toProposal()], votes }, (answer) => {
      const data = answer.data as { votes?: Answer[] }
      if (data.votes === undefined || !isBroken) return answer
      const errors = [{ message: 'request failed', path: ['votes', 1] }]
      return { errors, data: { votes: data.votes.map((vote) => (vote.created === HUB_START + 200 ? null : vote)) } }
    })
    expect((await read()).votes).toHaveLength(2)
    isBroken = false
    expect((await read(SLOT + HOUR)).votes).toHaveLength(1)
    expect((await read(SLOT + 24 * HOUR)).votes).toHaveLength(3)
    expect((await read(SLOT + 48 * HOUR)).votes).toHaveLength(1)
  })

  it('rejects the whole list if most of a long list is unreadable', async () => {
    const { read } = openSpace({ proposals: [toProposal()], votes: toVotes(12, HUB_START + 100) }, (answer) => {
      const data = answer.data as { votes?: Answer[] }
      return data.votes === undefined ? answer : { data: { votes: data.votes.map(({ created: _, ...vote }) => vote) } }
    })
    expect([...(await read()).refused.values()]).toMatchObject([{ code: 'provider_malformed' }])
  })

  it('does not move a cursor past the slot if its time is in the future', async () => {
    const votes = [...toVotes(1, HUB_START + 100), ...toVotes(1, HUB_START + 10 * 86_400)]
    const { read } = openSpace({ proposals: [toProposal()], votes })
    await read()
    votes.push(...toVotes(1, HUB_START + 86_400 + 600))
    expect((await read(SLOT + HOUR)).votes.map(({ at }) => at)).toContain(new Date(SLOT + 600_000).toISOString())
  })
})

describe('proposal with pending scores', () => {
  const pending: Partial<SpaceProposal> = { scores: [0, 0, 0], scoresState: 'pending' }
  const later = () => toVotes(5, HUB_START + 80_000).map((vote) => ({ ...vote, proposal: '0xother' }))

  it('is read again with its votes when it is final, after later votes for other proposals', async () => {
    const space = { proposals: [toProposal(pending)], votes: [voteOf({ choice: '0xencrypted' }), ...later()] }
    const { read } = openSpace(space)
    expect((await read()).proposals).toMatchObject([{ scores_state: 'pending' }])
    space.proposals = [
      toProposal(pending),
      toProposal({ id: '0xnew', created: HUB_START + 50_000, start: END, end: END }),
    ]
    expect((await read(SLOT + HOUR)).proposals[0]).toMatchObject({ proposal: '0xproposal', scores_state: 'pending' })
    space.proposals[0] = toProposal({ scores: [7, 0, 0], scoresState: 'final' })
    space.votes[0] = voteOf({ choice: 1 })
    const final = await read(SLOT + 2 * HOUR)
    expect(final.proposals[0]).toMatchObject({ scores_state: 'final', scores: [7, 0, 0] })
    expect(final.votes[0]).toMatchObject({ proposal: '0xproposal', choice: '1' })
    expect((await read(SLOT + 3 * HOUR)).votes.filter(({ proposal }) => proposal === '0xproposal')).toEqual([])
  })

  it('is read again until all its votes are public', async () => {
    const space = { proposals: [toProposal(pending)], votes: [voteOf({ choice: '0xencrypted' }), ...later()] }
    const { read } = openSpace(space)
    await read()
    space.proposals = [toProposal({ scoresState: 'final' })]
    expect((await read(SLOT + HOUR)).votes[0]).toMatchObject({ choice: '"0xencrypted"' })
    space.votes[0] = voteOf({ choice: 2 })
    expect((await read(SLOT + 2 * HOUR)).votes[0]).toMatchObject({ choice: '2' })
  })
})

describe('spaces that always fail', () => {
  it.each([
    [3, 1],
    [20, 8],
  ])('do not block other spaces: %d of 84, after %d runs', async (failing, runs) => {
    const daos = Array.from({ length: 84 }, (_, n) => ({
      ...{ ...toTestDao(n + 1, null), snapshotSpace: `${n}.eth`, formerSnapshotSpaces: [] },
    }))
    const down = new Set(Array.from({ length: failing }, (_, n) => `${n}.eth`))
    const state = createState()
    const read = async (hour: number) => {
      const testRun = toRun({ entities: daos, state, slot: SLOT + hour * HOUR })
      await openHub(down).collect(testRun.run)
      return testRun.read.length
    }
    for (let run = 0; run < runs; run += 1) await read(run)
    const rest = 84 - failing
    expect([await read(runs), await read(runs + 1), await read(runs + 2)]).toEqual([rest, rest, rest])
  })
})
