import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { DAY_MS, toBucketStart } from '../../shared/intervals.ts'
import type { JobPayload } from '../../shared/queue/queues.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { type RequestKey, readBodies, readRuns, type StoredAnswer, type StoredRun } from '../../shared/store/store.ts'
import { checkAll, RECORDINGS, toCheckReport } from '../../workers/commands/replay-check.ts'
import type { Job } from '../../workers/job/define-job.ts'
import { jobs } from '../../workers/jobs/list.ts'
import prices from '../../workers/jobs/prices.ts'
import { type BodyLine, openRecordings, readBody, writeFacts, writeRun } from '../../workers/run/recordings.ts'
import { toContext } from '../../workers/run/replay-check.ts'
import { decodeAnswers } from '../../workers/run/replay-decode.ts'
import { runJob } from '../../workers/run/runner.ts'
import { recordRegistry } from '../support/baseline.ts'
import { toPendingReport } from '../support/pending-report.ts'
import { createPipeline, type Pipeline } from '../support/pipeline.ts'
import { silent } from '../support/silent.ts'
import { toStandInSettings } from '../upstream/settings.ts'

const NOW = Date.parse('2024-05-06T07:05:09Z')
const ALWAYS = { from: 0, to: Date.UTC(2100, 0, 1) }
/** The entities of a recording, in this order. More would only make it longer. */
const NAMES = ['Uniswap', 'Compound']
/** Datasets of many rows: a DAO with few of them. */
const NAMES_OF: Readonly<Record<string, readonly string[]>> = {
  governance: ['Harvest Finance'],
  governors: ['Compound'],
  delegations: ['Compound'],
}
/** The address of the stand-in in recordings. */
const ADDRESS = 'http://stand-in'
/** The index token is valued with stored prices, and ratings are read from a file of the operator. */
const NOT_RECORDED: readonly string[] = ['index-token', 'ratings']

/** RECORD_ANSWERS=1 writes the project's recordings again, with the rows of today. */
const isRecording = process.env.RECORD_ANSWERS !== undefined

const collected = jobs.filter(({ computedFrom, name }) => computedFrom.length === 0 && !NOT_RECORDED.includes(name))

let folder: string
let set: string
let pipeline: Pipeline
beforeAll(async () => {
  folder = isRecording ? RECORDINGS : mkdtempSync(join(tmpdir(), 'dao-data-recordings-'))
  set = join(folder, 'stand-in')
  if (isRecording) rmSync(set, { recursive: true, force: true })
  mkdirSync(set, { recursive: true })
  recordRegistry(join(set, 'registry'))
  pipeline = await createPipeline({ registry: loadRegistry(join(set, 'registry')), now: NOW })
  const settings = toStandInSettings(ADDRESS)
  writeFacts(set, { about: 'Answers of the stand-in of all providers.', registry: 'registry', settings })
})
afterAll(async () => {
  await pipeline?.close()
  if (!isRecording) rmSync(folder, { recursive: true, force: true })
})

const listPayloads = (job: Job): readonly (readonly [string, JobPayload])[] => {
  const all = job.entities(pipeline.registry)
  const few = (NAMES_OF[job.name] ?? NAMES).flatMap((name) => all.find((entity) => entity.name === name) ?? [])
  const entities = (few.length > 0 ? few : all.slice(0, 1)).map(({ id }) => id)
  const slot = toBucketStart(NOW, job.cadence)
  const to = toBucketStart(NOW, '1d')
  const interval = job.history?.intervals.find((one) => one === '1h') ?? job.history?.intervals[0] ?? '1d'
  const range = { kind: 'range', from: to - 2 * DAY_MS, to, interval, entities } as const
  return [
    [`${job.name}-slot`, { kind: 'slot', slot, entities }],
    ...(job.history === undefined ? [] : [[`${job.name}-range`, range] as const]),
  ]
}

async function record(job: Job, name: string, payload: JobPayload): Promise<number> {
  const { context } = pipeline
  const earlier = new Set((await readRuns(context.db, job.dataset.name, ALWAYS)).map((one) => one.run))
  const { rows } = await runJob(job, job.connect(context), context, { ...payload, again: true }).catch(toPendingReport)
  const run = (await readRuns(context.db, job.dataset.name, ALWAYS)).find((one) => !earlier.has(one.run))
  if (run === undefined) throw new Error(`${name}: no run is stored`)
  const bodies = await readBodies(context.db, [...new Set(run.answers.map(({ hash }) => hash))])
  const toFixed = (text: string) => text.replaceAll(pipeline.upstream.url, ADDRESS)
  writeRun(
    set,
    name,
    { dataset: job.dataset.name, run: toRepeatable(run, new URL(pipeline.upstream.url).host) },
    [...bodies.values()].map(({ hash, body }) => ({ hash, body: toFixed(body) })),
  )
  return rows
}

/** Replaces what differs between two recordings. */
const toRepeatable = ({ answers, ...run }: StoredRun, host: string): StoredRun => ({
  ...run,
  ...{ run: '', decoder: '' },
  answers: answers.map((answer) => ({
    ...answer,
    host: answer.host === host ? new URL(ADDRESS).host : answer.host,
    receivedAt: run.collectedAt,
  })),
})

describe('recorded answers', () => {
  it('of every collected dataset are decoded without network and stores', async () => {
    const stored = new Map<string, number>()
    for (const job of collected)
      for (const [name, payload] of listPayloads(job)) stored.set(`stand-in/${name}`, await record(job, name, payload))
    const { recordings, skipped } = await checkAll({ datasets: [], folder, accepts: true })
    const accepted = { recordings: recordings.filter(({ name }) => name.startsWith('stand-in/')), skipped: [] }
    expect(skipped.filter((name) => name.startsWith('stand-in/'))).toEqual([])
    expect(Object.fromEntries(accepted.recordings.map(({ name, rows }) => [name, rows]))).toEqual(
      Object.fromEntries(stored),
    )
    expect(toCheckReport(accepted)).toMatch(/^\d+ recordings, \d+ rows: 0 added, 0 changed, 0 removed$/)
    const withRows = accepted.recordings.filter(({ rows }) => rows > 0).map(({ dataset }) => dataset.name)
    expect(new Set(withRows)).toEqual(new Set(collected.map(({ dataset }) => dataset.name)))
    expect(readdirSync(set).filter((file) => file.endsWith('.rows.jsonl'))).toHaveLength(accepted.recordings.length)
  })
})

const dataDir = resolve(process.env.UPSTREAM_DATA_DIR || '../shared/data')
const isAbsent = !existsSync(join(dataDir, 'INDEX.md'))
if (isAbsent) console.log(`recordings of real answers are not written: there are none in ${dataDir}`)

interface FileCase {
  readonly name: string
  readonly job: Job
  readonly collectedAt: number
  readonly payload: JobPayload
  /** Names of the entities. */
  readonly of: readonly string[]
  /** The body of each request whose path contains `path`. Other requests are refused. */
  readonly files: readonly { readonly path: string; readonly file: string; readonly at: (string | number)[] }[]
}

const CHARTS = 'coingecko-market_chart-2022-defi_etf'
const LISTED = Date.parse('2022-12-16T18:05:00Z')
const FEW = ['Uniswap', 'Aave', 'Maker', 'Balancer', 'Loopring', 'Synthetix']
const CASES: readonly FileCase[] = [
  {
    ...{ name: 'coinmarketcap-slot', job: prices, collectedAt: LISTED + 141_000, of: FEW },
    payload: { kind: 'slot', slot: LISTED },
    files: [{ path: '/quotes/latest', file: 'fixtures-coinmarketcap/listings_latest_2022-12-16.json', at: [] }],
  },
  {
    ...{ name: 'coingecko-range', job: prices, collectedAt: Date.parse('2022-12-01'), of: FEW },
    payload: { kind: 'range', from: Date.parse('2022-02-01'), to: Date.parse('2022-03-01'), interval: '1d' },
    files: ['uniswap', 'aave', 'maker', 'balancer', 'loopring', 'havven'].map((id) => ({
      ...{ path: `/coins/${id}/market_chart`, file: `${CHARTS}/${id}.json`, at: [] },
    })),
  },
]

const REFUSED: BodyLine = { hash: 'refused', body: '{}' }

/** Records the run that a job would do if the providers answered with these files. */
async function recordFiles(own: string, { name, job, collectedAt, payload, of, files }: FileCase): Promise<void> {
  const [opened] = openRecordings(folder, dataDir).filter((one) => one.name === 'recorded')
  if (opened === undefined) throw new Error('the set was not written')
  const context = toContext(opened, silent)
  const entities = job.entities(context.registry).filter((one) => of.includes(one.name))
  const lines = new Map<string, BodyLine>([[REFUSED.hash, REFUSED]])
  const answers: StoredAnswer[] = []
  const run: StoredRun = {
    ...{ run: '', job: job.name, from: collectedAt, to: collectedAt, collectedAt, decoder: '', state: {}, answers: [] },
    payload: { ...payload, entities: entities.map(({ id }) => id) },
    outcome: { rows: [], failures: [], refused: [], implausible: [] },
  }
  const source = {
    readBodies: async (hashes: readonly string[]) =>
      new Map(hashes.flatMap((one) => lines.get(one) ?? []).map((line) => [line.hash, readBody(line, dataDir)])),
    readLast: async ({ provider, method, host, path, query, sent }: RequestKey) => {
      const found = files.find((one) => path.includes(one.path))
      const line = found === undefined ? REFUSED : { hash: `${found.file}#${found.at.join('.')}`, ...found }
      if ('file' in line) lines.set(line.hash, { hash: line.hash, file: line.file, at: line.at })
      const status = found === undefined ? 403 : 200
      const stamp = { hash: line.hash, status, contentType: 'application/json', code: '', reason: '' }
      const request = { provider, method, host, path, query, sent }
      answers.push({ ...request, ...stamp, receivedAt: collectedAt, attempt: 1, bytes: 0, entities: [] })
      return stamp
    },
  }
  const { collected } = await decodeAnswers(job, run, context, source)
  const failures = collected.failures.map(({ provider, reason }) => ({ provider, reason: reason.message }))
  const done = { ...run, answers, outcome: { ...run.outcome, failures } }
  writeRun(own, name, { dataset: job.dataset.name, run: done }, [...lines.values()])
}

describe.skipIf(isAbsent)('recorded answers of the data folder', () => {
  it('are named by the recordings, whose accepted rows have hashes', async () => {
    const own = join(folder, 'recorded')
    if (isRecording) rmSync(own, { recursive: true, force: true })
    mkdirSync(own, { recursive: true })
    writeFacts(own, {
      ...{ about: 'Real answers, in the optional data folder.', registry: '../stand-in/registry', hasHashes: true },
      settings: { COINMARKETCAP_API_KEY: 'any', MORALIS_API_KEY: 'any' },
    })
    for (const one of CASES) await recordFiles(own, one)
    await checkAll({ datasets: [], folder, dataDir, accepts: true })
    const { recordings, skipped } = await checkAll({ datasets: [], folder, dataDir, accepts: false })
    const found = recordings.filter(({ name }) => name.startsWith('recorded/'))
    expect(found.map(({ name, differences, failure }) => ({ name, differences, failure }))).toEqual(
      CASES.map(({ name }) => ({ name: `recorded/${name}`, differences: [], failure: undefined })).sort((a, b) =>
        a.name < b.name ? -1 : 1,
      ),
    )
    expect(found.every(({ rows }) => rows > 0)).toBe(true)
    expect(skipped).toEqual([])
    const without = await checkAll({ datasets: [], folder, dataDir: folder, accepts: false })
    expect(without.skipped).toEqual(found.map(({ name }) => name))
  })
})
