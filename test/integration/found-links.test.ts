import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { search } from '../../api/search/search.ts'
import { storeRegistry } from '../../clickhouse/registry.ts'
import { daoLinks } from '../../shared/datasets/daos.ts'
import { discordMembers } from '../../shared/datasets/discord.ts'
import { twitterCounts } from '../../shared/datasets/twitter.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { type FollowedRegistry, followRegistry, readInForce } from '../../shared/store/store.ts'
import daos from '../../workers/jobs/daos.ts'
import twitter from '../../workers/jobs/twitter.ts'
import { runJob } from '../../workers/run/runner.ts'
import { createHandFeed, startApi } from '../support/api.ts'
import { createPipeline, type Pipeline } from '../support/pipeline.ts'
import { silent } from '../support/silent.ts'

const MORNING = Date.parse('2024-05-06T00:00:00Z')

/** The registry without accounts. */
function withoutAccounts(): Registry {
  const registry = loadRegistry()
  const silenced = registry.daos.map((dao) => ({ ...dao, twitter: null, discord: null, telegram: null }))
  return { ...registry, daos: silenced }
}

let pipeline: Pipeline
let followed: FollowedRegistry
beforeEach(async () => {
  pipeline = await createPipeline({ now: MORNING + 60_000, registry: withoutAccounts() })
  await storeRegistry(pipeline.database.db, pipeline.registry, silent)
  followed = followRegistry(pipeline.database.db, pipeline.registry, { log: silent })
})
afterEach(async () => {
  followed.stop()
  await pipeline.close()
})

const run = (job: typeof daos, registry: Registry) => {
  const context = { ...pipeline.context, registry }
  return runJob(job, job.connect(context), context, { kind: 'slot', slot: MORNING, again: true })
}

describe('discovered links', () => {
  it('are used if the registry has none, are marked, and are searched again', async () => {
    await followed.refresh()
    expect(twitterCounts.entities(followed.registry)).toEqual([])
    expect(await run(twitter, followed.registry)).toMatchObject({ rows: 0 })
    await run(daos, followed.registry).catch(() => undefined)
    await followed.refresh()
    const { registry } = followed
    const accounts = twitterCounts.entities(registry)
    expect(accounts.length).toBeGreaterThan(40)
    for (const dao of accounts) expect(dao.found).toContain('twitter')
    expect(discordMembers.entities(registry).length).toBeGreaterThan(40)
    const report = await run(twitter, registry)
    expect(report.rows).toBeGreaterThan(accounts.length * 0.9)
    // Discovered links may change: the files do not have them yet.
    expect(daoLinks.entities(registry).length).toBe(daoLinks.entities(pipeline.registry).length)
    const [queries] = daos.entities(registry).filter((dao) => accounts.some(({ id }) => id === dao.id))
    expect(queries).toMatchObject({ missing: expect.arrayContaining(['twitter']) })
  })

  it('change with the discovered values, and disappear with them', async () => {
    const { db } = pipeline.database
    const own = followRegistry(db, await readInForce(db), { log: silent })
    const store = (links: string) =>
      db.command({
        name: 'find',
        sql: `ALTER TABLE daos UPDATE links = ${links} WHERE key = {key: UInt64} SETTINGS mutations_sync = 2`,
        params: { key: dao?.key },
      })
    const [dao] = (await readInForce(db)).daos.filter(
      ({ live, telegram, discord, image }) => live && !telegram && !discord && !image,
    )
    const read = async () => {
      await own.refresh()
      const { telegram, discord, found } = own.registry.daoById.get(dao?.id ?? '') ?? {}
      return { telegram, discord, found }
    }
    const imageOf = (id: string | undefined) =>
      search(own.registry, new Map(), dao?.slug ?? '').find(({ _id }) => _id === id)?.image
    await store(`map('telegram', 'https://t.me/first')`)
    expect(await read()).toEqual({ telegram: 'https://t.me/first', discord: null, found: ['telegram'] })
    await store(`map('telegram', 'https://t.me/second', 'discord', 'https://discord.gg/one')`)
    expect(await read()).toMatchObject({ telegram: 'https://t.me/second', found: ['discord', 'telegram'] })
    await store(`map('image', 'https://example.org/logo.png')`)
    expect(await read()).toEqual({ telegram: null, discord: null, found: ['image'] })
    expect(imageOf(dao?.id)).toBe('https://example.org/logo.png')
    await store(`map()::Map(String, String)`)
    expect(await read()).toEqual({ telegram: null, discord: null, found: undefined })
    own.stop()
  })

  it('are served after they are stored, despite the cache', async () => {
    const { db } = pipeline.database
    const changeFeed = createHandFeed()
    const own = followRegistry(db, await readInForce(db), { log: silent, changeFeed })
    const api = await startApi({ config: pipeline.config, db, registry: own.registry, changeFeed })
    const read = async () => {
      const found = (await (await fetch(`${api.url}/data/search?q=Uniswap`)).json()) as {
        type: string
        image: string | null
      }[]
      return found.find(({ type }) => type === 'dao')?.image
    }
    expect([await read(), await read()]).toEqual([null, null])
    await run(daos, own.registry).catch(() => undefined)
    // No change event was sent yet.
    expect(await read()).toBe(null)
    changeFeed.commit(daoLinks.name)
    await expect.poll(read).toMatch(/^https:/)
    own.stop()
    await api.close()
  })

  it('are read later if they could not be read when they were stored', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    onTestFinished(() => void vi.useRealTimers())
    const { db } = pipeline.database
    const changeFeed = createHandFeed()
    const own = followRegistry(db, pipeline.registry, { log: silent, changeFeed })
    await run(daos, own.registry).catch(() => undefined)
    const rename = (from: string, to: string) => db.command({ name: 'rename', sql: `RENAME TABLE ${from} TO ${to}` })
    await rename('daos', 'other_daos')
    changeFeed.commit(daoLinks.name)
    // Queued after the refresh that the change event started.
    await own.readCurrent()
    await rename('other_daos', 'daos')
    expect(twitterCounts.entities(own.registry)).toEqual([])
    vi.advanceTimersByTime(10_000)
    await own.readCurrent()
    expect(twitterCounts.entities(own.registry).length).toBeGreaterThan(40)
    own.stop()
  })

  it('never replace links of the files, and stay if they cannot be read', async () => {
    const files = loadRegistry()
    const [dao] = files.daos.filter((one) => one.live && one.twitter !== null)
    await storeRegistry(pipeline.database.db, withoutAccounts(), silent)
    await run(daos, pipeline.registry).catch(() => undefined)
    const own = followRegistry(pipeline.database.db, files, { log: silent })
    await own.refresh()
    expect(own.registry.daoBySlug.get(dao?.slug ?? '')?.twitter).toBe(dao?.twitter)
    const before = own.registry.daos
    await pipeline.database.db.command({ name: 'rename', sql: 'RENAME TABLE daos TO other_daos' })
    await own.refresh()
    expect(own.registry.daos).toBe(before)
    own.stop()
  })
})
