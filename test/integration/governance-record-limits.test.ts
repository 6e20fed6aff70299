import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createApiDatabase, createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { createTestConfig } from '../support/database.ts'
import { getDao } from '../support/entities.ts'

const NOW = Date.parse('2024-06-01T12:30:00Z')
const VOTER = `0x${'a'.repeat(40)}`
/** As many as a range may have. */
const MOST = 10_000

const config = createTestConfig()
let database: Awaited<ReturnType<typeof createApiDatabase>>
let api: TestApi

beforeAll(async () => {
  database = await createApiDatabase(config)
  const { writer, registry } = database
  const [lido, gitcoin] = [getDao(registry, 'lido'), getDao(registry, 'gitcoin')]
  for (const { key, snapshotSpace } of [lido, gitcoin])
    await writer.insert({
      table: 'governance_readings',
      rows: [{ dao: key, space: snapshotSpace, read_at: '2024-06-01 12:00:00.000' }],
    })
  await storeChoices(lido.key, lido.snapshotSpace ?? '')
  const params = { dao: gitcoin.key, space: gitcoin.snapshotSpace, proposals: MOST + 1 }
  const numbers = 'FROM numbers({proposals: UInt32})'
  // The first one ends an hour before all others.
  await writer.command({
    name: 'store-proposals',
    sql: `INSERT INTO dao_proposals (dao, space, proposal, author, created_at)
SELECT {dao: UInt64}, {space: String}, toString(number), '', toDateTime('2024-05-01 00:00:00', 'UTC') ${numbers}`,
    params,
  })
  await writer.command({
    name: 'store-details',
    sql: `INSERT INTO dao_proposal_details (dao, space, proposal, choices, starts_at, ends_at, collected_at)
SELECT {dao: UInt64}, {space: String}, toString(number), ['For'], toDateTime('2024-05-01 00:00:00', 'UTC') AS start,
  start + if(number = 0, 3600, 7200), now64(3, 'UTC') ${numbers}`,
    params,
  })
  api = await startApi({ config, ...database, changeFeed: createHandFeed(), now: () => NOW })
})

afterAll(async () => {
  await api?.close()
  await database?.drop()
})

/** Stores one vote on each of several proposals with choices. */
async function storeChoices(dao: number, space: string): Promise<void> {
  const long = Array.from({ length: 30 }, (_, number) => `Candidate ${number + 1}`)
  const about = [
    { proposal: 'a', choices: ['For', 'Against'], choice: '2' },
    { proposal: 'b', choices: ['For', 'Against'], choice: '7' },
    { proposal: 'c', choices: ['X', 'Y', 'Z'], choice: '[1,3]' },
    { proposal: 'd', choices: ['X', 'Y', 'Z'], choice: '{"1":1,"3":0.5}' },
    { proposal: 'e', choices: long, choice: '30' },
    { proposal: 'f', choices: ['For', 'Against'], choice: '"0xsecret"' },
    { proposal: 'g', choices: [], choice: '1' },
  ]
  const { writer } = database
  await writer.insert({
    table: 'dao_proposals',
    rows: about.map(({ proposal }) => ({ dao, space, proposal, author: VOTER, created_at: '2024-05-01 00:00:00' })),
  })
  await writer.insert({
    table: 'dao_proposal_details',
    rows: about.map(({ proposal, choices }) => ({
      ...{ dao, space, proposal, choices, title: proposal, starts_at: '2024-05-01 00:00:00' },
      ...{ ends_at: '2024-05-10 00:00:00', collected_at: '2024-06-01 00:00:00.000' },
    })),
  })
  await writer.insert({
    table: 'governance_in',
    rows: about.map(({ proposal, choice }) => ({
      ...{ dao, space, proposal, choice, kind: 'vote', address: VOTER, voting_power: 0.1 },
      ...{ at: '2024-05-02 00:00:00.000', collected_at: '2024-05-02 00:00:00.000' },
    })),
  })
}

async function get(path: string) {
  const response = await fetch(`${api.url}/data/daos/governance/${path}`)
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}

describe('/data/daos/governance/record', () => {
  it('has choices in the words of the proposals: numbers, lists, weights and long lists', async () => {
    const { body } = await get(`record?name=lido&address=${VOTER}`)
    const votes = body.votes as { title: string; choice: string | null }[]
    expect(Object.fromEntries(votes.map(({ title, choice }) => [title, choice]))).toEqual({
      ...{ a: 'Against', b: '7', c: 'X, Z', d: 'X 1, Z 0.5', e: 'Candidate 30', f: null, g: '1' },
    })
    expect(body).toMatchObject({ voted: 7, powerCast: 0.7 })
  })

  it('adds up powers to the number of the table of all records', async () => {
    const { body } = await get(`record?name=lido&address=${VOTER}`)
    const response = await fetch(`${api.url}/data/daos/governance/records?name=lido`)
    const [row] = (await response.json()) as { address: string; powerCast: number }[]
    expect(row).toMatchObject({ address: VOTER, powerCast: body.powerCast })
  })

  it.each([
    'record?name=gitcoin&source=snapshot&address=',
    'records?name=gitcoin&source=snapshot&x=',
    'blocs?name=gitcoin&source=snapshot&x=',
  ])('rejects a range with more than 10,000 proposals: %s', async (path) => {
    const toPath = (start: string) =>
      `${path.replace('&x=', '')}${path.endsWith('address=') ? VOTER : ''}&start=${start}`
    const { status, body } = await get(toPath('2024-05-01T01:00:00Z'))
    expect(status).toBe(400)
    expect(body).toMatchObject({ code: 'invalid_parameter', param: 'start' })
    expect(String(body.detail)).toContain('more than 10000 proposals')
    expect((await get(toPath('2024-05-01T01:00:01Z'))).status).toBe(200)
  })
})
