import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import type { Job } from 'bullmq'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { createDatabase } from '../../shared/clickhouse.ts'
import { toBucketStart } from '../../shared/intervals.ts'
import { tracer } from '../../shared/spans.ts'
import { startTracing, type Tracing } from '../../shared/tracing.ts'
import tvl from '../../workers/jobs/tvl.ts'
import { createRunner } from '../../workers/runner.ts'
import { enqueueDue } from '../../workers/scheduler.ts'
import { sendJson, startProviderServer } from '../provider-server.ts'
import { createApiConfig, createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { startDoor } from '../support/clickhouse-door.ts'
import { type ArrivedSpan, startCollector } from '../support/collector.ts'
import { createPipeline, type Pipeline } from '../support/pipeline.ts'
import { silent } from '../support/silent.ts'

const SERVER = 2
const CLIENT = 3
const PRODUCER = 4
const CONSUMER = 5

let collector: Awaited<ReturnType<typeof startCollector>>
let tracing: Tracing
let pipeline: Pipeline
let door: Awaited<ReturnType<typeof startDoor>>
let api: TestApi
let broken: TestApi

beforeAll(async () => {
  collector = await startCollector()
  Object.assign(process.env, collector.env)
  tracing = await startTracing('dao-data-test', { tracing: { wanted: true } }, silent)
  pipeline = await createPipeline({ now: Date.now() })
  const { registry } = pipeline
  door = await startDoor(pipeline.config.clickhouse.url)
  const { readUser, readPassword } = createApiConfig().clickhouse
  const clickhouse = { ...pipeline.config.clickhouse, readUser, readPassword, url: door.url }
  const config = { ...pipeline.config, clickhouse }
  const commits = createHandFeed()
  api = await startApi({ config, registry, commits, db: createDatabase(clickhouse, 'read') })
  const away = { ...clickhouse, url: 'http://127.0.0.1:1' }
  broken = await startApi({ config, registry, commits, db: createDatabase(away, 'read') })
})

afterAll(async () => {
  await Promise.all([api?.close(), broken?.close(), door?.close(), pipeline?.close()])
  await tracing?.stop()
  await collector?.close()
})

/** The trace that a client's request belongs to. */
function createTrace(traceId: string, flags = '01') {
  return { traceId, headers: { traceparent: `00-${traceId}-00f067aa0ba902b7-${flags}` } }
}

const untilServed = (traceId: string) => collector.until((span) => span.kind === SERVER && span.traceId === traceId)
const ofTrace = ({ traceId }: ArrivedSpan) => collector.spans.filter((span) => span.traceId === traceId)

describe('a request', () => {
  it('goes on with the trace of its client, down to the query and the database server', async () => {
    const { traceId, headers } = createTrace('4bf92f3577b34da6a3ce929d0e0e4736')
    const response = await fetch(`${api.url}/data/tokens?limit=2`, { headers })
    await response.text()
    const served = await untilServed(traceId)
    expect(served).toMatchObject({ name: 'GET /data/tokens', parentSpanId: '00f067aa0ba902b7', failed: false })
    expect(served.service).toBe('dao-data-test')
    expect(served.attributes).toMatchObject({
      'http.request.method': 'GET',
      'http.route': '/data/tokens',
      'http.response.status_code': 200,
      'url.path': '/data/tokens',
      'url.query': 'limit=2',
      'url.scheme': 'http',
    })
    const [query] = collector.childrenOf(served)
    expect(query).toMatchObject({ kind: CLIENT, failed: false })
    expect(query?.attributes).toMatchObject({
      'db.system.name': 'clickhouse',
      'db.operation.name': 'SELECT',
      'db.namespace': pipeline.config.clickhouse.database,
      'db.query.summary': query?.name,
      'server.address': '127.0.0.1',
    })
    expect(query?.attributes['db.query.text']).toMatch(/^\s*(SELECT|WITH)/)
    expect(door.traces).toContain(`00-${traceId}-${query?.spanId}-01`)
  })

  it('makes no span where kept bytes answer it, and sends none that its client does not want sampled', async () => {
    const [first, kept, unwanted, last] = ['1', '2', '3', '4'].map((digit) => digit.repeat(32)) as [string, ...string[]]
    for (const [path, trace] of [
      ['/data/chains', createTrace(String(first))],
      ['/data/chains', createTrace(String(kept))],
      ['/data/categories', createTrace(String(unwanted), '00')],
      ['/data/daos?limit=1', createTrace(String(last))],
    ] as const) {
      await (await fetch(`${api.url}${path}`, { headers: trace.headers })).text()
    }
    await untilServed(String(last))
    const arrived = new Set(collector.spans.map(({ traceId }) => traceId))
    expect([first, kept, unwanted].map((id) => arrived.has(String(id)))).toEqual([true, false, false])
  })

  it('that a client got wrong is no failure, and its query is not shown', async () => {
    const { traceId, headers } = createTrace('5'.repeat(32))
    expect((await fetch(`${api.url}/data/tokens?api_key=hidden-secret`, { headers })).status).toBe(400)
    const served = await untilServed(traceId)
    expect(served).toMatchObject({ name: 'GET /data/tokens', failed: false, events: [] })
    expect(served.attributes['http.response.status_code']).toBe(400)
    expect(JSON.stringify(served)).not.toContain('hidden-secret')
  })

  it('that the database fails says so in both spans', async () => {
    const { traceId, headers } = createTrace('6'.repeat(32))
    expect((await fetch(`${broken.url}/data/tokens`, { headers })).status).toBe(503)
    const served = await untilServed(traceId)
    expect(served).toMatchObject({ failed: true, attributes: { 'error.type': '503', 'http.route': '/data/tokens' } })
    expect(served.events[0]?.attributes).toMatchObject({ 'exception.type': 'DataError' })
    const failed = collector.childrenOf(served).find((span) => span.kind === CLIENT)
    expect(failed).toMatchObject({ failed: true, attributes: { 'error.type': 'storage', 'server.port': 1 } })
  })

  it('of a long series has a span for each of its queries', async () => {
    const { traceId, headers } = createTrace('7'.repeat(32))
    const search = 'name=Uniswap&interval=5m&start=2024-05-06&end=2024-05-07'
    const response = await fetch(`${api.url}/data/tokens/historic-financial?${search}`, { headers })
    expect(response.status).toBe(200)
    await response.text()
    const served = await untilServed(traceId)
    const queries = collector.childrenOf(served)
    expect(queries.length).toBeGreaterThan(0)
    expect(queries.every(({ kind, failed }) => kind === CLIENT && !failed)).toBe(true)
  })
})

/** What a runner needs, with another provider of the protocols' value. */
function withProvider(baseUrl: string) {
  const { config } = pipeline.context
  const providers = { ...config.providers, defillama: { ...config.providers.defillama, baseUrl } }
  return { ...pipeline.context, config: { ...config, providers } }
}

describe('a job', () => {
  const run = async (context = pipeline.context) => {
    const queue = pipeline.queue('tvl')
    await queue.obliterate({ force: true })
    const runner = createRunner(tvl, context)
    const slot = toBucketStart(pipeline.clock.now, '1h')
    await queue.add('tvl', { kind: 'slot', slot }, { jobId: 'tvl-slot' })
    await Promise.race([once(runner, 'completed'), once(runner, 'failed')])
    await runner.close()
    return new Date(slot).toISOString()
  }

  it('is a trace from its queue down to the provider calls and the insert', async () => {
    const slot = await run()
    const job = await collector.until(({ kind, failed }) => kind === CONSUMER && !failed)
    expect(job).toMatchObject({ name: 'process tvl', parentSpanId: undefined })
    expect(job.attributes).toMatchObject({
      'messaging.system': 'bullmq',
      'messaging.destination.name': 'tvl',
      'messaging.message.id': 'tvl-slot',
      'dao_data.slot': slot,
      'dao_data.providers': ['defillama'],
      'dao_data.rows': expect.any(Number),
    })
    expect(ofTrace(job).every((span) => span === job || span.parentSpanId === job.spanId)).toBe(true)
    const call = collector.childrenOf(job).find((span) => 'http.request.method' in span.attributes)
    expect(call).toMatchObject({ kind: CLIENT, failed: false })
    expect(call?.attributes).toMatchObject({
      'dao_data.provider': 'defillama',
      'http.response.status_code': 200,
      'server.address': '127.0.0.1',
      'url.full': expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/\.\.\.\//),
    })
    const insert = collector.childrenOf(job).find((span) => span.attributes['db.operation.name'] === 'INSERT')
    expect(insert).toMatchObject({ name: 'insert into protocol_tvl', kind: CLIENT, failed: false })
  })

  it('that a provider fails says so in its span and in that of every attempt, and shows no key', async () => {
    const provider = await startProviderServer((_request, response) => sendJson(response, { error: 'down' }, 500))
    await run(withProvider(`${provider.baseUrl}/base-secret`))
    const job = await collector.until(({ kind, failed }) => kind === CONSUMER && failed)
    expect(job.attributes['error.type']).toBe('provider_unavailable')
    expect(job.events[0]?.attributes).toMatchObject({ 'exception.type': 'DataError' })
    const calls = collector.childrenOf(job).filter((span) => 'http.request.method' in span.attributes)
    expect(calls.map((call) => call.attributes['http.request.resend_count'])).toEqual([undefined, 1, 2, 3])
    expect(calls.every(({ failed, attributes }) => failed && attributes['error.type'] === '500')).toBe(true)
    expect(provider.requests.some(({ headers }) => 'traceparent' in headers)).toBe(false)
    expect(collector.text()).not.toContain('base-secret')
    await provider.close()
  })
})

describe('a slot', () => {
  it('is one trace from the scheduler on, whatever the number of attempts', async () => {
    const queue = pipeline.queue('tvl')
    await queue.obliterate({ force: true })
    const { redis, db, registry, config, log } = pipeline.context
    pipeline.clock.now += 3_600_000
    const now = () => pipeline.clock.now
    await enqueueDue({ job: tvl, queue }, { redis, db, registry, prefix: config.redis.prefix, log, now })
    const sent = await collector.until(({ name }) => name === 'send tvl')
    expect(sent).toMatchObject({ kind: PRODUCER, parentSpanId: undefined, failed: false })
    const failing = createRunner(tvl, withProvider('http://127.0.0.1:1'))
    const [job] = (await once(failing, 'failed')) as [Job]
    await failing.close()
    const runner = createRunner(tvl, pipeline.context)
    await once(runner, 'completed')
    await runner.close()
    await collector.until(({ parentSpanId, failed }) => parentSpanId === sent.spanId && !failed)
    const attempts = collector.childrenOf(sent)
    expect(attempts.map(({ name, failed }) => [name, failed])).toEqual([
      ['process tvl', true],
      ['process tvl', false],
    ])
    const ids = [sent, ...attempts].map((span) => span.attributes['messaging.message.id'])
    expect(new Set(ids)).toEqual(new Set([job.id]))
  })
})

describe('a statement', () => {
  /** Does something as one step of a trace, and returns the span of the statement with that name. */
  const step = async (name: string, work: () => Promise<unknown>) => {
    await tracer.startActiveSpan(`around ${name}`, async (around) => {
      await work()
      around.end()
    })
    return await collector.until((span) => span.name === name)
  }

  it('tells how many rows it had', async () => {
    const sql = 'SELECT number FROM numbers(3)'
    const span = await step('counted', () => pipeline.database.db.rows({ name: 'counted', sql, schema: z.unknown() }))
    expect(span.attributes).toMatchObject({ 'db.response.returned_rows': 3, 'db.query.text': sql })
  })

  it('that breaks off after its first rows is a failure, unless nobody wants the rest', async () => {
    const breaks = 'SELECT throwIf(number = 3000000) FROM numbers(4000000)'
    const broken = await step('breaks off', async () => {
      const stream = await pipeline.database.db.stream({ name: 'breaks off', sql: breaks })
      await expect(text(stream)).rejects.toThrow()
    })
    expect(broken.failed).toBe(true)
    const whole = { name: 'given up', sql: 'SELECT number FROM numbers(4000000)' }
    const given = await step('given up', async () => {
      const stream = await pipeline.database.db.stream(whole)
      await once(stream, 'readable')
      stream.destroy()
    })
    expect(given.failed).toBe(false)
  })

  it('that is refused says with which of the code of ClickHouse', async () => {
    const sql = 'SELECT * FROM no_such_table'
    const span = await step('refused', () =>
      expect(pipeline.database.db.command({ name: 'refused', sql })).rejects.toThrow(),
    )
    expect(span).toMatchObject({ failed: true, attributes: { 'db.response.status_code': '60' } })
  })

  it('outside of a request or job makes no trace', async () => {
    const sql = 'SELECT 1 AS one FORMAT JSONEachRow'
    const before = collector.spans.length
    expect(await text(await pipeline.database.db.stream({ name: 'alone', sql: 'SELECT 1 AS one' }))).toContain('1')
    await pipeline.database.db.command({ name: 'alone', sql })
    await (await fetch(`${api.url}/data/tokens?limit=3`, createTrace('8'.repeat(32)))).text()
    await untilServed('8'.repeat(32))
    expect(collector.spans.slice(before).some(({ name }) => name === 'alone')).toBe(false)
  })
})
