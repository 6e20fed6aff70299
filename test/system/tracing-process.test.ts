import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { toBucketStart } from '../../shared/intervals.ts'
import { toProgram, untilReady } from '../../tools/children.ts'
import { type Collector, KIND, startCollector } from '../support/collector.ts'
import { createPipeline, type Pipeline } from '../support/pipeline.ts'
import { toStoreSettings } from '../support/store-settings.ts'
import { untilHourIsYoung } from '../support/young-hour.ts'

const ROOT = join(import.meta.dirname, '../..')
const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736'
const TRACEPARENT = `00-${TRACE_ID}-00f067aa0ba902b7-01`

let collector: Collector
beforeEach(async () => {
  collector = await startCollector()
})
afterEach(async () => {
  await collector.close()
})

type LogLine = Record<string, unknown>

/** Starts a process of the system; `stop` ends it and returns its exit code and log lines. */
async function start(file: string, settings: Record<string, string>) {
  const { CLICKHOUSE_READ_USER = 'reader' } = settings
  const child = spawn(process.execPath, toProgram(join(ROOT, file)), {
    env: {
      ...process.env,
      ...{ API_PORT: '0', API_OPS_PORT: '0', WORKER_OPS_PORT: '0', LOG_LEVEL: 'info' },
      ...settings,
      CLICKHOUSE_READ_USER,
    },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    detached: true,
  })
  const exited = once(child, 'exit')
  const written = text(child.stderr as Readable)
  const stop = async () => {
    child.kill('SIGTERM')
    const [code] = await exited
    const lines = (await written).split('\n').filter((line) => line.startsWith('{'))
    return { code: code as number | null, lines: lines.map((line) => JSON.parse(line) as LogLine) }
  }
  const facts = await untilReady({ name: file, process: child })
  return { url: String(facts.url), stop }
}

/** An API without available stores. */
const startApi = (settings: Record<string, string>) =>
  start('api/main.ts', { CLICKHOUSE_URL: 'http://127.0.0.1:1', REDIS_URL: 'redis://127.0.0.1:1', ...settings })

const target = async (url: string) =>
  (await fetch(`${url}/data/chains`, { headers: { traceparent: TRACEPARENT } })).status

describe('API process with tracing', () => {
  it('exports pending spans before it exits, and only traces', async () => {
    const api = await startApi({ ...collector.env, OTEL_BSP_SCHEDULE_DELAY: '600000' })
    const response = await fetch(`${api.url}/data/categories`, { headers: { traceparent: TRACEPARENT } })
    expect(response.status).toBe(200)
    expect(collector.spans).toEqual([])
    expect((await api.stop()).code).toBe(0)
    expect(collector.spans.map(({ name, traceId, service }) => [name, traceId, service])).toEqual([
      ['GET /data/categories', TRACE_ID, 'dao-data-api'],
    ])
    expect(collector.requests.map(({ url }) => url.pathname)).toEqual(['/v1/traces'])
  })

  it('uses the service name of the environment', async () => {
    const api = await startApi({ ...collector.env, OTEL_SERVICE_NAME: 'named' })
    await fetch(`${api.url}/nowhere`)
    await api.stop()
    expect(collector.spans.map(({ name, service }) => [name, service])).toEqual([['GET', 'named']])
  })

  it('serves and exits normally if the collector is unavailable, and logs it once', async () => {
    const silent = createServer().listen(0, '127.0.0.1')
    await once(silent, 'listening')
    const { port } = silent.address() as AddressInfo
    // Longer than a stopping process may take: the process must not wait for its exporter.
    const patient = { OTEL_EXPORTER_OTLP_TIMEOUT: '90000', OTEL_BSP_EXPORT_TIMEOUT: '90000' }
    for (const endpoint of ['http://127.0.0.1:1', `http://127.0.0.1:${port}`]) {
      const api = await startApi({ ...collector.env, ...patient, OTEL_EXPORTER_OTLP_ENDPOINT: endpoint })
      for (let times = 0; times < 3; times++) expect(await target(api.url)).toBe(200)
      const { code, lines } = await api.stop()
      expect(code).toBe(0)
      expect(lines.filter(({ msg }) => String(msg).startsWith('trace export failed'))).toHaveLength(1)
    }
    silent.close()
  })

  it('logs the trace id of a request', async () => {
    const api = await startApi(collector.env)
    await fetch(`${api.url}/data/tokens`, { headers: { traceparent: TRACEPARENT } })
    const served = await collector.until(({ kind }) => kind === KIND.server)
    const { lines } = await api.stop()
    const failed = lines.filter(({ msg }) => msg === 'failed')
    expect(failed.map(({ trace_id, span_id }) => [trace_id, span_id])).toEqual([[TRACE_ID, served.spanId]])
    expect(lines.find(({ msg }) => msg === 'API started')).not.toHaveProperty('trace_id')
  })

  it('loads and exports nothing if tracing is off', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'dao-data-loaded-'))
    const loaded = async (settings: Record<string, string>) => {
      // V8's coverage reports name every module that a process loaded.
      const api = await startApi({ ...settings, NODE_V8_COVERAGE: dir })
      await target(api.url)
      await api.stop()
      const reports = readdirSync(dir).map((name) => readFileSync(join(dir, name), 'utf8'))
      for (const name of readdirSync(dir)) rmSync(join(dir, name))
      return ['api', 'sdk-trace-node'].filter((name) =>
        reports.some((report) => report.includes(`@opentelemetry/${name}/`)),
      )
    }
    expect(await loaded(collector.env)).toEqual(['api', 'sdk-trace-node'])
    const sent = collector.requests.length
    expect(await loaded({})).toEqual(['api'])
    expect(await loaded({ ...collector.env, OTEL_SDK_DISABLED: 'true' })).toEqual(['api'])
    expect(collector.requests.length).toBe(sent)
    rmSync(dir, { recursive: true })
  })
})

describe('worker process with tracing', () => {
  let pipeline: Pipeline
  beforeAll(async () => {
    await untilHourIsYoung()
    pipeline = await createPipeline({ now: Date.now() })
  })
  afterAll(async () => {
    await pipeline?.close()
  })

  it('logs the trace id of a job', async () => {
    const worker = await start('workers/programs/worker.ts', {
      ...collector.env,
      ...toStoreSettings(pipeline.config),
      WORKER_QUEUES: 'tvl',
      DEFILLAMA_BASE_URL: `${pipeline.upstream.url}/defillama`,
    })
    const slot = toBucketStart(pipeline.clock.now, '1h')
    await pipeline.queue('tvl').add('tvl', { kind: 'slot', slot }, { jobId: 'slot' })
    const job = await collector.until(({ name }) => name === 'process tvl')
    const { code, lines } = await worker.stop()
    expect([code, job.service]).toEqual([0, 'dao-data-worker'])
    const done = lines.filter(({ msg }) => msg === 'done')
    expect(done.map(({ trace_id, span_id }) => [trace_id, span_id])).toEqual([[job.traceId, job.spanId]])
  })
})
