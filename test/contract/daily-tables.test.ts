import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createApiDatabase, createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { createTestConfig } from '../support/database.ts'
import { storeEveryDataset } from '../support/every-dataset.ts'

const NOW = Date.parse('2024-03-10T12:02:00Z')

const config = createTestConfig()
let database: Awaited<ReturnType<typeof createApiDatabase>>
let api: TestApi

beforeAll(async () => {
  database = await createApiDatabase(config)
  await storeEveryDataset(database.writer, database.registry, NOW)
  api = await startApi({ config, ...database, changeFeed: createHandFeed(), now: () => NOW })
})
afterAll(async () => {
  await api?.close()
  await database?.drop()
})

interface Owner {
  readonly id: string
  readonly name: string
}

async function read(path: string): Promise<{ readonly rows: object[]; readonly missing: number }> {
  const response = await fetch(api.url + path)
  expect(response.status, path).toBe(200)
  const lines = (await response.text()).split('\n').slice(0, -1)
  return {
    rows: lines.map((line) => JSON.parse(line) as object),
    missing: Number(response.headers.get('x-series-missing')),
  }
}

/** Two owners with data, and one without. */
function selectOwners(type: 'daos' | 'tokens'): Owner[] {
  const { daos, tokens } = database.registry
  const stored = daos.filter(({ live, token }) => live && token !== null)
  const own = [stored[0], stored[1], stored.at(-1)]
  const selected =
    type === 'daos'
      ? daos.filter((dao) => own.includes(dao))
      : tokens.filter(({ id }) => own.some((dao) => dao?.token === id))
  return selected.toSorted((a, b) => a.key - b.key)
}

describe.each([
  ['/data/daos/treasury/historic', 'daos', ['1d', '7d']],
  ['/data/daos/fees/historic', 'daos', ['1d', '7d']],
  ['/data/tokens/holders/historic', 'tokens', ['1d']],
] as const)('table of several owners of %s', (path, type, intervals) => {
  it.each(intervals)('has the points and the missing buckets of each owner alone, interval %s', async (interval) => {
    const owners = selectOwners(type)
    for (const range of ['', '&start=2024-02-20&end=2024-03-09']) {
      const query = `interval=${interval}&limit=1000&format=ndjson${range}`
      const singles = await Promise.all(owners.map(({ id }) => read(`${path}?id=${id}&${query}`)))
      const together = await read(`${path}?${owners.map(({ id }) => `id=${id}`).join('&')}&${query}`)
      const expected = owners.flatMap(({ id, name }, at) =>
        (singles[at]?.rows ?? []).map((row) => ({ id, name, ...row })),
      )
      expect(expected.length).toBeGreaterThan(1)
      expect(together.rows).toEqual(expected)
      expect(together.missing).toBe(singles.reduce((sum, { missing }) => sum + missing, 0))
    }
  })
})

it('refuses several tokens for the labels of holders', async () => {
  const ids = selectOwners('tokens').map(({ id }) => `id=${id}`)
  const response = await fetch(`${api.url}/data/tokens/holders/historic-labels?${ids.join('&')}&format=csv`)
  expect(response.status).toBe(400)
})
