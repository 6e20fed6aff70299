import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { daosRoute } from '../../api/routes/daos.ts'
import { storeRegistry } from '../../clickhouse/registry.ts'
import type { Dao } from '../../shared/registry/entities.ts'
import { LINK_FIELDS } from '../../shared/registry/found-links.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import daos from '../../workers/jobs/daos.ts'
import twitter from '../../workers/jobs/twitter.ts'
import { runJob } from '../../workers/run/runner.ts'
import { getDao } from '../support/entities.ts'
import { toPendingReport } from '../support/pending-report.ts'
import { createServedPipeline, type ServedPipeline } from '../support/served-pipeline.ts'
import { silent } from '../support/silent.ts'

const DAY = 86_400_000
const MORNING = Date.parse('2024-05-06T00:00:00Z')

type DaoRecord = { slug: string; __v: number; createdAt: string; updatedAt: string } & {
  [field in (typeof LINK_FIELDS)[number]]: string | null
}

let pipeline: ServedPipeline

beforeEach(async () => {
  pipeline = await createServedPipeline({ registry: loadRegistry(), now: MORNING + 60_000 })
})
afterEach(() => pipeline?.close())

async function collect(registry: Registry = pipeline.registry) {
  const slot = Math.floor(pipeline.clock.now / DAY) * DAY
  const context = { ...pipeline.context, registry }
  const report = await runJob(daos, daos.connect(context), context, { kind: 'slot', slot, again: true })
  pipeline.changeFeed.commit('daos')
  return report
}
const text = async () => (await fetch(`${pipeline.url}/data/daos?limit=500`)).text()
const list = async () => daosRoute.response.parse(JSON.parse(await text())) as DaoRecord[]
const recordOf = async (slug: string) => (await list()).find((record) => record.slug === slug) as DaoRecord
const written = async () => {
  const sql = 'SELECT count() AS n FROM daos'
  return (await pipeline.database.db.rows({ name: 'count', sql, schema: z.object({ n: z.number() }) }))[0]?.n
}
const curatedOf = (slug: string) => getDao(pipeline.registry, slug)
const propose = async (dao: Dao, links: { field: string; source: string; value: string }[]) => {
  const observed_at = new Date(MORNING).toISOString()
  const rows = links.map((link) => ({ dao: dao.key, observed_at, ...link }))
  await pipeline.database.db.insert({ table: 'dao_links', rows })
}

describe('discovered links of DAOs', () => {
  it('fill only empty links of the registry', async () => {
    const before = await list()
    expect(await collect()).toMatchObject({ rejected: 0 })
    const after = await list()
    let filled = 0
    for (const [index, record] of after.entries()) {
      const curated = curatedOf(record.slug)
      for (const field of LINK_FIELDS) if (curated[field] !== null) expect(record[field]).toBe(curated[field])
      const changed = LINK_FIELDS.some((field) => record[field] !== before[index]?.[field])
      filled += changed ? 1 : 0
      expect(record.__v, record.slug).toBe(changed ? 1 : 0)
      expect(record.updatedAt === before[index]?.updatedAt, record.slug).toBe(!changed)
      expect(record.createdAt).toBe(before[index]?.createdAt)
    }
    expect(filled).toBeGreaterThan(50)
  })

  it('store nothing new when they are collected again', async () => {
    await collect()
    const [body, rows] = [await text(), await written()]
    await collect()
    pipeline.clock.now += DAY
    await collect()
    expect(await text()).toBe(body)
    expect(await written()).toBe(rows)
  })

  it('come from the next source if the first one fails or has none', async () => {
    pipeline.upstream.faults.set('coinmarketcap', { kind: 'status', status: 401 })
    pipeline.upstream.faults.set('defillama', { kind: 'status', status: 401 })
    expect((await collect().catch(toPendingReport)).providers).toEqual(['coingecko'])
    expect((await list()).filter(({ __v }) => __v === 1).length).toBeGreaterThan(50)
  })

  it('follow the priority of the sources, not the time of collection', async () => {
    const uniswap = { ...curatedOf('uniswap'), whitepaper: null, telegram: null }
    const registry = { ...pipeline.registry, daos: [uniswap] }
    await storeRegistry(pipeline.database.db, registry, silent)
    await propose(uniswap, [
      { field: 'whitepaper', source: 'coingecko', value: 'https://three.example/' },
      { field: 'whitepaper', source: 'coinmarketcap', value: 'https://one.example/' },
      { field: 'whitepaper', source: 'defillama', value: 'https://two.example/' },
    ])
    pipeline.upstream.faults.set('coinmarketcap', { kind: 'status', status: 401 })
    await collect(registry)
    expect((await recordOf('uniswap')).whitepaper).toBe('https://one.example/')
  })

  it("are replaced by the registry's links, and return when those are removed", async () => {
    await collect()
    const found = (await list()).find(({ slug, discord }) => discord !== null && curatedOf(slug).discord === null)
    const slug = found?.slug ?? expect.unreachable('no link was filled in')
    const own = { ...curatedOf(slug), discord: 'https://discord.gg/curated' }
    const rest = pipeline.registry.daos.filter((dao) => dao.slug !== slug)
    await storeRegistry(pipeline.database.db, { ...pipeline.registry, daos: [...rest, own] }, silent)
    pipeline.changeFeed.commit('daos')
    expect(await recordOf(slug)).toMatchObject({ discord: own.discord, __v: 2 })
    await storeRegistry(pipeline.database.db, pipeline.registry, silent)
    await collect()
    expect(await recordOf(slug)).toMatchObject({ discord: found?.discord, __v: 4 })
  })

  it('are rejected unless they are web URLs', async () => {
    const collector = toCollector(['ftp://a.example/', 'https://b.example/', 'https://c.example/'])
    const run = runJob(daos, [collector], pipeline.context, { kind: 'slot', slot: MORNING })
    const report = await run.catch(toPendingReport)
    expect(report).toMatchObject({ rows: 2, rejected: 1 })
  })
})

/** A provider that proposes one website for each of the first DAOs. */
function toCollector(values: readonly string[]) {
  return {
    provider: 'coinmarketcap',
    covers: () => true,
    collect: async ({ entities, slot }: { entities: readonly { key: number }[]; slot: number }) =>
      values.map((value, index) => ({
        dao: entities[index]?.key,
        field: 'website',
        source: 'coinmarketcap',
        value,
        observed_at: new Date(slot).toISOString(),
      })),
  }
}

it('DAO record includes the X account id, unless the registry files have one', async () => {
  const idOf = async (slug: string) => (await recordOf(slug)) as DaoRecord & { twitterid: string | null }
  const [open] = pipeline.registry.daos.filter((dao) => dao.live && dao.twitterId === null && dao.twitter !== null)
  const available = pipeline.registry.daos.filter((dao) => dao.live && dao.twitterId !== null)
  expect((await idOf(open?.slug ?? '')).twitterid).toBeNull()
  await runJob(twitter, twitter.connect(pipeline.context), pipeline.context, {
    kind: 'slot',
    slot: MORNING,
    again: true,
  })
  pipeline.changeFeed.commit('twitter')
  const handle = open?.twitter?.slice(open.twitter.lastIndexOf('/') + 1)
  const headers = { authorization: 'Bearer demo' }
  const answer = await fetch(`${pipeline.upstream.url}/x/2/users/by?usernames=${handle}`, { headers })
  const { data } = (await answer.json()) as { data: { id: string }[] }
  expect((await idOf(open?.slug ?? '')).twitterid).toBe(data[0]?.id)
  for (const { slug, twitterId } of available.slice(0, 3)) expect((await idOf(slug)).twitterid).toBe(twitterId)
})
