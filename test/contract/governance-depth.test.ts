import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Dao } from '../../shared/registry/entities.ts'
import type { Database } from '../../shared/store/store.ts'
import { createApiDatabase, createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { createTestConfig } from '../support/database.ts'
import { getDao } from '../support/entities.ts'

const NOW = Date.parse('2024-03-10T12:02:00Z')
const READ_AT = '2024-03-10T12:00:00.000Z'
const VOTES = 1_000_000
const PROPOSALS = 400
const VOTERS = 200_000
/** Far below the memory limit of the API's reader. */
const MEMORY_BYTES = 250_000_000

const config = createTestConfig()
const changeFeed = createHandFeed()
let database: Awaited<ReturnType<typeof createApiDatabase>>
let api: TestApi
let dao: Dao
let later: Dao

const PROPOSAL = "concat('0x', lower(hex(SHA256(toString(p)))))"

/** Limits the memory of every statement of the API. */
function withLittleMemory(db: Database): Database {
  const settings = { max_memory_usage: MEMORY_BYTES }
  return {
    ...db,
    rows: (statement) => db.rows({ ...statement, settings: { ...statement.settings, ...settings } }),
    stream: (statement) => db.stream({ ...statement, settings: { ...statement.settings, ...settings } }),
  }
}

/** Stores votes on proposals that start every second day, in ten inserts like a real read. */
async function storeVotes(): Promise<void> {
  const params = { dao: dao.key, space: dao.snapshotSpace }
  const { writer } = database
  const START = "toDateTime64('2022-01-01 00:00:00', 3, 'UTC')"
  for (let batch = 0; batch < 10; batch++)
    await writer.command({
      name: 'store-votes',
      sql: `INSERT INTO governance_in (dao, space, kind, proposal, address, at, choice, voting_power, collected_at)
SELECT {dao: UInt64}, {space: String}, 'vote', ${PROPOSAL}, concat('0x', lower(leftPad(hex((number * 7919) % ${VOTERS}), 40, '0'))),
  ${START} + INTERVAL p * 2 DAY + INTERVAL cityHash64(number) % 400000 SECOND, toString(number % 3 + 1), number / 7, now64(3)
FROM (SELECT number + {batch: UInt32} * ${VOTES / 10} AS number, intDiv(number, ${VOTES / PROPOSALS}) AS p FROM numbers(${VOTES / 10}))`,
      params: { ...params, batch },
    })
  await writer.command({
    name: 'store-proposals',
    sql: `INSERT INTO governance_in (dao, space, kind, proposal, address, at, title, starts_at, ends_at)
SELECT {dao: UInt64}, {space: String}, 'proposal', ${PROPOSAL}, '0x1', ${START} + INTERVAL p * 2 DAY AS made_at, 'A proposal', made_at, made_at + INTERVAL 5 DAY
FROM (SELECT number AS p FROM numbers(${PROPOSALS}))`,
    params,
  })
  const reading = { dao: dao.key, space: dao.snapshotSpace, kind: 'reading', at: READ_AT }
  await writer.insert({ table: 'governance_in', rows: [reading] })
  // Another DAO, read much later, has a proposal without known voting times.
  const another = { dao: later.key, space: later.snapshotSpace }
  const created = { ...another, kind: 'proposal', proposal: '0x1', address: '0x1', at: READ_AT }
  const read = { ...another, kind: 'reading', at: '2024-05-01T12:00:00.000Z' }
  for (const row of [created, read]) await writer.insert({ table: 'governance_in', rows: [row] })
}

beforeAll(async () => {
  database = await createApiDatabase(config)
  dao = getDao(database.registry, 'arbitrum')
  later = getDao(database.registry, 'aave')
  await storeVotes()
  const withoutCache = { ...config, api: { ...config.api, cacheBytes: 0 } }
  api = await startApi({
    ...{ config: withoutCache, ...database, db: withLittleMemory(database.db) },
    ...{ changeFeed, now: () => NOW },
  })
})

afterAll(async () => {
  await api?.close()
  await database?.drop()
})

interface Vote {
  voter: string
  proposal: string
  createdAt: string
}

const followNext = (path: string, response: Response) =>
  `${path}${/<(\?[^>]*)>/.exec(response.headers.get('link') ?? '')?.[1]}`

async function get<T>(path: string) {
  const started = performance.now()
  const response = await fetch(`${api.url}/data/daos/governance${path}`)
  const text = await response.text()
  expect([path, response.status, response.status === 200 ? '' : text]).toEqual([path, 200, ''])
  console.log(`${Math.round(performance.now() - started)} ms ${path}`)
  return { response, records: JSON.parse(text) as T[] }
}

describe('/data/daos/governance with a million votes', () => {
  it('lists votes in pages within the memory limit', async () => {
    const first = await get<Vote>('/votes?name=arbitrum')
    expect(first.response.headers.get('x-total-count')).toBe(String(VOTES))
    const second = await get<Vote>(followNext('/votes', first.response))
    const records = [...first.records, ...second.records]
    expect(new Set(records.map(({ voter, proposal }) => `${voter} ${proposal}`)).size).toBe(200)
    const times = records.map(({ createdAt }) => createdAt)
    expect(times).toEqual([...times].sort().reverse())
    const long = await get<Vote>('/votes?name=arbitrum&limit=10000')
    expect(long.records.slice(0, 200)).toEqual(records)
    const deep = await get<Vote>(followNext('/votes', long.response))
    expect(deep.records[0]?.createdAt.localeCompare(long.records.at(-1)?.createdAt ?? '')).toBeLessThanOrEqual(0)
  })

  it('lists the votes of one proposal, old or new', async () => {
    const { records: newest } = await get<{ _id: string }>('/proposals?name=arbitrum&limit=1')
    const { records: oldest } = await get<{ _id: string }>('/proposals?name=arbitrum&limit=1&sort=createdAt')
    for (const [proposal] of [newest, oldest]) {
      const { response, records } = await get<Vote>(`/votes?proposal=${proposal?._id}`)
      expect(response.headers.get('x-total-count')).toBe(String(VOTES / PROPOSALS))
      expect(records).toHaveLength(100)
      expect(new Set(records.map((vote) => vote.proposal))).toEqual(new Set([proposal?._id]))
    }
  })

  it('aggregates votes by voter', async () => {
    const { response, records } = await get<{ votes: number }>('/voters?name=arbitrum')
    expect(response.headers.get('x-total-count')).toBe(String(VOTERS))
    expect(records.map(({ votes }) => votes)).toEqual(Array(100).fill(VOTES / VOTERS))
    await get(followNext('/voters', response))
  })

  it('returns summaries, and sorted and filtered votes', async () => {
    const { records } = await get<object>('/summary?name=arbitrum')
    expect(records).toMatchObject([{ votes: { count: VOTES, uniqueAddressesCount: VOTERS }, proposals: PROPOSALS }])
    const { records: strongest } = await get<{ votingPower: number }>('/votes?name=arbitrum&sort=-votingPower&limit=3')
    expect(strongest.map(({ votingPower }) => votingPower)).toEqual([1, 2, 3].map((n) => (VOTES - n) / 7))
    const counts = await fetch(`${api.url}/data/daos/governance?name=arbitrum`)
    expect(await counts.json()).toMatchObject({ votes: { count: VOTES }, proposals: PROPOSALS })
  })

  it('counts the votes of the last 30 days before the DAO was read, and returns null for unknown counts', async () => {
    const since = new Date(Date.parse(READ_AT) - 30 * 86_400_000).toISOString()
    const { response } = await get(`/votes?name=arbitrum&limit=1&filter=${encodeURIComponent(`createdAt>${since}`)}`)
    const recent = Number(response.headers.get('x-total-count'))
    expect(recent).toBeGreaterThan(0)
    const { records } = await get<{ name: string }>('/summary?name=arbitrum&name=aave&sort=-proposals')
    expect(records).toMatchObject([
      { _id: dao.id, votes30d: recent, activeProposals: expect.any(Number) },
      { _id: later.id, votes30d: 0, proposals: 1, activeProposals: null },
    ])
  })
})
