import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { DataError } from '../../shared/errors.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { jobs } from '../../workers/jobs/list.ts'
import type { Probe } from '../../workers/probe/finding.ts'
import { type ProbeOptions, probeProviders } from '../../workers/probe/probe.ts'
import { createRecorder } from '../../workers/probe/recording.ts'
import { isWrong, toDatasetTable, toReport } from '../../workers/probe/report.ts'
import { createTestConfig } from '../support/database.ts'
import { createPipeline, type Pipeline } from '../support/pipeline.ts'
import { createReplayed } from '../support/replayed.ts'
import { silent } from '../support/silent.ts'
import type { Fault } from '../upstream/faults.ts'
import { toStandInSettings } from '../upstream/settings.ts'

let pipeline: Pipeline
let folder: string
beforeAll(async () => {
  pipeline = await createPipeline({ registry: loadRegistry() })
  folder = mkdtempSync(join(tmpdir(), 'dao-data-recorded-'))
})
afterAll(async () => {
  await pipeline?.close()
  rmSync(folder, { recursive: true, force: true })
})
afterEach(() => pipeline.upstream.faults.clear())

function probe(options: Partial<ProbeOptions> = {}): Promise<Probe[]> {
  const { config, registry, db, now } = pipeline.context
  const signal = new AbortController().signal
  const own = {
    config,
    registry,
    db,
    now: now(),
    log: silent,
    isShort: false,
    timeoutMs: 150_000,
    backoffMs: 1,
    signal,
  }
  return probeProviders({ ...own, ...options })
}

/** With other settings than those of the healthy stand-in. */
const withSettings = (settings: Record<string, string>) =>
  createTestConfig({ ...toStandInSettings(pipeline.upstream.url), ...settings })

/** A response with another value in all members of a name. */
const member = (name: string, value: string | number | null): Fault => ({ kind: 'member', name, value })

const find = (probes: readonly Probe[], provider: string, dataset: string, requests = 'now') =>
  probes.find((one) => one.provider === provider && one.dataset === dataset && one.asked === requests)

describe('probeProviders with healthy providers', () => {
  let probes: Probe[]
  beforeAll(async () => {
    probes = await probe()
  })

  it('requests every dataset of each provider once', () => {
    const requestCount = jobs.filter(({ computedFrom }) => computedFrom.length === 0)
    const expected = requestCount.flatMap((job) => job.providers.map(({ name }) => `${name} ${job.name}`))
    const observed = probes
      .filter((one) => one.asked === 'now')
      .map(({ provider, dataset }) => `${provider} ${dataset}`)
    expect([...new Set(observed)].sort()).toEqual(expected.sort())
  })

  it('reports sample values, the remaining quota and the costs', () => {
    const report = toReport(probes)
    expect(report).toMatch(/^coinmarketcap +prices +now +works +1 +- +Uniswap +price [\d.]+, volume_24h [\d.]+$/m)
    expect(report).toMatch(/^x +twitter +now +works +1 +\d+ +Uniswap +followers \d+, following \d+$/m)
    expect(report).toMatch(/^ratings-file +ratings +now +not set up .* RATINGS_SOURCE is not set$/m)
    expect(report).toMatch(/^moralis +- +50 compute units a call/m)
    expect(report).toMatch(/^prices +coinmarketcap, then coingecko$/m)
    expect(report).toMatch(/^market-cap +computed from prices$/m)
  })

  it('reports only the index token, which needs stored prices, as failing', () => {
    expect(probes.filter(isWrong).map(({ dataset }) => dataset)).toEqual(['index-token'])
  })

  it('sends each provider one request in the short form', async () => {
    const short = await probe({ isShort: true })
    expect(new Set(short.map(({ provider }) => provider)).size).toBeGreaterThan(12)
    expect(short.every(({ asked: time }) => time === 'now')).toBe(true)
    expect(short.length).toBeLessThan(probes.length / 2 + 2)
  })
})

describe('probeProviders with one failing provider', () => {
  const html = 'expected JSON, received text/html'
  const troubles: [string, Fault, string, RegExp][] = [
    ['a rejected key', { kind: 'status', status: 401 }, 'refused', /status 401: .*API Key/],
    ['a plan without this endpoint', { kind: 'status', status: 403 }, 'refused', /status 403/],
    ['a key without a paid plan', { kind: 'status', status: 402 }, 'refused', /status 402/],
    ['a rate limit', { kind: 'status', status: 429, retryAfter: 120 }, 'unreached', /status 429/],
    ['a server error', { kind: 'status', status: 500 }, 'unreached', /status 500/],
    ['maintenance', { kind: 'status', status: 503, html: true }, 'unreached', /status 503/],
    ['a connection that is reset', { kind: 'reset' }, 'unreached', /the connection failed \(\w+\)/],
    ['a body that ends early', { kind: 'truncate' }, 'unreached', /the connection failed/],
    ['incomplete JSON', { kind: 'cut' }, 'malformed', /not JSON/],
    ['an unexpected shape', { kind: 'shape' }, 'malformed', /quotes\/latest: .*expected array, received undefined/],
    ['a sign-in page', { kind: 'content-type' }, 'malformed', new RegExp(html)],
    ['an empty answer', { kind: 'empty' }, 'nothing', /without any data/],
    ['an implausible time', member('last_updated', '1970-01-01T00:00:00Z'), 'malformed', /observed_at: earlier than/],
    [
      'a time of another day',
      member('last_updated', '2024-05-03T07:00:00Z'),
      'malformed',
      /newest value is of 2024-05-03/,
    ],
    ['an implausible size', member('price', 1e40), 'malformed', /price: Too big/],
    ['a number with a unit', member('price', '7.25 USD'), 'malformed', /price: .*expected number, received string/],
  ]

  it.each(troubles)(
    'reports %s with its reason and the other providers as working',
    async (_, fault, finding, reason) => {
      pipeline.upstream.faults.set('coinmarketcap', fault)
      const probes = await probe({ isShort: true })
      const foundProbe = find(probes, 'coinmarketcap', 'prices')
      expect(foundProbe).toMatchObject({ finding, reason: expect.stringMatching(reason), sample: undefined })
      expect(isWrong(foundProbe as Probe)).toBe(true)
      // The results of other providers are unchanged. The report names the provider that collects instead.
      expect(
        probes
          .filter((one) => one.provider !== 'coinmarketcap')
          .filter(isWrong)
          .map(({ dataset }) => dataset),
      ).toEqual(['index-token'])
    },
  )

  it('reports a time limit when a provider sends nothing', async () => {
    pipeline.upstream.faults.set('coinmarketcap', { kind: 'timeout' })
    // The limit is short for every provider, so a busy machine may miss it for others: only the silent one is judged.
    const probes = await probe({ config: withSettings({ PROVIDER_TIMEOUT_MS: '500' }), isShort: true })
    expect(find(probes, 'coinmarketcap', 'prices')).toMatchObject({
      finding: 'unreached',
      reason: expect.stringMatching(/no whole answer within 500 ms/),
    })
  })

  it('reports a missing key as not configured', async () => {
    const probes = await probe({
      config: createTestConfig({ ...toStandInSettings(pipeline.upstream.url), MORALIS_API_KEY: '' }),
    })
    const foundProbe = find(probes, 'moralis', 'holders')
    expect(foundProbe).toMatchObject({
      finding: 'unconfigured',
      reason: 'moralis: MORALIS_API_KEY is not set',
      requests: 0,
    })
    expect(toDatasetTable(probes)).toMatch(/^holders +ethplorer$/m)
  })

  it('names the dataset that an unreachable host alone serves', async () => {
    const probes = await probe({ config: withSettings({ SNAPSHOT_BASE_URL: 'http://127.0.0.1:9' }) })
    expect(find(probes, 'snapshot', 'governance')).toMatchObject({ finding: 'unreached' })
    expect(toDatasetTable(probes)).toMatch(/^governance +nobody: snapshot .*the connection failed/m)
  })

  it('reports history that is coarser or limited in time', async () => {
    const { log, ...options } = { log: silent, now: Date.parse('2024-05-06T07:05:09Z') }
    const probes = await probe({ ...options, config: withSettings({ COINGECKO_API_KEY: '' }) })
    expect(find(probes, 'coingecko', 'prices', 'oldest')?.finding).toMatch(/works|unconfigured|coarser/)
  })
})

it('probeProviders redacts a key that a node repeats in its error message', async () => {
  const key = 'path-key-0123456789abcdef'
  const parrot = createServer((request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(
      JSON.stringify({ jsonrpc: '2.0', id: 0, error: { code: -32000, message: `no such project ${request.url}` } }),
    )
  })
  await once(parrot.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => void parrot.close())
  const { port } = parrot.address() as AddressInfo
  const probes = await probe({ config: withSettings({ RPC_URLS: `ethereum=http://127.0.0.1:${port}/v2/${key}` }) })
  expect(find(probes, 'ethereum', 'dex-trades')?.reason).toContain('no such project /v2/[redacted]')
  expect(JSON.stringify(probes)).not.toContain(key)
})

describe('createRecorder', () => {
  it('records every answer without keys, and a replay gives the same report', async () => {
    const secret = 'a-key-that-nobody-may-see'
    const keys = Object.fromEntries(
      ['COINMARKETCAP', 'COINGECKO', 'MORALIS', 'ETHPLORER', 'GOLDRUSH'].map((name) => [`${name}_API_KEY`, secret]),
    )
    const config = withSettings({ ...keys, X_BEARER_TOKEN: secret, TELEGRAM_BOT_TOKEN: secret })
    const now = pipeline.context.now()
    const observed = await probe({ config, record: createRecorder(folder, config, now) })
    const texts = readdirSync(folder).map((file) => readFileSync(join(folder, file), 'utf8'))
    expect(texts.length).toBeGreaterThan(40)
    expect(texts.filter((text) => text.includes(secret))).toEqual([])
    const { probes, unknown } = await replay(folder)
    expect(unknown).toEqual([])
    // As texts: what holds a hundred holders is long to compare.
    expect(probes.map(toText)).toEqual(observed.map(toText))
  })

  it('throws before the first request when the folder cannot be written', () => {
    expect(() => createRecorder('/proc/nope', pipeline.config, 0)).toThrow(DataError)
  })

  it('throws when the folder is not empty', () => {
    expect(() => createRecorder(folder, pipeline.config, 0)).toThrow(`--record: ${folder} is not empty`)
  })
})

/** Headers are not recorded. */
const toText = ({ quotaLeft: _, ...probe }: Probe) => JSON.stringify(probe).slice(0, 400)

async function replay(recorded: string) {
  const replayed = await createReplayed(recorded)
  try {
    const redacted = '[redacted]'
    const config = createTestConfig({ ...toStandInSettings(replayed.url), TELEGRAM_BOT_TOKEN: redacted })
    const probes = await probe({ config, now: replayed.now })
    return { probes, unknown: replayed.unknown }
  } finally {
    await replayed.close()
  }
}

const recordings = process.env.PROVIDER_RECORDINGS
describe.runIf(recordings !== undefined)('the recordings of PROVIDER_RECORDINGS', () => {
  it('have the expected shape', async () => {
    const { probes } = await replay(recordings ?? '')
    expect(probes.filter(({ finding }) => finding === 'malformed')).toEqual([])
  })
})
