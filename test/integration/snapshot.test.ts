import { afterEach, describe, expect, it } from 'vitest'
import { parseConfig } from '../../shared/config/config.ts'
import { governanceRow } from '../../shared/datasets/governance.ts'
import type { Progress } from '../../workers/providers/contracts/governance.ts'
import { snapshot } from '../../workers/providers/snapshot/governance.ts'
import { createObservedClients } from '../provider-server.ts'
import { startHub, HUB_START as T, toProposal, toVotes } from '../support/hub.ts'
import { noDatabase } from '../support/no-database.ts'
import { silent } from '../support/silent.ts'
import { jsonReply } from '../upstream/exchange.ts'
import { INVALID_KEY, snapshot as standIn } from '../upstream/providers/snapshot.ts'
import type { Space, SpaceVote } from '../upstream/world.ts'

const { signal } = new AbortController()
const place = { dao: 7, space: 'test.eth' }
const ZERO = { from: 0, skip: 0 }
const START: Progress = { proposals: ZERO, votes: ZERO, read: 0, swept: 0, pass: null, unsettled: [], gap: null }
const SLOT = Date.parse('2024-02-01')
const unlimited = { take: () => true }
const closers: (() => Promise<void>)[] = []

afterEach(async () => {
  await Promise.all(closers.splice(0).map((close) => close()))
})

async function open(space: Partial<Space> = {}, settings: Record<string, string> = {}) {
  const hub = await startHub({ id: 'test.eth', name: 'Test', proposals: [], votes: [], ...space })
  closers.push(hub.close)
  const { http, calls } = createObservedClients()
  const base = { SNAPSHOT_BASE_URL: hub.baseUrl, SNAPSHOT_REQUESTS_PER_MINUTE: '60000', ...settings }
  const source = snapshot.connect({
    config: parseConfig(base),
    http,
    db: { ...noDatabase, rows: async () => [] },
    log: silent,
  })
  const read = (progress = START, slot = SLOT) =>
    source.fetchGovernance({ ...place, slot }, progress, unlimited, signal)
  return { hub, calls, read }
}

const proposals = [toProposal({ author: `0x${'aB'.repeat(20)}` })]
const voters = (votes: SpaceVote[]) => votes.map(({ voter }) => voter).sort()

describe('Snapshot client', () => {
  it('returns rows of votes and proposals with lower-case addresses', async () => {
    const cast = { id: '0x1', voter: `0x${'Cd'.repeat(20)}`, created: T + 100, proposal: '0xproposal' }
    const { read } = await open({
      proposals,
      votes: [{ ...cast, choice: { 2: 1, 1: 0.5 }, power: 2755022.0714428956 }],
    })
    const reading = await read()
    expect(reading?.isComplete).toBe(true)
    const common = { dao: 7, space: 'test.eth', proposal: '0xproposal' }
    const rows = [
      {
        ...{ ...common, kind: 'proposal', address: `0x${'ab'.repeat(20)}`, at: '2024-01-01T00:01:30.000Z' },
        ...{ title: 'One', voting_type: 'basic', choices: ['For', 'Against', 'Abstain'], quorum: 0 },
        ...{ scores: [], scores_total: 0, scores_state: '', votes: 0 },
        ...{ starts_at: '2024-01-01T00:01:30.000Z', ends_at: '2024-01-01T00:05:00.000Z' },
        url: 'https://snapshot.box/#/s:test.eth/proposal/0xproposal',
        is_flagged: false,
      },
      {
        ...{ ...common, kind: 'vote', address: `0x${'cd'.repeat(20)}`, at: '2024-01-01T00:01:40.000Z' },
        ...{ choice: '{"1":0.5,"2":1}', voting_power: 2755022.0714428956 },
      },
      { ...common, kind: 'sweep', proposal: '', address: '', at: new Date(SLOT).toISOString() },
    ]
    expect(reading?.rows).toEqual(rows)
    for (const row of rows) expect(governanceRow.parse(row)).toEqual(row)
  })

  it('reads texts with their edit time, and reports those that it cannot read', async () => {
    const texts = [toProposal({ id: '0xedited', body: '# Text', updated: T + 200 }), toProposal({ id: '0xnone' })]
    const { read, hub } = await open({ proposals: [...texts, toProposal({ id: '0xempty', body: '' })] })
    const about = { dao: 7, space: 'test.eth', kind: 'text', address: '' }
    const rows = [
      { ...about, proposal: '0xedited', at: '2024-01-01T00:03:20.000Z', body: '# Text' },
      { ...about, proposal: '0xempty', at: '2024-01-01T00:01:30.000Z', body: '' },
    ]
    const readTexts = async () => (await read())?.rows.filter(({ kind }) => kind === 'text')
    expect((await readTexts())?.sort((a, b) => String(a.proposal).localeCompare(String(b.proposal)))).toEqual(rows)
    for (const row of rows) expect(governanceRow.parse(row)).toEqual(row)

    const found = await fetch(`${hub.baseUrl}/graphql`, {
      method: 'POST',
      body: JSON.stringify({ query: 'query All { proposals(where: {space: "test.eth"}) { id created } }' }),
    })
    hub.next.push(
      jsonReply(await found.json()),
      jsonReply({ data: { proposals: [null, { id: '0xedited', created: T, body: 5 }] }, errors: [{ message: 'no' }] }),
    )
    expect(await read()).toMatchObject({
      ...{ isComplete: true, unreadable: ['no', expect.stringContaining('body: ')] },
      rows: [...Array(3).fill({ kind: 'proposal' }), { kind: 'sweep' }],
    })
  })

  it('pages through more votes of one time than a page has', async () => {
    const votes = [...toVotes(2500, T + 10_000), ...toVotes(1000, T + 20_000), ...toVotes(3, T + 20_001)]
    const { read } = await open({ proposals, votes })
    const reading = await read()
    const found = reading?.rows.filter(({ kind }) => kind === 'vote') ?? []
    expect(found.map(({ address, at }) => `${at} ${address}`)).toHaveLength(3503)
    expect(new Set(found.map(({ address, at }) => `${at} ${address}`)).size).toBe(3503)
    expect(reading).toMatchObject({ isComplete: true, progress: { votes: { from: T + 20_001 - 3600, skip: 0 } } })
  })

  it('continues from the newest vote if the last page had one time only', async () => {
    const { read } = await open({ proposals, votes: [...toVotes(3, T + 10_000), ...toVotes(1000, T + 20_000)] })
    expect(await read()).toMatchObject({ isComplete: true, progress: { votes: { from: T + 20_000 - 3600, skip: 0 } } })
  })

  it('fails if more votes have one time than the skip limit permits', async () => {
    const { read, hub } = await open({ proposals, votes: toVotes(7000, T + 10_000) })
    await expect(read()).rejects.toMatchObject({ code: 'provider_malformed' })
    const query = '{ votes(first: 1000, skip: 5001, where: {space: "test.eth"}) { id } }'
    const answer = await fetch(`${hub.baseUrl}/graphql`, { method: 'POST', body: JSON.stringify({ query }) })
    expect(answer.status).toBe(200)
    expect(await answer.json()).toMatchObject({
      errors: [{ message: 'The `skip` argument must not be greater than 5000', path: ['votes'] }],
      data: { votes: null },
    })
  })

  it('continues from its cursor minus an overlap', async () => {
    const votes = [...toVotes(1500, T + 10_000), ...toVotes(20, T + 50_000)]
    const { read } = await open({ proposals, votes })
    const first = await read()
    votes.push(...toVotes(5, T + 50_001))
    const second = await read(first?.progress)
    expect(second?.rows.map(({ kind }) => kind)).toEqual(['proposal', ...Array(25).fill('vote')])
    expect(voters(votes)).toHaveLength(1525)
  })

  it('returns an empty result for an empty space, and undefined for a missing one', async () => {
    const { read } = await open()
    expect(await read()).toMatchObject({ rows: [{ kind: 'sweep' }], isComplete: true })
    const elsewhere = await open({ id: 'other.eth' })
    expect(await elsewhere.read()).toBeUndefined()
  })

  it('retries after a short wait, and delays the job for a long one', async () => {
    const { read, hub, calls } = await open({ proposals })
    const tooMany = standIn.failure(429, 0)
    hub.next.push({ ...tooMany, headers: { ...tooMany.headers, 'retry-after': '0' } })
    expect(await read()).toMatchObject({ isComplete: true })
    expect(calls[0]).toMatchObject({ provider: 'snapshot', outcome: 'ok', retries: 1, remainingQuota: 99 })
    hub.next.push({ ...tooMany, headers: { ...tooMany.headers, 'retry-after': '90' } })
    await expect(read()).rejects.toMatchObject({ code: 'provider_unavailable', retryAfterMs: 90_000 })
    const { 'retry-after': _, ...headers } = tooMany.headers
    hub.next.push({ ...tooMany, headers: { ...headers, 'ratelimit-reset': '120' } })
    await expect(read()).rejects.toMatchObject({ code: 'provider_unavailable', retryAfterMs: 120_000 })
  })

  it('reports errors within successful responses', async () => {
    const { read, hub } = await open({ proposals })
    hub.next.push(
      jsonReply({ errors: [{ message: 'request failed', path: ['proposals'] }], data: { proposals: null } }),
    )
    await expect(read()).rejects.toMatchObject({ code: 'provider_unavailable', message: /request failed/ })
    hub.next.push(jsonReply({ errors: [{ message: 'Syntax Error' }] }, 400))
    await expect(read()).rejects.toMatchObject({ code: 'provider_rejected' })
  })

  it('sends a key, and names the setting if it is rejected', async () => {
    const { read, hub } = await open({ proposals }, { SNAPSHOT_API_KEY: 'a-key' })
    await read()
    expect(hub.requests[0]?.headers['x-api-key']).toBe('a-key')
    const refused = await open({ proposals }, { SNAPSHOT_API_KEY: INVALID_KEY })
    await expect(refused.read()).rejects.toMatchObject({ code: 'provider_rejected', message: /SNAPSHOT_API_KEY/ })
  })

  it('drops votes on deleted proposals', async () => {
    const { read, hub } = await open({ proposals })
    const page = { proposals: [{ id: '0xproposal', author: '0x1', created: T + 90 }] }
    const vote = { id: '0x1', voter: `0x${'1'.repeat(40)}`, created: T + 100, proposal: null }
    hub.next.push(jsonReply({ data: page }), jsonReply({ data: { votes: [vote] } }))
    expect((await read())?.rows.map(({ kind }) => kind)).toEqual(['proposal', 'sweep'])
  })

  it('reads votes again after their proposal has ended, and continues from open ones', async () => {
    const [start, end] = [T + 1_000_000, T + 1_300_000]
    const requested = toProposal({ created: start - 100, start, end })
    const later = toProposal({ id: '0xlater', created: end + 7200, start: end + 86_400, end: end + 200_000 })
    const before = { ...toVotes(1, start - 500_000)[0], proposal: '0xold' } as SpaceVote
    const hidden = { ...toVotes(1, start + 100)[0], choice: '0xhidden', power: 0 } as SpaceVote
    const space = { proposals: [requested], votes: [before, hidden, ...toVotes(1, start + 90_000)] }
    const { read } = await open(space)
    const first = await read(START, (start + 95_000) * 1000)
    expect(first?.progress.proposals.from).toBe(requested.created - 3600)

    space.votes[1] = { ...hidden, choice: 2, power: 7 }
    space.proposals.push(later)
    const early = await read(first?.progress, (end + 3600) * 1000)
    expect(early?.rows.filter(({ kind }) => kind === 'vote')).toHaveLength(1)
    const settled = await read(early?.progress, (end + 3 * 3600) * 1000)
    const votes = settled?.rows.filter(({ kind }) => kind === 'vote')
    expect(votes).toMatchObject([{ choice: '2', voting_power: 7 }, { choice: '1' }])
    expect(settled?.progress.proposals.from).toBe(later.created - 3600)
    const after = await read(settled?.progress, (end + 4 * 3600) * 1000)
    expect(after?.rows.filter(({ kind }) => kind === 'vote')).toHaveLength(1)
  })

  it('reads every proposal once a day, but not if the space is missing', async () => {
    const [day, hour] = [86_400_000, 3_600_000]
    const space = { proposals: [toProposal(), toProposal({ id: '0xsecond', created: T + 20_000 })] }
    const { read, hub } = await open(space)
    const kinds = (reading: Awaited<ReturnType<typeof read>>) => reading?.rows.map(({ kind }) => kind)
    const first = await read()
    const next = await read(first?.progress, SLOT + hour)
    expect(kinds(next)).toEqual(['proposal'])
    const second = await read(next?.progress, SLOT + day)
    expect(kinds(second)).toEqual(['proposal', 'proposal', 'sweep'])
    hub.next.push(jsonReply({ data: { proposals: [] } }), jsonReply({ data: { space: null } }))
    expect(kinds(await read(second?.progress, SLOT + 2 * day))).toEqual([])
  })
})
