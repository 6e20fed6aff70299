import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { DAY_MS } from '../../shared/intervals.ts'
import type { Database } from '../../shared/store/store.ts'
import { createApiDatabase, createHandFeed, startApi } from '../support/api.ts'
import { createTestConfig } from '../support/database.ts'
import { getToken } from '../support/entities.ts'
import { storeMarket } from '../support/market.ts'

const NOW = Date.parse('2026-12-01T00:02:00Z')
const config = createTestConfig()
const changeFeed = createHandFeed()
let database: Awaited<ReturnType<typeof createApiDatabase>>
let folder: string
let file: string
let path: string
let statements: string[] = []

beforeAll(async () => {
  database = await createApiDatabase(config)
  const token = getToken(database.registry, 'UNI')
  await storeMarket(database.writer, { keys: [token.key], until: NOW - 60_000, points: 600, stepMs: 300_000 })
  path = `/data/tokens/historic-financial?id=${token.id}&interval=5m&start=2026-11-29&end=2026-11-30`
})
afterAll(async () => {
  await database?.drop()
})
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'warm-'))
  file = join(folder, 'recent-requests-3000.json')
  statements = []
  return () => rm(folder, { recursive: true })
})

/** Starts an API with its file; `stop` ends it and waits until the file has its requests. */
async function start(cacheBytes = 64 * 2 ** 20) {
  const stopping = new AbortController()
  const db: Database = {
    ...database.db,
    stream: (statement) => {
      statements.push(statement.name)
      return database.db.stream(statement)
    },
  }
  const api = await startApi({
    ...{ ...database, db, changeFeed, now: () => NOW, stopping: stopping.signal },
    ...{ config: { ...config, api: { ...config.api, cacheBytes } }, warmStart: { file, ready: Promise.resolve() } },
  })
  const stop = async () => {
    stopping.abort()
    await api.close()
  }
  return { url: api.url, stop }
}

const readSaved = async (): Promise<{ urls: string[] }> => JSON.parse(await readFile(file, 'utf8'))

describe('an API that starts', () => {
  it('answers the last requests of the process before, so that clients wait for no statement', async () => {
    const before = await start()
    expect((await fetch(before.url + path)).status).toBe(200)
    await before.stop()
    await expect.poll(() => existsSync(file)).toBe(true)
    expect((await readSaved()).urls).toEqual([path])

    statements = []
    const after = await start()
    await expect.poll(() => statements).toContain('historic-financial')
    statements = []
    const response = await fetch(after.url + path)
    expect(((await response.json()) as { data: unknown[] }).data).toHaveLength(288)
    expect(statements).toEqual([])
    await after.stop()
  })

  it.each([
    ['unreadable', '{"savedAt":1'],
    ['of another form', '{"savedAt":1764547200000,"urls":[1]}'],
    ['old', JSON.stringify({ savedAt: NOW - 8 * DAY_MS, urls: ['/data/tokens'] })],
  ])('ignores a file that is %s, and replaces it later', async (_, content) => {
    await writeFile(file, content)
    const api = await start()
    expect((await fetch(api.url + path)).status).toBe(200)
    await api.stop()
    await expect.poll(async () => (await readSaved().catch(() => undefined))?.urls).toEqual([path])
  })

  it('neither reads nor writes the file without a cache', async () => {
    const content = JSON.stringify({ savedAt: NOW, urls: [path] })
    await writeFile(file, content)
    const api = await start(0)
    expect((await fetch(`${api.url}/data/chains`)).status).toBe(200)
    await api.stop()
    expect(await readFile(file, 'utf8')).toBe(content)
    expect(statements).not.toContain('historic-financial')
  })
})
