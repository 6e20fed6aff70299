import pino from 'pino'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { putInForce, storeRegistry } from '../../clickhouse/registry.ts'
import { protocolTvl } from '../../shared/datasets/protocol-tvl.ts'
import { noteStored, readDueUnits } from '../../shared/ledger/tables.ts'
import { addComposition } from '../../shared/registry/rebalance.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import {
  createDatabase,
  type Database,
  type FollowedRegistry,
  followRegistry,
  readInForce,
  readRegistry,
} from '../../shared/store/store.ts'
import type { Logger } from '../../shared/telemetry/log.ts'
import type { Collector } from '../../workers/job/define-job.ts'
import index from '../../workers/jobs/index-points.ts'
import tvl from '../../workers/jobs/tvl.ts'
import { runJob } from '../../workers/run/runner.ts'
import { createHandFeed, startApi } from '../support/api.ts'
import { storeMarket } from '../support/market.ts'
import { createPipeline, type Pipeline } from '../support/pipeline.ts'
import { createRegistryFolder, type RegistryFolder } from '../support/registry-folder.ts'
import { readVersions, withoutVersion } from '../support/registry-versions.ts'
import { silent } from '../support/silent.ts'

const HOUR = 3_600_000
const MORNING = Date.parse('2024-05-06T00:00:00Z')

let pipeline: Pipeline
let db: Database
let folder: RegistryFolder
let followed: FollowedRegistry
/** Log messages of level info or higher. */
let messages: { level: number; msg: string; version?: string }[]
let changes: number

const createListener = () =>
  pino({ level: 'info' }, { write: (line: string) => void messages.push(JSON.parse(line)) }) as Logger
const store = () => putInForce(db, silent, folder.dir)

beforeEach(async () => {
  messages = []
  changes = 0
  folder = createRegistryFolder()
  pipeline = await createPipeline({ now: MORNING + 60_000 })
  ;({ db } = pipeline.database)
  await store()
  const changeFeed = { follow: () => {}, renew: () => void changes++ }
  followed = followRegistry(db, await readInForce(db), { log: createListener(), changeFeed })
})
afterEach(async () => {
  followed.stop()
  folder.remove()
  await pipeline.close()
})

describe('followed registry', () => {
  it('is replaced after a new one is stored, with one notification', async () => {
    await followed.refresh()
    expect(changes).toBe(0)
    const before = { ...followed.registry }
    folder.edit('daos', (rows) => rows.map((row) => (row.slug === 'uniswap' ? { ...row, name: 'Unisvap' } : row)))
    await store()
    await Promise.all([followed.refresh(), followed.refresh()])
    expect(changes).toBe(1)
    expect(followed.registry.daoBySlug.get('uniswap')?.name).toBe('Unisvap')
    expect(before.daoBySlug.get('uniswap')?.name).toBe('Uniswap')
    expect(withoutVersion({ ...followed.registry })).toEqual(withoutVersion(await readRegistry(db)))
    expect(messages.filter(({ msg }) => msg === 'a new registry is active')).toHaveLength(1)
  })

  it('notifies again if the joined tables had another registry', async () => {
    const before = followed.registry.changedAt
    await store()
    await followed.refresh()
    expect(followed.registry.changedAt).toBe(before)
    // A run with other files was stopped before its registry was active.
    const [token] = followed.registry.tokens
    const rest = followed.registry.tokens.map((one) => (one === token ? { ...one, name: 'Another' } : one))
    await storeRegistry(db, { ...loadRegistry(folder.dir), tokens: rest }, silent)
    await store()
    await followed.refresh()
    expect(followed.registry.changedAt).toBeGreaterThan(before)
    expect([(await readVersions(db)).length, changes]).toEqual([1, 1])
  })

  it('stays the same until all records of the new one are stored', async () => {
    const before = followed.registry.version
    folder.edit('categories', (rows) => [...rows, { slug: 'made-up', name: 'Made up' }])
    await store()
    const { version } = await readRegistry(db)
    const lost = `version = '${version}' AND list = 'categories' AND position = 0`
    const sql = `SELECT version, list, position, record FROM registry_records WHERE ${lost}`
    const schema = z.object({ version: z.string(), list: z.string(), position: z.number(), record: z.string() })
    const rows = await db.rows({ name: 'lost', sql, schema })
    expect(rows).toHaveLength(1)
    await db.command({ name: 'lose', sql: `DELETE FROM registry_records WHERE ${lost}` })
    await followed.refresh()
    await followed.refresh()
    expect([followed.registry.version, changes]).toEqual([before, 0])
    expect(messages.filter(({ level }) => level === 40)).toHaveLength(1)
    await db.insert({ table: 'registry_records', rows })
    await followed.refresh()
    expect([followed.registry.version, changes]).toEqual([version, 1])
    expect(followed.registry.categoryBySlug.get('made-up')?.name).toBe('Made up')
  })

  it('stays the same if the new one is invalid, logs it once, and accepts the next one', async () => {
    const before = followed.registry.version
    await db.command({
      name: 'newer-program',
      sql: `INSERT INTO registry_records SELECT 'strange', list, position,
if(list = 'chains' AND position = 0, '{"slug":"ethereum","colour":"blue"', record) FROM registry_records WHERE version = {before: String}`,
      params: { before },
    })
    await db.command({
      name: 'newer-version',
      sql: `INSERT INTO registry_versions SELECT 'strange', records, now64(3) FROM registry_versions WHERE version = {before: String}`,
      params: { before },
    })
    await followed.refresh()
    await followed.refresh()
    expect([followed.registry.version, changes]).toEqual([before, 0])
    const errors = messages.filter(({ level }) => level === 50)
    expect(errors).toMatchObject([
      { version: 'strange', reason: expect.stringContaining('chains of the stored registry[0]') },
    ])
    await expect(readRegistry(db)).rejects.toThrow(/chains of the stored registry\[0\]/)
    folder.edit('categories', (rows) => [...rows, { slug: 'made-up', name: 'Made up' }])
    await store()
    await followed.refresh()
    expect(followed.registry.categoryBySlug.get('made-up')?.name).toBe('Made up')
  })

  it('works equally for a part of the registry', async () => {
    const own = followRegistry(db, await readInForce(db, { part: 'tokens' }), { log: createListener(), part: 'tokens' })
    folder.edit('tokens', (rows) => rows.map((row) => (row.symbol === 'UNI' ? { ...row, name: 'Another name' } : row)))
    await store()
    await own.refresh()
    own.stop()
    expect(own.registry.tokens.filter(({ name }) => name === 'Another name')).toHaveLength(1)
    expect(() => own.registry.daos).toThrow(/were not read/)
    expect(messages.map(({ msg }) => msg)).toContain('a new registry is active')
  })
})

describe('job and the active registry', () => {
  const toRows = async (sql: string) =>
    (await db.rows({ name: 'stored', sql, schema: z.object({ dao: z.number() }) })).map(({ dao }) => dao)

  it('uses the registry at its start, and the next job uses the new one', async () => {
    const all = protocolTvl.entities(followed.registry)
    const [dao] = all
    folder.edit('daos', (rows) => rows.map((row) => (row.slug === dao?.slug ? { ...row, live: false } : row)))
    await store()
    await followed.refresh()
    expect(protocolTvl.entities(followed.registry)).toHaveLength(all.length - 1)
    const context = { ...pipeline.context, registry: followed.registry }
    const collectors = tvl.connect(context)
    const requests: number[] = []
    // The DAO becomes live again while the job runs.
    const changing = collectors.map(
      (collector): Collector => ({
        ...collector,
        collect: async (request) => {
          requests.push(request.entities.length)
          folder.edit('daos', (rows) => rows.map((row) => (row.slug === dao?.slug ? { ...row, live: true } : row)))
          await store()
          await followed.refresh()
          return collector.collect(request)
        },
      }),
    )
    const payload = { kind: 'slot', slot: MORNING, again: true }
    await runJob(tvl, changing, context, payload)
    expect(requests[0]).toBe(all.length - 1)
    const sql = 'SELECT DISTINCT dao FROM protocol_tvl'
    expect(await toRows(sql)).not.toContain(dao?.key)
    await runJob(tvl, collectors, context, payload)
    expect(await toRows(sql)).toContain(dao?.key)
  })

  it('computes with the registry that is active at its end, also without a notification', async () => {
    const [from, slot] = [Date.parse('2027-01-01T00:00:00Z'), 300_000]
    const keys = followed.registry.tokens.map(({ key }) => key)
    await storeMarket(db, { keys, until: from + slot, points: 2, stepMs: slot })
    const rebalance = async (at: number, quantity: string) => {
      addComposition(folder.dir, { validFrom: new Date(at).toISOString(), elements: [{ token: 'UNI', quantity }] })
      await store()
    }
    await rebalance(from, '2')
    const { registry, readCurrent: readRegistry } = followed
    const context = { ...pipeline.context, registry, readRegistry, now: () => from + 2 * HOUR }
    let runs = 0
    // Another registry becomes active during the first computation.
    const changing = index.connect(context).map(
      (collector): Collector => ({
        ...collector,
        collect: async (request) => {
          runs += 1
          if (runs === 1) await rebalance(from + slot, '3')
          return collector.collect(request)
        },
      }),
    )
    const range = { from, to: from + HOUR }
    await noteStored(db, index.dataset, [range])
    await runJob(index, changing, context, { kind: 'range', ...range, interval: '5m' })
    const stored = await db.rows({
      name: 'stored',
      sql: 'SELECT composition FROM index_points FINAL ORDER BY created_at',
      schema: z.object({ composition: z.string() }),
    })
    const [before, last] = loadRegistry(folder.dir).index.compositions.slice(-2)
    expect(last?.elements[0]?.quantity).toBe('3')
    expect(stored.map(({ composition }) => composition)).toEqual([before?.id, last?.id])
    expect(await readDueUnits(db, index.dataset, 0)).toEqual([])
  })
})

describe('API and the active registry', () => {
  it('returns data of the active registry, despite its cache', async () => {
    const reader = createDatabase(pipeline.config.clickhouse, 'read')
    const changeFeed = createHandFeed()
    const own = followRegistry(reader, await readInForce(reader), { log: silent, changeFeed })
    const api = await startApi({ config: pipeline.config, db: reader, registry: own.registry, changeFeed })
    const sendRequest = async (path: string) => {
      const response = await fetch(`${api.url}${path}`)
      return { status: response.status, text: await response.text(), tag: response.headers.get('etag') }
    }
    const dao = own.registry.daoBySlug.get('uniswap')
    const paths = [
      '/data/categories',
      '/data/daos?name=Uniswap',
      `/marks/${dao?.id}.svg`,
      '/data/daos/treasury/historic?name=Uniswap',
    ]
    const before = await Promise.all(paths.map(sendRequest))
    // The responses are cached now.
    expect(await Promise.all(paths.map(sendRequest))).toEqual(before)
    folder.edit('categories', (rows) => [...rows, { slug: 'made-up', name: 'Made up' }])
    folder.edit('daos', (rows) => rows.map((row) => (row.slug === 'uniswap' ? { ...row, name: 'Other' } : row)))
    await store()
    await own.refresh()
    const after = await Promise.all(paths.map(sendRequest))
    expect(after[0]?.text).toContain('Made up')
    expect(after[0]?.tag).not.toBe(before[0]?.tag)
    expect(before[1]?.text).toContain('Uniswap')
    expect(after[1]?.text).not.toContain('"name":"Uniswap"')
    expect(after[2]?.text).toContain('Other')
    expect([before[3]?.status, after[3]?.status]).toEqual([200, 404])
    expect((await sendRequest('/data/daos/treasury/historic?name=Other')).status).toBe(200)
    own.stop()
    await api.close()
    await reader.close()
  })
})
