import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { DAY_MS, toBucketStart } from '../../shared/intervals.ts'
import type { JobPayload } from '../../shared/queue/queues.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { readBodies, readRuns, type StoredRun } from '../../shared/store/store.ts'
import { checkAll, RECORDINGS, toCheckReport } from '../../workers/commands/replay-check.ts'
import type { Job } from '../../workers/job/define-job.ts'
import { jobs } from '../../workers/jobs/list.ts'
import { writeFacts, writeRun } from '../../workers/run/recordings.ts'
import { runJob } from '../../workers/run/runner.ts'
import { recordRegistry } from '../support/baseline.ts'
import { toPendingReport } from '../support/pending-report.ts'
import { createPipeline, type Pipeline } from '../support/pipeline.ts'
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

/** RECORD_ANSWERS=1 writes the project's recordings of the stand-in again, with the rows of today. */
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
    const accepted = await checkAll({ datasets: [], folder, accepts: true })
    expect(Object.fromEntries(accepted.recordings.map(({ name, rows }) => [name, rows]))).toEqual(
      Object.fromEntries(stored),
    )
    expect(toCheckReport(accepted)).toMatch(/^\d+ recordings, \d+ rows: 0 added, 0 changed, 0 removed$/)
    const withRows = accepted.recordings.filter(({ rows }) => rows > 0).map(({ dataset }) => dataset.name)
    expect(new Set(withRows)).toEqual(new Set(collected.map(({ dataset }) => dataset.name)))
    expect(readdirSync(set).filter((file) => file.endsWith('.rows.jsonl'))).toHaveLength(accepted.recordings.length)
  })
})
