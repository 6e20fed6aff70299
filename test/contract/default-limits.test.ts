import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { problemBody } from '../../api/problem/problem.ts'
import type { Dao } from '../../shared/registry/entities.ts'
import { createApiDatabase, createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { createTestConfig } from '../support/database.ts'
import { getDao } from '../support/entities.ts'
import { toNext } from '../support/next-page.ts'
import { readTable } from '../support/tables.ts'

const DAY = 86_400_000
const NOW = Date.parse('2026-07-01T12:00:00Z')
const TODAY = Date.parse('2026-07-01')
const PATH = '/data/daos/treasury/historic'
const DAYS = 370
/** A day that one DAO lacks, within its newest 365 rows, and one within the others. */
const [MISSED, MISSED_LATE] = [100, 368]

const config = createTestConfig()
let database: Awaited<ReturnType<typeof createApiDatabase>>
let api: TestApi
let daos: Dao[] = []
let ids = ''

beforeAll(async () => {
  database = await createApiDatabase(config)
  daos = ['aave', 'uniswap', 'ens'].map((slug) => getDao(database.registry, slug)).sort((a, b) => a.key - b.key)
  ids = daos.map(({ id }) => `id=${id}`).join('&')
  const empty = { tokens: [], holdings: [], spam: [], spam_count: 0, unread: [], source: 'goldrush' }
  const toDays = ({ key: dao }: Dao, at: number) =>
    Array.from({ length: DAYS }, (_, ago) => ago)
      .filter((ago) => at !== 1 || (ago !== MISSED && ago !== MISSED_LATE))
      .map((ago) => ({
        ...{ dao, observed_at: new Date(TODAY - ago * DAY).toISOString(), value_usd: 1e6 * at + ago, ...empty },
      }))
  await database.writer.insert({ table: 'dao_treasuries', rows: daos.flatMap(toDays) })
  api = await startApi({ config, ...database, changeFeed: createHandFeed(), now: () => NOW })
})
afterAll(async () => {
  await api?.close()
  await database?.drop()
})

interface Row {
  readonly id?: string
  readonly recordedAt: string
  readonly isPartial?: boolean | null
}

/** Tables of several owners have null for a member that the points of one owner leave out. */
const withoutAbsent = ({ isPartial, ...row }: Row): Row => (isPartial == null ? row : { ...row, isPartial })

async function read(query: string) {
  const response = await fetch(`${api.url}${PATH}${query}`)
  const body = await response.text()
  expect(response.status, body).toBe(200)
  const isJson = response.headers.get('content-type')?.startsWith('application/json')
  const rows = (
    isJson
      ? JSON.parse(body)
      : body
          .split('\n')
          .slice(0, -1)
          .map((line) => JSON.parse(line))
  ) as Row[]
  const missing = Number(response.headers.get('x-series-missing'))
  return { rows: rows.map(withoutAbsent), missing, next: toNext(response.headers.get('link')) }
}

/** The rows of each DAO alone as a table has them. */
const readAlone = (query: string) =>
  Promise.all(
    daos.map(async ({ id, name }) => {
      const { rows, ...page } = await read(`?id=${id}${query}`)
      return { ...page, rows: rows.map((row) => ({ id, name, ...row })) }
    }),
  )

const sumMissing = (pages: readonly { readonly missing: number }[]) =>
  pages.reduce((sum, { missing }) => sum + missing, 0)

describe('without limit, three DAOs of 370 days', () => {
  it('have 365 points each as JSON, which takes one', async () => {
    const alone = await readAlone('')
    expect(alone.map(({ rows }) => rows.length)).toEqual([365, 365, 365])
    expect(alone.map(({ missing }) => missing)).toEqual([0, 1, 0])
    const response = await fetch(`${api.url}${PATH}?${ids}`)
    expect(problemBody.parse(await response.json())).toMatchObject({ code: 'invalid_parameter', param: 'id' })
  })

  it('have the same 365 points each in one CSV table', async () => {
    const alone = await readAlone('')
    const response = await fetch(`${api.url}${PATH}?${ids}&format=csv`)
    const table = (await readTable('csv', Buffer.from(await response.arrayBuffer()))) as Record<string, string>[]
    const toPlace = ({ id, recordedAt }: Record<string, string> | Row) =>
      `${String(id).replaceAll('"', '')} ${Date.parse(String(recordedAt).replaceAll('"', ''))}`
    expect(table.map(toPlace)).toEqual(alone.flatMap(({ rows }) => rows).map(toPlace))
  })

  it.each(['', '&start=2024-06-01', '&interval=7d'])('lose no row over all pages, with "%s"', async (query) => {
    const alone = await readAlone(query)
    const first = await read(`?${ids}${query}&format=ndjson`)
    expect(first.rows).toEqual(alone.flatMap(({ rows }) => rows))
    expect(first.missing).toBe(sumMissing(alone))
    const rest = await Promise.all(alone.map(({ next }) => (next === undefined ? undefined : read(next))))
    const late = daos.flatMap(({ id, name }, at) => (rest[at]?.rows ?? []).map((row) => ({ id, name, ...row })))
    const isWeekly = query.includes('7d')
    expect(late.length).toBe(isWeekly ? 0 : 3 * (DAYS - 365) - 2)
    if (isWeekly) return expect(first.next).toBeUndefined()
    const second = await read(first.next ?? '')
    expect(second.rows).toEqual(late)
    expect(second.missing).toBe(sumMissing(rest.flatMap((page) => page ?? [])))
    expect(second.next).toBeUndefined()
    return undefined
  })

  it('continue with another limit, and with none', async () => {
    const first = await read(`?${ids}&format=ndjson`)
    const second = await read(`${first.next}&limit=2`)
    expect(second.rows.map(({ id }) => id)).toEqual(daos.flatMap(({ id }) => [id, id]))
    const third = await read((second.next ?? '').replace('&limit=2', ''))
    expect(third.rows.map(({ id }) => id)).toEqual(daos.flatMap(({ id }, at) => Array(at === 1 ? 1 : 3).fill(id)))
    const byLimit = await read(`?${ids}&limit=10&format=ndjson`)
    const after = await read((byLimit.next ?? '').replace('&limit=10', ''))
    expect([...byLimit.rows, ...after.rows].length).toBe(10 + 3 * 365)
  })

  it('have 365 rows together if that limit is given', async () => {
    const { rows, next } = await read(`?${ids}&limit=365&format=ndjson`)
    expect(new Set(rows.map(({ id }) => id))).toEqual(new Set([daos[0]?.id]))
    expect(rows.length).toBe(365)
    expect(next).toBeDefined()
  })
})
