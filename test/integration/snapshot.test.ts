import { afterEach, describe, expect, it } from 'vitest'
import { parseConfig } from '../../shared/config/config.ts'
import { governanceRow } from '../../shared/datasets/governance.ts'
import type { Cursors } from '../../workers/providers/contracts/governance.ts'
import { snapshot } from '../../workers/providers/snapshot/governance.ts'
import { createObservedClients } from '../provider-server.ts'
import { startHub, toVotes } from '../support/hub.ts'
import { noDatabase } from '../support/no-database.ts'
import { silent } from '../support/silent.ts'
import { jsonReply } from '../upstream/exchange.ts'
import { INVALID_KEY, snapshot as standIn } from '../upstream/providers/snapshot.ts'
import type { Space, SpaceVote } from '../upstream/world.ts'

const { signal } = new AbortController()
const place = { dao: 7, space: 'test.eth' }
const START: Cursors = { proposals: { from: 0, skip: 0 }, votes: { from: 0, skip: 0 } }
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
  const source = snapshot.connect({ config: parseConfig(base), http, db: noDatabase, log: silent })
  return { hub, calls, read: (cursors = START) => source.fetchGovernance(place, cursors, unlimited, signal) }
}

const proposals = [{ id: '0xproposal', title: 'One', author: `0x${'aB'.repeat(20)}`, created: 90, end: 300 }]
const voters = (votes: SpaceVote[]) => votes.map(({ voter }) => voter).sort()

describe('the Snapshot hub', () => {
  it('gives rows of votes and proposals with addresses in lower case', async () => {
    const vote = { id: '0x1', voter: `0x${'Cd'.repeat(20)}`, created: 100, proposal: '0xproposal', power: 2 }
    const { read } = await open({ proposals, votes: [vote] })
    const reading = await read()
    expect(reading?.isComplete).toBe(true)
    const common = { dao: 7, space: 'test.eth', proposal: '0xproposal' }
    const rows = [
      { ...common, kind: 'proposal', address: `0x${'ab'.repeat(20)}`, at: '1970-01-01T00:01:30.000Z' },
      { ...common, kind: 'vote', address: `0x${'cd'.repeat(20)}`, at: '1970-01-01T00:01:40.000Z' },
    ]
    expect(reading?.rows).toEqual(rows)
    for (const row of rows) expect(governanceRow.parse(row)).toEqual(row)
  })

  it('is read over full pages of one time', async () => {
    const votes = [...toVotes(2500, 10_000), ...toVotes(1000, 20_000), ...toVotes(3, 20_001)]
    const { read } = await open({ proposals, votes })
    const reading = await read()
    const found = reading?.rows.filter(({ kind }) => kind === 'vote') ?? []
    expect(found.map(({ address, at }) => `${at} ${address}`)).toHaveLength(3503)
    expect(new Set(found.map(({ address, at }) => `${at} ${address}`)).size).toBe(3503)
    expect(reading).toMatchObject({ isComplete: true, cursors: { votes: { from: 20_001 - 3600, skip: 0 } } })
  })

  it('goes on from the newest vote where the last page of one time was full', async () => {
    const { read } = await open({ proposals, votes: [...toVotes(3, 10_000), ...toVotes(1000, 20_000)] })
    expect(await read()).toMatchObject({ isComplete: true, cursors: { votes: { from: 20_000 - 3600, skip: 0 } } })
  })

  it('refuses to skip too far, so that more votes of one time than that are a failure, not a smaller count', async () => {
    const { read, hub } = await open({ proposals, votes: toVotes(7000, 10_000) })
    await expect(read()).rejects.toMatchObject({ code: 'provider_malformed' })
    const query = '{ votes(first: 1000, skip: 5001, where: {space: "test.eth"}) { id } }'
    const answer = await fetch(`${hub.baseUrl}/graphql`, { method: 'POST', body: JSON.stringify({ query }) })
    expect(answer.status).toBe(200)
    expect(await answer.json()).toMatchObject({
      errors: [{ message: 'The `skip` argument must not be greater than 5000', path: ['votes'] }],
      data: { votes: null },
    })
  })

  it('reads on from where it was, a while earlier, and no more', async () => {
    const votes = [...toVotes(1500, 10_000), ...toVotes(20, 50_000)]
    const { read } = await open({ proposals, votes })
    const first = await read()
    votes.push(...toVotes(5, 50_001))
    const second = await read(first?.cursors)
    expect(second?.rows.map(({ kind }) => kind)).toEqual(['proposal', ...Array(25).fill('vote')])
    expect(voters(votes)).toHaveLength(1525)
  })

  it('has spaces without anything, and lacks others', async () => {
    const { read } = await open()
    expect(await read()).toMatchObject({ rows: [], isComplete: true })
    const elsewhere = await open({ id: 'other.eth' })
    expect(await elsewhere.read()).toBeUndefined()
  })

  it('is asked again after the wait that it names, and later where that is long', async () => {
    const { read, hub, calls } = await open({ proposals })
    const tooMany = standIn.failure(429, 0)
    hub.next.push({ ...tooMany, headers: { ...tooMany.headers, 'retry-after': '0' } })
    expect(await read()).toMatchObject({ isComplete: true })
    expect(calls[0]).toMatchObject({ provider: 'snapshot', outcome: 'ok', retries: 1, quotaLeft: 99 })
    hub.next.push({ ...tooMany, headers: { ...tooMany.headers, 'retry-after': '90' } })
    await expect(read()).rejects.toMatchObject({ code: 'provider_unavailable', retryAfterMs: 90_000 })
    const { 'retry-after': _, ...headers } = tooMany.headers
    hub.next.push({ ...tooMany, headers: { ...headers, 'ratelimit-reset': '120' } })
    await expect(read()).rejects.toMatchObject({ code: 'provider_unavailable', retryAfterMs: 120_000 })
  })

  it('tells of trouble in successful answers', async () => {
    const { read, hub } = await open({ proposals })
    hub.next.push(
      jsonReply({ errors: [{ message: 'request failed', path: ['proposals'] }], data: { proposals: null } }),
    )
    await expect(read()).rejects.toMatchObject({ code: 'provider_unavailable', message: /request failed/ })
    hub.next.push(jsonReply({ data: { proposals: [{ id: 'one without a time' }] } }))
    await expect(read()).rejects.toMatchObject({ code: 'provider_malformed' })
    hub.next.push(jsonReply({ errors: [{ message: 'Syntax Error' }] }, 400))
    await expect(read()).rejects.toMatchObject({ code: 'provider_rejected' })
  })

  it('takes a key, and names the setting where it is refused', async () => {
    const { read, hub } = await open({ proposals }, { SNAPSHOT_API_KEY: 'a-key' })
    await read()
    expect(hub.requests[0]?.headers['x-api-key']).toBe('a-key')
    const refused = await open({ proposals }, { SNAPSHOT_API_KEY: INVALID_KEY })
    await expect(refused.read()).rejects.toMatchObject({ code: 'provider_rejected', message: /SNAPSHOT_API_KEY/ })
  })

  it('leaves out votes on proposals that were taken back', async () => {
    const { read, hub } = await open({ proposals })
    const page = { proposals: [{ id: '0xproposal', author: '0x1', created: 90 }] }
    const vote = { id: '0x1', voter: `0x${'1'.repeat(40)}`, created: 100, proposal: null }
    hub.next.push(jsonReply({ data: page }), jsonReply({ data: { votes: [vote] } }))
    expect((await read())?.rows.map(({ kind }) => kind)).toEqual(['proposal'])
  })
})
