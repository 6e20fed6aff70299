import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { governanceRoute } from '../../api/routes/daos/governance.ts'
import type { Dao } from '../../shared/registry/entities.ts'
import type { Database } from '../../shared/store/store.ts'
import { createApiDatabase, createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { createTestConfig } from '../support/database.ts'
import { getDao } from '../support/entities.ts'

const NOW = Date.parse('2024-03-10T12:02:00Z')
const READ_AT = '2024-03-10T12:00:00.000Z'
const VOTERS = 100_000
/** Far below the memory limit of the API's reader. */
const MEMORY_BYTES = 150_000_000

const config = createTestConfig()
const changeFeed = createHandFeed()
let database: Awaited<ReturnType<typeof createApiDatabase>>
let api: TestApi

interface GovernanceRecord {
  _id: string
  votes: { count: number; uniqueVotingAddresses: string[]; uniqueAddressesCount: number }
  proposals: number
}

const daoOf = (slug: string) => getDao(database.registry, slug)
const get = (query: string, headers: Record<string, string> = {}) =>
  fetch(`${api.url}/data/daos/governance${query}`, { headers })
const toRecord = async (response: Response) => {
  expect(response.status).toBe(200)
  return governanceRoute.response.parse(await response.json()) as GovernanceRecord
}

/** Limits the memory of every statement of the API. */
function withLittleMemory(db: Database): Database {
  const settings = { max_memory_usage: MEMORY_BYTES }
  return {
    ...db,
    rows: (statement) => db.rows({ ...statement, settings: { ...statement.settings, ...settings } }),
    stream: (statement) => db.stream({ ...statement, settings: { ...statement.settings, ...settings } }),
  }
}

/** Stores votes in a completely read space: each of `voters` voters votes on two of three proposals. */
async function storeVotes(dao: Dao, voters: number): Promise<void> {
  const common = { dao: dao.key, space: dao.snapshotSpace, at: READ_AT, address: '', proposal: '' }
  const proposals = ['0xp0', '0xp1', '0xp2'].map((proposal) => ({ ...common, kind: 'proposal', proposal }))
  await database.writer.insert({ table: 'governance_in', rows: [...proposals, { ...common, kind: 'reading' }] })
  await database.writer.command({
    name: 'store-votes',
    sql: `INSERT INTO governance_in (dao, space, kind, proposal, address, at)
SELECT {dao: UInt64}, {space: String}, 'vote', concat('0xp', toString((number + vote) % 3)),
  concat('0x', lower(leftPad(hex(number * 7919), 40, '0'))), now64(3)
FROM numbers({voters: UInt32}) AS n CROSS JOIN (SELECT arrayJoin([0, 1]) AS vote) AS v`,
    params: { dao: dao.key, space: dao.snapshotSpace, voters },
  })
}

beforeAll(async () => {
  database = await createApiDatabase(config)
  await storeVotes(daoOf('uniswap'), 40)
  await storeVotes(daoOf('arbitrum'), VOTERS)
  api = await startApi({ config, ...database, db: withLittleMemory(database.db), changeFeed, now: () => NOW })
})

afterAll(async () => {
  await api?.close()
  await database?.drop()
})

describe('/data/daos/governance', () => {
  it('returns counts, voters and the age of the data', async () => {
    const response = await get('?name=uniswap')
    const record = await toRecord(response)
    expect(record).toMatchObject({
      _id: daoOf('uniswap').id,
      votes: { count: 80, uniqueAddressesCount: 40 },
      proposals: 3,
    })
    expect(record.votes.uniqueVotingAddresses).toHaveLength(40)
    expect(Object.keys(record).join()).toBe('_id,votes,proposals')
    expect(Object.keys(record.votes).join()).toBe('count,uniqueVotingAddresses,uniqueAddressesCount')
    expect(response.headers.get('x-data-as-of')).toBe(READ_AT)
    expect(response.headers.get('x-data-stale')).toBeNull()
  })

  it('returns the same body by id and by name, and 304 for a known ETag', async () => {
    const [byName, byId] = [await get('?name=UNISWAP'), await get(`?id=${daoOf('uniswap').id}`)]
    expect(await byId.text()).toBe(await byName.text())
    const etag = byId.headers.get('etag') ?? ''
    expect((await get('?name=uniswap', { 'if-none-match': etag })).status).toBe(304)
  })

  it('lists a hundred thousand voters once each, in order, within the memory limit', async () => {
    const response = await get('?name=arbitrum')
    const { votes, proposals } = await toRecord(response)
    expect([votes.count, votes.uniqueAddressesCount, proposals]).toEqual([2 * VOTERS, VOTERS, 3])
    const addresses = votes.uniqueVotingAddresses
    expect(addresses).toHaveLength(VOTERS)
    expect(addresses.every((address, index) => index === 0 || (addresses[index - 1] ?? '') < address)).toBe(true)
    const etag = response.headers.get('etag') ?? ''
    expect((await get('?name=arbitrum', { 'if-none-match': etag })).status).toBe(304)
  })

  it.each([
    ['', 400, 'missing_parameter'],
    ['?id=0123456789abcdef01234567', 404, 'not_found'],
    ['?name=there-is-none', 404, 'not_found'],
    ['?name=a', 409, 'ambiguous_name'],
    ['?name=uniswap&name=aave', 400, 'invalid_parameter'],
    ['?name=uniswap&limit=3', 400, 'unknown_parameter'],
    ['?name=aave', 404, 'no_data'],
  ])('returns for query "%s" status %d with code %s', async (query, status, code) => {
    const response = await get(query)
    expect(response.status).toBe(status)
    expect(await response.json()).toMatchObject({ code })
  })
})
