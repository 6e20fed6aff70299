import { afterAll, beforeAll, expect, it } from 'vitest'
import { DataError } from '../../shared/errors.ts'
import { DAY_MS, INTERVAL_SECONDS } from '../../shared/intervals.ts'
import { createDatabase, type Database } from '../../shared/store/store.ts'
import type { Collector } from '../../workers/job/define-job.ts'
import { openState } from '../../workers/job/state.ts'
import index from '../../workers/jobs/index-points.ts'
import marketCap from '../../workers/jobs/market-cap.ts'
import prices from '../../workers/jobs/prices.ts'
import { announce, noteChange } from '../../workers/run/changes.ts'
import { runJob } from '../../workers/run/runner.ts'
import { days, NOW, type Payload, runFor, slotAt, TODAY, toSample } from '../support/answered.ts'
import { createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { createPipeline, type Pipeline } from '../support/pipeline.ts'

const SLOT_MS = INTERVAL_SECONDS['5m'] * 1000

let pipeline: Pipeline
let api: TestApi
let now = NOW
const db = () => createDatabase(pipeline.config.clickhouse, 'read')
let reader: ReturnType<typeof db>

beforeAll(async () => {
  pipeline = await createPipeline({ now: NOW })
  reader = db()
  const { config, registry } = pipeline
  api = await startApi({ config, db: reader, registry, changeFeed: createHandFeed(), now: () => now })
})
afterAll(async () => {
  await api?.close()
  await reader?.close()
  await pipeline?.close()
})

const REPEATED: Payload = { kind: 'range', from: TODAY - 3 * DAY_MS, to: TODAY - DAY_MS, interval: '1d', again: true }

interface Change {
  readonly dataset: string
  readonly entity: string | null
  readonly from: string
  readonly to: string
  readonly at: string
  readonly job: string
}

const sendRequest = async (query = '') => {
  // Responses are cached for five seconds.
  now += 6_000
  return fetch(`${api.url}/data/changes${query}`)
}
const read = async (query = '') => (await (await sendRequest(query)).json()) as Change[]

it('GET /data/changes returns the past ranges that a job stored per entity, without scheduled updates', async () => {
  const ids = toSample(pipeline, { dataset: 'prices', provider: 'coinmarketcap' }).map(({ id }) => id)
  expect(await read()).toEqual([])
  await runFor(pipeline, prices, slotAt(Math.floor(NOW / 300_000) * 300_000), { ids })
  expect(await read()).toEqual([])
  const began = Date.now()
  const { rows } = await runFor(pipeline, prices, days, { ids })
  expect(rows).toBeGreaterThan(0)
  const changes = await read()
  expect(changes.map(({ entity }) => entity).sort()).toEqual([...ids].sort())
  for (const { dataset, from, to, at, job } of changes) {
    expect({ dataset, job }).toEqual({ dataset: 'prices', job: 'prices-history' })
    // The time comes from ClickHouse's clock, not from the worker's.
    expect(Date.parse(at)).toBeGreaterThanOrEqual(began)
    expect(Date.parse(from)).toBeGreaterThanOrEqual(TODAY - 3 * DAY_MS)
    expect(Date.parse(to)).toBeGreaterThan(Date.parse(from))
    expect(Date.parse(to)).toBeLessThanOrEqual(TODAY)
  }

  await runFor(pipeline, prices, REPEATED, { ids: ids.slice(0, 1) })
  const later = await read()
  const [newest] = later.filter(({ entity }) => entity === ids[0])
  expect(later.filter(({ entity }) => entity === ids[0])).toHaveLength(1)
  const before = changes[0]?.at ?? ''
  expect(newest?.at.localeCompare(before)).toBe(1)
  expect(later.map(({ at }) => at)).toEqual(
    later
      .map(({ at }) => at)
      .sort()
      .reverse(),
  )

  expect((await read(`?id=${ids[1]}`)).map(({ entity }) => entity)).toEqual([ids[1]])
  expect(await read('?dataset=holders')).toEqual([])
  expect(await read(`?start=${newest?.at}`)).toEqual(later.slice(0, 1))
  expect(await read('?limit=1')).toEqual(later.slice(0, 1))
  expect((await sendRequest('?limit=1')).headers.get('x-total-count')).toBe(String(later.length))
  expect(await read(`?end=${newest?.at}`)).toEqual(later.slice(1))
  expect((await sendRequest(`?id=${'0'.repeat(24)}`)).status).toBe(404)
  expect((await sendRequest('?dataset=nothing')).status).toBe(400)
})

/** All pages, each up to the last time of the page before. */
async function readOn(limit: number, end: string): Promise<Change[]> {
  const page = await read(`?limit=${limit}&end=${end}`)
  const oldest = page.at(-1)
  return oldest === undefined ? [] : [...page, ...(await readOn(limit, oldest.at))]
}

it('GET /data/changes keeps changes of one time on one page, so that paging misses none, and counts them', async () => {
  const { tokens, daos, index } = pipeline.registry
  const entities = [
    0,
    index.key,
    ...tokens.slice(0, 3).map(({ key }) => key),
    ...daos.slice(0, 2).map(({ key }) => key),
  ]
  const [first, second] = [NOW - 2 * DAY_MS, NOW - DAY_MS]
  const change = (entity: number, changedAt: number) => ({
    ...{ dataset: 'prices', entity, job: 'prices-history' },
    ...{ begins_at: new Date(changedAt - DAY_MS).toISOString(), ends_at: new Date(changedAt).toISOString() },
    changed_at: new Date(changedAt).toISOString(),
  })
  // Changes of an entity that left the registry are neither returned nor counted.
  const gone = 1
  const times = [first, second, second + 1]
  const rows = times.flatMap((time) => [...entities, gone].map((entity) => change(entity, time)))
  await pipeline.database.db.insert({ table: 'history_changes', rows })
  const end = new Date(NOW - DAY_MS / 2).toISOString()
  const all = await read(`?end=${end}`)
  expect(all).toHaveLength(times.length * entities.length)
  expect(all.filter(({ entity }) => entity === null)).toHaveLength(times.length)
  for (const limit of [1, entities.length, entities.length + 1, 100]) expect(await readOn(limit, end)).toEqual(all)
  expect(await read(`?limit=1&end=${end}`)).toEqual(all.slice(0, entities.length))
  expect(await read(`?limit=${entities.length}&end=${end}`)).toEqual(all.slice(0, entities.length))
  const response = await sendRequest(`?limit=1&end=${end}`)
  expect(response.headers.get('x-total-count')).toBe(String(all.length))
})

it('GET /data/changes returns complete buckets, without those of the current schedule or computed from them', async () => {
  const { context, registry } = pipeline
  const { db } = context
  const toText = (at: number) => new Date(at).toISOString()
  const slot = Math.floor(NOW / SLOT_MS) * SLOT_MS
  const old = slot - 12 * SLOT_MS
  // The prices of a slot were observed in the slot before, whose point is computed from them.
  const points = [slot, slot - SLOT_MS, old].map((at) => ({
    ...{ index_key: registry.index.key, created_at: toText(at), observed_at: toText(at + 100_000) },
  }))
  await noteChange({ db, now: () => NOW }, index, points)
  const sums = [TODAY, TODAY - DAY_MS].map((at) => ({ recorded_at: toText(at) }))
  await noteChange({ db, now: () => NOW }, marketCap, sums)
  const observed = [...(await read('?dataset=index')), ...(await read('?dataset=market-cap'))]
  expect(observed.map(({ dataset, from, to }) => [dataset, from, to])).toEqual([
    ['index', toText(old), toText(old + SLOT_MS)],
    ['market-cap', toText(TODAY - DAY_MS), toText(TODAY)],
  ])
  // The last prices of a day arrive after its end.
  await noteChange({ db, now: () => TODAY + DAY_MS + 5000 }, marketCap, sums.slice(0, 1))
  expect(await read('?dataset=market-cap')).toHaveLength(1)

  await announce(index.dataset, context, points.slice(2))
  const log = `${context.config.redis.prefix}:commit-log`
  const [newest] = await context.redis.xrevrange(log, '+', '-', 'COUNT', 1)
  expect(JSON.parse(newest?.[1][1] ?? '')).toMatchObject({ dataset: 'index', from: toText(old) })
})

it('GET /data/changes returns a new change after all earlier ones, before its coverage is recorded', async () => {
  const { db } = pipeline.database
  const ids = toSample(pipeline, { dataset: 'prices', provider: 'coinmarketcap' }).map(({ id }) => id)
  // ClickHouse's clock was ahead.
  const ahead = new Date(Date.now() + DAY_MS).toISOString()
  const gone = {
    dataset: 'prices',
    entity: 1,
    job: 'prices-history',
    begins_at: ahead,
    ends_at: ahead,
    changed_at: ahead,
  }
  await db.insert({ table: 'history_changes', rows: [gone] })
  const unavailable: Database = {
    ...db,
    insert: (insert) =>
      insert.table === 'history_changes' ? Promise.reject(new DataError('storage', 'away')) : db.insert(insert),
  }
  const { context } = pipeline
  const collectors = prices.connect(context).map(
    (collector): Collector => ({
      ...collector,
      collect: async (request) => {
        request.state.set('cursor', 'here')
        return collector.collect(request)
      },
    }),
  )
  const run = (through: Database) =>
    runJob(prices, collectors, { ...context, db: through }, { ...REPEATED, entities: ids.slice(0, 1) })
  const cursor = () => openState(db, prices.name, Date.now).get('cursor')
  await expect(run(unavailable)).rejects.toMatchObject({ code: 'storage' })
  expect(await cursor()).toBeUndefined()
  await run(db)
  expect(await cursor()).toBe('here')
  const [newest] = await read()
  expect(newest?.at.localeCompare(ahead)).toBe(1)
})
