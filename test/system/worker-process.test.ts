import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { toBucketStart } from '../../shared/intervals.ts'
import { createMetrics } from '../../shared/telemetry/metrics.ts'
import tvl from '../../workers/jobs/tvl.ts'
import { createWorkerMetrics } from '../../workers/monitoring/worker-metrics.ts'
import { createRunner } from '../../workers/run/runner.ts'
import { startProviderServer } from '../provider-server.ts'
import { createPipeline, type Pipeline } from '../support/pipeline.ts'
import { startProcess } from '../support/processes.ts'
import { untilHourIsYoung } from '../support/young-hour.ts'

/** A proxy before the stand-in that delays its first request until it is opened. */
async function createGate(upstream: string) {
  let requested: (() => void) | undefined
  let held: { url: URL; response: ServerResponse } | undefined
  const requestReceived = new Promise<void>((resolve) => {
    requested = resolve
  })
  const pass = async (url: URL, response: ServerResponse) => {
    const answer = await fetch(`${upstream}${url.pathname}${url.search}`)
    response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? '' })
    response.end(Buffer.from(await answer.arrayBuffer()))
  }
  const server = await startProviderServer((_request, response, url) => {
    if (held !== undefined) return void pass(url, response)
    held = { url, response }
    requested?.()
  })
  return { ...server, isAsked: requestReceived, open: () => held !== undefined && pass(held.url, held.response) }
}

let pipeline: Pipeline
let gate: Awaited<ReturnType<typeof createGate>>
beforeEach(async () => {
  await untilHourIsYoung()
  pipeline = await createPipeline({ now: Date.now() })
  gate = await createGate(`${pipeline.upstream.url}/defillama`)
})
afterEach(async () => {
  await gate.close()
  await pipeline.close()
})

const start = (settings: Record<string, string>) =>
  startProcess('worker', pipeline.config, {
    WORKER_QUEUES: 'tvl',
    DEFILLAMA_BASE_URL: gate.baseUrl,
    DEFILLAMA_REQUESTS_PER_MINUTE: '60000',
    ...settings,
  })

async function enqueue() {
  const queue = pipeline.queue('tvl')
  const slot = toBucketStart(pipeline.clock.now, '1h')
  await queue.add('tvl', { kind: 'slot', slot }, { jobId: 'slot' })
  return queue
}

async function countStored(): Promise<number | undefined> {
  const sql = 'SELECT count() AS rows FROM protocol_tvl FINAL'
  const [row] = await pipeline.database.db.rows({ name: 'stored', sql, schema: z.object({ rows: z.number() }) })
  return row?.rows
}

describe('worker that is stopped during a job', () => {
  it('returns the job to the queue at its time limit, and another worker completes it', async () => {
    const worker = await start({ WORKER_DRAIN_SECONDS: '0' })
    const queue = await enqueue()
    await gate.isAsked
    const exited = once(worker.process, 'exit')
    worker.process.kill('SIGTERM')
    expect(await exited).toEqual([0, null])
    const job = await queue.getJob('slot')
    expect([await job?.getState(), job?.attemptsMade, await countStored()]).toEqual(['waiting', 0, 0])

    const second = createRunner(tvl, pipeline.context)
    await once(second, 'completed')
    await second.close()
    expect(await countStored()).toBeGreaterThan(0)
  })

  it('does not start a returned job again', async () => {
    const returned = vi.fn()
    const metrics = { ...createWorkerMetrics(createMetrics('worker')), returned }
    const queue = await enqueue()
    const stopping = createRunner(tvl, { ...pipeline.context, metrics, handBack: AbortSignal.abort() })
    await vi.waitUntil(() => returned.mock.calls.length > 1, { timeout: 60_000 })
    await stopping.close()
    const job = await queue.getJob('slot')
    expect([await job?.getState(), job?.attemptsMade, await countStored()]).toEqual(['waiting', 0, 0])
  })

  it('completes the job within its time limit', async () => {
    const worker = await start({ WORKER_DRAIN_SECONDS: '20' })
    const queue = await enqueue()
    await gate.isAsked
    const exited = once(worker.process, 'exit')
    worker.process.kill('SIGTERM')
    gate.open()
    expect(await exited).toEqual([0, null])
    const job = await queue.getJob('slot')
    expect([await job?.getState(), await countStored()]).toEqual(['completed', job?.returnvalue.rows])
  })
})

describe('operations port of a worker', () => {
  it('reports jobs in metrics, and dependencies in /health/ready', async () => {
    const worker = await start({})
    const ready = await worker.get('/health/ready')
    expect([ready.status, await ready.json()]).toEqual([
      200,
      { status: 'ready', clickhouse: 'ok', redis: 'ok', queues: 'ok' },
    ])
    expect((await worker.get('/health/live')).status).toBe(200)
    expect((await worker.get('/elsewhere')).status).toBe(404)
    await enqueue()
    await gate.isAsked
    gate.open()
    const sample = (name: string, labels: string) => new RegExp(`^${name}\\{${labels},process="worker"\\} (\\S+)$`, 'm')
    // The process receives the completion event after all other clients.
    await expect
      .poll(worker.metrics)
      .toMatch(/^worker_jobs_total\{dataset="tvl",outcome="completed",process="worker"\} 1$/m)
    const metrics = await worker.metrics()
    const read = (name: string, labels: string) => Number(sample(name, labels).exec(metrics)?.[1])
    expect(read('worker_rows_inserted_total', 'dataset="tvl"')).toBe(await countStored())
    expect(read('provider_calls_total', 'provider="defillama",route="/protocols",outcome="ok"')).toBe(1)
    expect(metrics).toMatch(/^nodejs_eventloop_lag_seconds\{/m)
    await worker.stop()
  })
})
