import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { governanceRecordRoute } from '../../api/routes/daos/governance/record.ts'
import type { Database } from '../../shared/store/store.ts'
import { createApiDatabase, createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { createTestConfig } from '../support/database.ts'
import { getDao } from '../support/entities.ts'

const NOW = Date.parse('2024-06-01T12:30:00Z')
const A = `0x${'a'.repeat(40)}`
const B = `0x${'b'.repeat(40)}`
const C = `0x${'c'.repeat(40)}`

const config = createTestConfig()
let database: Awaited<ReturnType<typeof createApiDatabase>>
let api: TestApi
const feed = createHandFeed()
/** The names of all statements so far. */
const statements: string[] = []
/** Runs after a statement has read its rows, before the API gets them. */
let afterRows: (name: string) => Promise<void> = async () => {}

const at = (day: string, hour = '00:00') => `2024-${day} ${hour}:00.000`
const CHOICES = ['For', 'Against', 'Abstain']

interface Stored {
  space: string
  proposal: string
  ends: string
  scores?: number[]
  more?: Record<string, unknown>
}

/** Stores proposals whose vote lasts five days. */
async function storeProposals(dao: number, all: readonly Stored[]): Promise<void> {
  const { writer } = database
  const toStart = (ends: string) => new Date(Date.parse(`${ends.replace(' ', 'T')}Z`) - 5 * 86_400_000)
  const toText = (date: Date) => date.toISOString().replace('T', ' ').replace('Z', '')
  const created = all.map(({ space, proposal, ends }) => ({
    ...{ dao, space, proposal, author: C, created_at: toText(toStart(ends)).slice(0, 19) },
  }))
  const details = all.map(({ space, proposal, ends, scores = [100, 50, 0], more = {} }) => ({
    ...{
      dao,
      space,
      proposal,
      title: `About ${proposal}`,
      choices: CHOICES,
      scores,
      collected_at: at('06-01', '12:00'),
    },
    ...{ starts_at: toText(toStart(ends)).slice(0, 19), ends_at: ends.slice(0, 19), ...more },
  }))
  await writer.insert({ table: 'dao_proposals', rows: created })
  await writer.insert({ table: 'dao_proposal_details', rows: details })
}

const vote = (proposal: string, voter: string, cast: string, choice: string, power: number | null) => ({
  ...{ proposal, kind: 'vote', address: voter, at: cast, choice, voting_power: power, collected_at: cast },
})

let snapshot: string
let governor: string

beforeAll(async () => {
  database = await createApiDatabase(config)
  const dao = getDao(database.registry, 'uniswap')
  snapshot = dao.snapshotSpace ?? ''
  governor = dao.governors.at(-1)?.space ?? ''
  const { writer } = database
  const onchain = { space: governor }
  const offchain = { space: snapshot }
  await storeProposals(dao.key, [
    { ...offchain, proposal: 's1', ends: at('04-01') },
    { ...offchain, proposal: 's2', ends: at('05-01') },
    { ...offchain, proposal: 'flagged', ends: at('05-01'), more: { is_flagged: true } },
    { ...offchain, proposal: 'before', ends: at('03-03', '11:59') },
    { ...offchain, proposal: 's5', ends: at('05-02'), more: { scores_state: 'pending' } },
    { ...offchain, proposal: 's6', ends: at('06-01', '11:30') },
    { ...offchain, proposal: 'active', ends: at('06-03') },
    { ...onchain, proposal: 'g1', ends: at('03-25'), scores: [1000, 2000, 0] },
    { ...onchain, proposal: 'g2', ends: at('04-25'), scores: [5, 5, 9] },
    { ...onchain, proposal: 'g3', ends: at('04-25'), more: { outcome: 'canceled' } },
    { ...onchain, proposal: 'g4', ends: at('05-25') },
  ])
  await writer.insert({
    table: 'governance_in',
    rows: [
      ...[vote('s1', A, at('03-31'), '1', 10), vote('s5', A, at('05-01'), '1', 10)].map((row) => ({
        ...row,
        ...offchain,
      })),
      ...[vote('s2', B, at('04-30', '14:00'), '2', 5), vote('before', A, at('03-02'), '1', 1)].map((row) => ({
        ...{ ...row, ...offchain },
      })),
      ...[
        vote('g1', A, at('03-24', '22:00'), '2', 100),
        vote('g1', C, at('03-24', '21:00'), '1', null),
        vote('g2', C, at('04-24', '22:00'), 'null', null),
        vote('g3', A, at('04-24', '22:00'), '1', 7),
        vote('g4', A, at('05-24', '20:00'), '3', 30),
        vote('g4', A, at('05-24', '23:00'), '3', 20),
      ].map((row) => ({ ...row, ...onchain })),
    ].map((row) => ({ dao: dao.key, ...row })),
  })
  const read = { dao: dao.key, read_at: at('06-01', '12:00') }
  await writer.insert({ table: 'governance_readings', rows: [{ ...read, space: snapshot }] })
  await writer.insert({ table: 'governor_readings', rows: dao.governors.map(({ space }) => ({ ...read, space })) })
  const change = (delegate: string, day: string, power: number, block: number) => ({
    ...{ dao: dao.key, space: dao.votingToken?.space, kind: 'power', at: at(day), block_number: block, delegate },
    ...{ power: `${power}${'0'.repeat(18)}`, decimals: 18, collected_at: at('06-01') },
  })
  await writer.insert({
    table: 'delegations_in',
    rows: [
      ...[change(A, '03-01', 100, 1), change(B, '04-01', 50, 2), change(A, '04-10', 0, 3), change(A, '05-10', 60, 4)],
      { dao: dao.key, space: dao.votingToken?.space, kind: 'reading', at: at('06-01', '12:00') },
    ],
  })
  const rows: Database['rows'] = async (statement) => {
    statements.push(statement.name)
    const found = await database.db.rows(statement)
    await afterRows(statement.name)
    return found
  }
  api = await startApi({ config, ...database, db: { ...database.db, rows }, changeFeed: feed, now: () => NOW })
})

afterAll(async () => {
  await api?.close()
  await database?.drop()
})

async function get<T>(path: string, status = 200): Promise<T> {
  const response = await fetch(`${api.url}/data/daos/governance${path}`)
  const text = await response.text()
  expect([response.status, status === 200 && response.status !== 200 ? text : '']).toEqual([status, ''])
  return (text.startsWith('{') || text.startsWith('[') ? JSON.parse(text) : text) as T
}

interface Found {
  _id: string
  title: string
  withMajority?: boolean | null
  reason?: string
}
interface GovernanceRecord {
  missedProposals: Found[]
  unknownProposals: Found[]
  votes: Found[]
  [member: string]: unknown
}

const getRecord = (query: string) => get<GovernanceRecord>(`/record?name=uniswap&${query}`)
const titles = (found: Found[]) => found.map(({ title }) => title.replace('About ', ''))

describe('/data/daos/governance/record', () => {
  it('counts votes, missed and unknown proposals of the last 90 days', async () => {
    const record = await getRecord(`address=${A}`)
    governanceRecordRoute.response.parse(record)
    expect(record).toMatchObject({
      addresses: [A],
      from: '2024-03-03T12:00:00.000Z',
      to: '2024-06-01T12:00:00.000Z',
      ...{ proposals: 7, voted: 3, missed: 2, missedCount: 2, unknown: 2, participation: 0.6 },
      onchain: { proposals: 3, voted: 2, participation: 2 / 3 },
      offchain: { proposals: 2, voted: 1, participation: 0.5 },
      ...{ eligible: 2, participationWhenEligible: 1, participationByPower: 150 / 160, powerCast: 160 },
      ...{ withMajority: 2, withMajorityShare: 1, medianHoursBeforeEnd: 2, votingPower: 60, rank: 1 },
      ...{ firstVoteAt: '2024-03-24T22:00:00.000Z', lastVoteAt: '2024-05-24T23:00:00.000Z', incomplete: [] },
    })
    expect(titles(record.missedProposals)).toEqual(['g2', 's2'])
    expect(record.unknownProposals.map(({ title, reason }) => [title, reason])).toEqual([
      ['About s5', 'unsettled'],
      ['About s6', 'unread'],
    ])
    expect(record.votes.map(({ title, withMajority }) => [title, withMajority])).toEqual([
      ['About g1', true],
      ['About s1', true],
      ['About g4', null],
    ])
  })
  it('adds several addresses of one person, in any spelling and order', async () => {
    const record = await getRecord(`address=${B},${A.toUpperCase().replace('0X', '0x')}&address=${A}`)
    expect(record).toMatchObject({
      ...{ addresses: [A, B], proposals: 7, voted: 4, missed: 1, unknown: 2, participation: 0.8 },
      ...{ eligible: 3, participationWhenEligible: 2 / 3, participationByPower: 150 / 260, powerCast: 165 },
      ...{ withMajority: 2, withMajorityShare: 2 / 3, medianHoursBeforeEnd: 6, votingPower: 110, rank: 1 },
    })
    expect(titles(record.missedProposals)).toEqual(['g2'])
  })

  it('has the votes of one source only, and ranks a delegate behind those with more power', async () => {
    const record = await getRecord(`address=${B}&source=governor`)
    expect(record).toMatchObject({
      ...{ proposals: 3, voted: 0, missed: 3, participation: 0, eligible: 2, participationWhenEligible: 0 },
      ...{ powerCast: 0, medianHoursBeforeEnd: null, withMajorityShare: null, votingPower: 50, rank: 2 },
      offchain: { proposals: 0, voted: 0, participation: null },
    })
    const earlier = await getRecord(`address=${A}&start=2024-03-01&end=2024-04-02`)
    expect(earlier).toMatchObject({ proposals: 3, voted: 3, missed: 0, votingPower: 100, rank: 1 })
  })

  it('does not know the power of a vote that its source does not report', async () => {
    const record = await getRecord(`address=${C}`)
    expect(record).toMatchObject({
      voted: 1,
      powerCast: null,
      withMajority: 0,
      eligible: 0,
      votingPower: 0,
      rank: null,
    })
    expect(record.participationByPower).toBeNull()
  })

  it('reads only the votes of a second person of the same range, until governance or delegations change', async () => {
    const range = 'start=2024-03-02&end=2024-05-30'
    const toRead = async (address: string) => {
      const before = statements.length
      await getRecord(`address=${address}&${range}`)
      return statements.slice(before).sort()
    }
    const record = 'governance-record'
    const own = [record, `${record}-powers`]
    await toRead(A)
    expect(await toRead(B)).toEqual(own)
    feed.commit('governance')
    expect(await toRead(C)).toEqual(['governance-range', 'governance-readings', ...own])
    feed.commit('delegations')
    expect(await toRead(A)).toEqual(['delegation-reading', 'governance-powers', ...own])
  })

  it('is a table with a row for each proposal in other formats', async () => {
    const csv = await get<string>(
      `/record?name=uniswap&address=${A}&format=csv&fields=title,participation,choice,votingPower`,
    )
    expect(csv.trim().split(/\r?\n/)).toEqual([
      '"title","participation","choice","votingPower"',
      '"About g1","voted","Against",100',
      '"About s1","voted","For",10',
      '"About g2","missed",,',
      '"About s2","missed",,',
      '"About s5","unknown",,',
      '"About g4","voted","Abstain",50',
      '"About s6","unknown",,',
    ])
  })

  it('names sources that were not read, and the limits of its parameters', async () => {
    const late = await getRecord(`address=${A}&source=governor&end=2024-05-30`)
    expect(late.incomplete).toEqual([])
    await get('/record?name=uniswap', 400)
    await get(
      `/record?name=uniswap&address=${Array.from({ length: 21 }, (_, n) => `0x${String(n).padStart(40, '0')}`)}`,
      400,
    )
    await get(`/record?name=uniswap&address=${A}&start=2024-05-02&end=2024-05-01`, 400)
    await get(`/record?name=ens&address=${A}`, 404)
  })
})

describe('/data/daos/governance/records', () => {
  it('has the same numbers as the record of each address', async () => {
    const all = await get<Record<string, unknown>[]>('/records?name=uniswap')
    expect(all.map(({ address }) => address)).toEqual([A, B, C])
    for (const { address, onchainVoted, offchainVoted, ...row } of all) {
      const record = await getRecord(`address=${String(address)}`)
      expect(record).toMatchObject(row)
      expect([onchainVoted, offchainVoted]).toEqual(
        [record.onchain, record.offchain].map((one) => (one as { voted: number }).voted),
      )
    }
    const [one] = await get<unknown[]>('/records?name=uniswap&filter=voted>2&fields=address,voted')
    expect(one).toEqual({ address: A, voted: 3 })
  })

  it('counts a proposal that is stored while an earlier request is between the proposals and their votes', async () => {
    const path = '/records?name=uniswap&source=snapshot&end=2024-05-20&fields=address,proposals'
    let stored = 0
    afterRows = async (name) => {
      if (name !== 'governance-range' || stored > 0) return
      stored += 1
      const dao = getDao(database.registry, 'uniswap')
      await storeProposals(dao.key, [{ space: snapshot, proposal: 'late', ends: at('05-15') }])
      feed.commit('governance')
    }
    const [early] = await get<{ proposals: number }[]>(path)
    const [now] = await get<{ proposals: number }[]>(path)
    expect([stored, early?.proposals, now?.proposals]).toEqual([1, 4, 5])
  })
})
