import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import type { Job } from 'bullmq'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { toBucketStart } from '../../shared/intervals.ts'
import { tracer } from '../../shared/telemetry/spans.ts'
import tvl from '../../workers/jobs/tvl.ts'
import { createRunner } from '../../workers/run/runner.ts'
import { enqueueDue } from '../../workers/schedule/due-slots.ts'
import { sendJson, startProviderServer } from '../provider-server.ts'
import { type Collector, KIND } from '../support/collector.ts'
import { createPipeline, type Pipeline } from '../support/pipeline.ts'
import { traceThisProcess } from '../support/traced.ts'

let collector: Collector
let pipeline: Pipeline

beforeAll(async () => {
  collector = await traceThisProcess()
  pipeline = await createPipeline({ now: Date.now() })
})

afterAll(async () => {
  await pipeline?.close()
  await collector?.close()
})

/** A runner's context with another TVL provider. */
function withProvider(baseUrl: string) {
  const { config } = pipeline.context
  const providers = { ...config.providers, defillama: { ...config.providers.defillama, baseUrl } }
  return { ...pipeline.context, config: { ...config, providers } }
}

describe('trace of a job', () => {
  const run = async (context = pipeline.context) => {
    const queue = pipeline.queue('tvl')
    await queue.obliterate({ force: true })
    const runner = createRunner(tvl, context)
    const slot = toBucketStart(pipeline.clock.now, '1h')
    await queue.add('tvl', { kind: 'slot', slot, again: true }, { jobId: 'tvl-slot' })
    await Promise.race([once(runner, 'completed'), once(runner, 'failed')])
    await runner.close()
    return new Date(slot).toISOString()
  }

  it('includes its queue, provider calls and insert', async () => {
    const slot = await run()
    const job = await collector.until(({ kind, failed }) => kind === KIND.consumer && !failed)
    expect(job).toMatchObject({ name: 'process tvl', parentSpanId: undefined })
    expect(job.attributes).toMatchObject({
      'messaging.system': 'bullmq',
      'messaging.destination.name': 'tvl',
      'messaging.message.id': 'tvl-slot',
      'dao_data.slot': slot,
      'dao_data.providers': ['defillama'],
      'dao_data.rows': expect.any(Number),
    })
    const full = collector.spans.filter(({ traceId }) => traceId === job.traceId)
    expect(full.every((span) => span === job || span.parentSpanId === job.spanId)).toBe(true)
    const call = collector.childrenOf(job).find((span) => 'http.request.method' in span.attributes)
    expect(call).toMatchObject({ kind: KIND.client, failed: false })
    expect(call?.attributes).toMatchObject({
      'dao_data.provider': 'defillama',
      'http.response.status_code': 200,
      'server.address': '127.0.0.1',
      'url.full': expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/\.\.\.\//),
    })
    const insert = collector.childrenOf(job).find(({ name }) => name === 'insert into protocol_tvl')
    expect(insert).toMatchObject({ kind: KIND.client, failed: false })
  })

  it('marks a provider failure in the spans of the job and of every attempt, without a key', async () => {
    const provider = await startProviderServer((_request, response) => sendJson(response, { error: 'down' }, 500))
    await run(withProvider(`${provider.baseUrl}/base-secret`))
    const job = await collector.until(({ kind, failed }) => kind === KIND.consumer && failed)
    expect(job.attributes['error.type']).toBe('provider_unavailable')
    expect(job.events[0]?.attributes).toMatchObject({ 'exception.type': 'PartialFailureError' })
    const calls = collector.childrenOf(job).filter((span) => 'http.request.method' in span.attributes)
    expect(calls.map((call) => call.attributes['http.request.resend_count'])).toEqual([undefined, 1, 2, 3])
    expect(calls.every(({ failed, attributes }) => failed && attributes['error.type'] === '500')).toBe(true)
    expect(provider.requests.some(({ headers }) => 'traceparent' in headers)).toBe(false)
    expect(collector.text()).not.toContain('base-secret')
    await provider.close()
  })
})

describe('trace of a slot', () => {
  it('starts at the scheduler and includes every attempt', async () => {
    const queue = pipeline.queue('tvl')
    await queue.obliterate({ force: true })
    const { redis, db, registry, config, log } = pipeline.context
    pipeline.clock.now += 3_600_000
    const now = () => pipeline.clock.now
    await enqueueDue(
      { job: tvl, queues: pipeline.queues('tvl') },
      { redis, db, registry, prefix: config.redis.prefix, log, now },
    )
    const sent = await collector.until(({ name }) => name === 'send tvl')
    expect(sent).toMatchObject({ kind: KIND.producer, parentSpanId: undefined, failed: false })
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

describe('span of a statement', () => {
  /** Runs a function as a step of a trace, and returns the span of the statement with that name. */
  const step = async (name: string, work: () => Promise<unknown>) => {
    await tracer.startActiveSpan(`around ${name}`, async (around) => {
      await work()
      around.end()
    })
    return await collector.until((span) => span.name === name)
  }

  it('has the number of rows', async () => {
    const sql = 'SELECT number FROM numbers(3)'
    const span = await step('counted', () => pipeline.database.db.rows({ name: 'counted', sql, schema: z.unknown() }))
    expect(span.attributes).toMatchObject({ 'db.response.returned_rows': 3, 'db.query.text': sql })
  })

  it('is failed if the result breaks off, unless its reader stopped', async () => {
    const breaks = 'SELECT throwIf(number = 3000000) FROM numbers(4000000)'
    const broken = await step('breaks off', async () => {
      const stream = await pipeline.database.db.stream({ name: 'breaks off', sql: breaks })
      await expect(text(stream)).rejects.toThrow()
    })
    expect(broken.failed).toBe(true)
    const full = { name: 'given up', sql: 'SELECT number FROM numbers(4000000)' }
    const input = await step('given up', async () => {
      const stream = await pipeline.database.db.stream(full)
      await once(stream, 'readable')
      stream.destroy()
    })
    expect(input.failed).toBe(false)
  })

  it("has ClickHouse's error code if it is rejected", async () => {
    const sql = 'SELECT * FROM no_such_table'
    const span = await step('refused', () =>
      expect(pipeline.database.db.command({ name: 'refused', sql })).rejects.toThrow(),
    )
    expect(span).toMatchObject({ failed: true, attributes: { 'db.response.status_code': '60' } })
  })

  it('does not exist outside a request or job', async () => {
    const sql = 'SELECT 1 AS one FORMAT JSONEachRow'
    const before = collector.spans.length
    expect(await text(await pipeline.database.db.stream({ name: 'alone', sql: 'SELECT 1 AS one' }))).toContain('1')
    await pipeline.database.db.command({ name: 'alone', sql })
    await step('inside', () => pipeline.database.db.command({ name: 'inside', sql }))
    expect(collector.spans.slice(before).some(({ name }) => name === 'alone')).toBe(false)
  })
})
