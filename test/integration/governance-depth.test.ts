import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { governanceProposalsRoute } from '../../api/routes/daos/governance/proposals.ts'
import { governanceSummaryRoute } from '../../api/routes/daos/governance/summary.ts'
import { governanceVotersRoute } from '../../api/routes/daos/governance/voters.ts'
import { governanceVotesRoute } from '../../api/routes/daos/governance/votes.ts'
import type { VotingDao } from '../../shared/datasets/governance.ts'
import governance from '../../workers/jobs/governance.ts'
import { selectCases } from '../support/cases.ts'
import type { Vote, Voter } from '../support/governance-records.ts'
import { createServedPipeline, type ServedPipeline } from '../support/served-pipeline.ts'

const NOW = Date.parse('2024-05-06T07:01:00Z')
const DAY = 86_400_000

interface Counts {
  _id: string
  votes: { count: number; uniqueAddressesCount: number; uniqueVotingAddresses?: string[] }
  proposals: number
}
interface Summary extends Counts {
  name: string
  activeProposals: number
  lastProposalAt: string | null
  votes30d: number
}
interface Proposal {
  _id: string
  dao: string
  title: string
  state: string
  choices: string[]
  scores: number[]
  votes: number
  createdAt: string
  startsAt: string
  endsAt: string
}
const PATH = '/data/daos/governance'
let pipeline: ServedPipeline

const target = (path: string) => fetch(`${pipeline.url}${PATH}${path}`)
async function get<T>(path: string): Promise<T> {
  const response = await target(path)
  expect(response.status, path).toBe(200)
  return (await response.json()) as T
}
/** Reads every record, page by page. */
async function all<T>(path: string, limit = 400): Promise<T[]> {
  const records: T[] = []
  let next: string | undefined = `${path}&limit=${limit}`
  let total = ''
  while (next !== undefined) {
    const response = await target(next)
    expect(response.status, next).toBe(200)
    records.push(...((await response.json()) as T[]))
    total = response.headers.get('x-total-count') ?? ''
    const link = /<(\?[^>]*)>/.exec(response.headers.get('link') ?? '')?.[1]
    next = link === undefined ? undefined : `${path.split('?')[0]}${link}`
  }
  expect(records).toHaveLength(Number(total))
  return records
}
const sum = (numbers: readonly number[]) => numbers.reduce((a, b) => a + b, 0)
const isDescending = (values: readonly (string | number)[]) =>
  values.every((value, at) => at === 0 || (values[at - 1] ?? value) >= value)

/** Compares the lists with the counts of `/data/daos/governance`. */
async function recount(dao: { id: string }) {
  const counts = await get<Counts>(`?id=${dao.id}`)
  const proposals = await all<Proposal>(`/proposals?id=${dao.id}`, 7)
  const votes = await all<Vote>(`/votes?id=${dao.id}`)
  const voters = await all<Voter>(`/voters?id=${dao.id}`, 50)
  governanceProposalsRoute.response.parse(proposals)
  governanceVotesRoute.response.parse(votes)
  governanceVotersRoute.response.parse(voters)
  expect(proposals).toHaveLength(counts.proposals)
  expect(votes).toHaveLength(counts.votes.count)
  expect(voters.map(({ voter }) => voter).sort()).toEqual(counts.votes.uniqueVotingAddresses)
  for (const list of [proposals, votes]) {
    expect(new Set(list.map(({ _id }) => _id)).size).toBe(list.length)
    expect(isDescending(list.map(({ createdAt }) => createdAt))).toBe(true)
  }
  expect(isDescending(voters.map(({ votes }) => votes))).toBe(true)
  for (const { voter, ...observed } of voters) {
    const cast = votes.filter((vote) => vote.voter === voter)
    const times = cast.map(({ createdAt }) => createdAt).sort()
    expect(observed).toMatchObject({ votes: cast.length, firstVoteAt: times[0], lastVoteAt: times.at(-1) })
    const last = cast.filter(({ createdAt }) => createdAt === times.at(-1)).map(({ votingPower }) => votingPower)
    expect(last).toContain(observed.lastVotingPower)
  }
  return { counts, proposals, votes, voters }
}

describe('governance lists in a simulated world', () => {
  beforeAll(async () => {
    pipeline = await createServedPipeline({ now: NOW })
    await pipeline.collect(governance)
  })
  afterAll(() => pipeline?.close())

  const daos = () => pipeline.registry.daos.filter(({ live, snapshotSpace }) => live && snapshotSpace !== null)

  it('match the counts, and scores are the sums of votes', async () => {
    for (const slug of ['aave', 'lido']) {
      const { counts, proposals, votes } = await recount(pipeline.registry.daoBySlug.get(slug) as { id: string })
      expect(counts.votes.count).toBeGreaterThan(0)
      const paged = new Set(selectCases(proposals, 5, slug))
      for (const proposal of proposals) {
        const cast = votes.filter((vote) => vote.proposal === proposal._id)
        expect([proposal._id, cast.length]).toEqual([proposal._id, proposal.votes])
        expect(sum(proposal.scores)).toBeCloseTo(sum(cast.map(({ votingPower }) => votingPower)), 6)
        if (paged.has(proposal)) expect(await all<Vote>(`/votes?proposal=${proposal._id}`, 40)).toEqual(cast)
      }
    }
  })

  it('match the summary of every DAO, in one request', async () => {
    const summaries = await get<Summary[]>('/summary?limit=500')
    governanceSummaryRoute.response.parse(summaries)
    expect(summaries.map(({ _id }) => _id).sort()).toEqual(
      daos()
        .map(({ id }) => id)
        .sort(),
    )
    for (const { _id, votes, proposals, activeProposals, lastProposalAt, votes30d } of summaries) {
      const { uniqueVotingAddresses: _, ...counted } = (await get<Counts>(`?id=${_id}`)).votes
      expect(votes).toEqual(counted)
      if (Number.parseInt(_id.slice(0, 2), 16) % 16 !== 0) continue
      const listed = await all<Proposal>(`/proposals?id=${_id}`)
      expect([proposals, lastProposalAt]).toEqual([listed.length, listed[0]?.createdAt ?? null])
      expect(activeProposals).toBe((await all<Proposal>(`/proposals?id=${_id}&state=active`)).length)
      const since = new Date(Math.floor(NOW / 3_600_000) * 3_600_000 - 30 * DAY).toISOString()
      const recent = await target(`/votes?id=${_id}&limit=1&filter=${encodeURIComponent(`createdAt>${since}`)}`)
      expect(votes30d).toBe(Number(recent.headers.get('x-total-count')))
    }
    const [most] = await get<Summary[]>('/summary?sort=-votes.count&limit=1')
    expect(most?.votes.count).toBe(Math.max(...summaries.map(({ votes }) => votes.count)))
  })

  it('have choices of every voting type as JSON, and as text in tables', async () => {
    const [most] = await get<Summary[]>('/summary?sort=-proposals&limit=1')
    const votes = await all<Vote>(`/votes?id=${most?._id}`, 10_000)
    const forms = new Set(votes.map(({ choice }) => (Array.isArray(choice) ? 'list' : typeof choice)))
    expect([...forms].sort()).toEqual(['list', 'number', 'object'])
    const csv = await (await target(`/votes?id=${most?._id}&limit=10000&format=csv&fields=_id,choice`)).text()
    const choices = new Map(votes.map(({ _id, choice }) => [_id, JSON.stringify(choice)]))
    const lines = csv.trimEnd().split('\n').slice(1)
    expect(lines).toHaveLength(votes.length)
    for (const line of lines) {
      const [id, choice] = JSON.parse(`[${line.replace('""', '\\"').replaceAll('""', '\\"')}]`)
      expect(choice).toBe(choices.get(id))
    }
    for (const format of ['parquet', 'arrow', 'ndjson']) {
      const response = await target(`/votes?id=${most?._id}&limit=10&format=${format}`)
      expect([format, response.status]).toEqual([format, 200])
      expect((await response.arrayBuffer()).byteLength).toBeGreaterThan(100)
    }
  })

  it('can be sorted and filtered', async () => {
    const id = pipeline.registry.daoBySlug.get('aave')?.id
    const votes = await all<Vote>(`/votes?id=${id}`)
    const strongest = await all<Vote>(`/votes?id=${id}&sort=-votingPower`, 30)
    expect(strongest.map(({ votingPower }) => votingPower)).toEqual(
      votes.map(({ votingPower }) => votingPower).sort((a, b) => b - a),
    )
    const filter = encodeURIComponent('votingPower>=500')
    expect(await all<Vote>(`/votes?id=${id}&filter=${filter}`, 30)).toEqual(
      votes.filter(({ votingPower }) => votingPower >= 500),
    )
    const closed = await all<Proposal>(`/proposals?id=${id}&state=closed&sort=createdAt`)
    expect(closed.every(({ state }) => state === 'closed')).toBe(true)
    const voters = await all<Voter>(`/voters?id=${id}&sort=-lastVotingPower&filter=${encodeURIComponent('votes>1')}`)
    expect(voters.every((one) => one.votes > 1)).toBe(true)
    expect(isDescending(voters.map(({ lastVotingPower }) => lastVotingPower))).toBe(true)
  })

  it('return no_data for a DAO without a space', async () => {
    const spaceless = pipeline.registry.daos.find(({ live, snapshotSpace }) => live && snapshotSpace === null)
    for (const list of ['proposals', 'votes', 'voters']) {
      expect(await (await target(`/${list}?id=${spaceless?.id}`)).json()).toMatchObject({ code: 'no_data' })
      expect(await (await target(`/${list}`)).json()).toMatchObject({ code: 'missing_parameter' })
    }
    expect(await get(`/summary?id=${spaceless?.id}`)).toEqual([])
    expect(await get('/votes?proposal=0123456789abcdef01234567')).toEqual([])
    const [second] = await get<Proposal[]>('/proposals?name=uniswap&limit=1')
    expect(await get(`/votes?proposal=${second?._id}&name=aave`)).toEqual([])
    expect((await get<Vote[]>(`/votes?proposal=${second?._id}&name=uniswap`)).length).toBeGreaterThan(0)
  })

  it('select proposals by a text in their title, of one DAO and of all', async () => {
    const list = await all<Proposal>('/proposals?name=aave')
    const word = list.flatMap(({ title }) => title.split(/\s+/)).find((one) => /^[A-Za-z]{5,}$/.test(one)) ?? ''
    const isFound = ({ title }: Proposal) => title.toLowerCase().includes(word.toLowerCase())
    const expected = list.filter(isFound).map(({ _id }) => _id)
    expect(expected.length).toBeGreaterThan(0)
    for (const text of [word, word.toUpperCase()]) {
      const found = await all<Proposal>(`/proposals?name=aave&title=${text}`)
      expect(found.map(({ _id }) => _id)).toEqual(expected)
    }
    const ofAll = await get<Proposal[]>(`/proposals?endsBefore=2100-01-01&title=${word}&limit=1000`)
    expect(ofAll.every(isFound)).toBe(true)
    expect(ofAll.map(({ _id }) => _id)).toEqual(expect.arrayContaining(expected))
    expect(await get(`/proposals?name=aave&title=${encodeURIComponent(`'%_\\`)}`)).toEqual([])
  })

  it('compute proposal states from the clock, without a collection', async () => {
    const { clock, changeFeed, database } = pipeline
    const dao = pipeline.registry.daoBySlug.get('aave') as VotingDao
    const [start, end] = [NOW + DAY, NOW + 2 * DAY]
    const created = { dao: dao.key, space: dao.snapshotSpace, kind: 'proposal', proposal: '0xsoon', address: '0x1' }
    const times = { starts_at: new Date(start).toISOString(), ends_at: new Date(end).toISOString() }
    const row = { ...created, at: new Date(NOW).toISOString(), title: 'Soon', ...times }
    await database.db.insert({ table: 'governance_in', rows: [row] })
    changeFeed.commit('governance')
    const [{ activeProposals: before } = { activeProposals: 0 }] = await get<Summary[]>(`/summary?id=${dao.id}`)
    const at = async (time: number) => {
      clock.now = time
      const [newest] = await get<Proposal[]>(`/proposals?id=${dao.id}&limit=1`)
      const pending = await get<Proposal[]>(`/proposals?id=${dao.id}&state=pending`)
      const [all] = await get<Summary[]>(`/summary?id=${dao.id}`)
      return [newest?.state, pending.length, all?.activeProposals]
    }
    expect(await at(NOW)).toEqual(['pending', 1, before])
    expect((await at(start - 1)).slice(0, 2)).toEqual(['pending', 1])
    const active = (await all<Proposal>(`/proposals?id=${dao.id}`)).filter(
      ({ startsAt, endsAt }) => Date.parse(startsAt) <= start && Date.parse(endsAt) > start,
    )
    expect(await at(start)).toEqual(['active', 0, active.length])
    expect((await at(end - 1)).slice(0, 2)).toEqual(['active', 0])
    expect((await at(end))[0]).toBe('closed')
  })
})
