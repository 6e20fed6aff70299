import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { z } from 'zod'
import { addCoverage } from '../../shared/ledger/tables.ts'
import { toProgram } from '../../tools/children.ts'
import discord from '../../workers/jobs/discord.ts'
import prices from '../../workers/jobs/prices.ts'
import { runJob } from '../../workers/run/runner.ts'
import { createPipeline, type Pipeline } from '../support/pipeline.ts'
import { toStoreSettings } from '../support/store-settings.ts'

let pipeline: Pipeline
let ids: readonly string[]
beforeAll(async () => {
  pipeline = await createPipeline({ now: Date.parse('2024-05-06T07:05:09Z') })
  const { compositions } = pipeline.registry.index
  ids = [...new Set(compositions.flatMap(({ elements }) => elements.map(({ token }) => token.id)))]
  const day = { from: Date.parse('2024-05-01'), to: Date.parse('2024-05-02'), interval: '5m' }
  const payload = { kind: 'range', ...day, entities: ids }
  await runJob(prices, prices.connect(pipeline.context), pipeline.context, payload)
})
afterAll(() => pipeline?.close())

/** Stored buckets of prices, according to the coverage. */
async function readStored(): Promise<number> {
  const [row] = await pipeline.database.db.rows({
    name: 'stored-buckets',
    sql: `SELECT sum(n) AS buckets FROM
(SELECT entity, bitmapCardinality(groupBitmapMergeState(buckets)) AS n FROM coverage WHERE dataset = 'prices' AND state = 'stored' GROUP BY entity)`,
    schema: z.object({ buckets: z.number() }),
  })
  return Number(row?.buckets)
}

/** The id of the last change event of prices. */
async function readCommit(): Promise<string | undefined> {
  const [row] = await pipeline.database.db.rows({
    name: 'last-commit',
    sql: "SELECT value FROM job_state FINAL WHERE job = 'commits' AND name = 'prices'",
    schema: z.object({ value: z.string() }),
  })
  return row?.value
}

function recount(...args: string[]) {
  const file = join(import.meta.dirname, '../../workers/commands/recount-coverage.ts')
  const { status, stdout, stderr } = spawnSync(process.execPath, [...toProgram(file), 'recount', ...args], {
    env: { ...process.env, ...toStoreSettings(pipeline.config) },
    encoding: 'utf8',
  })
  return { status, stdout, stderr }
}

it('npm run coverage reports buckets without rows, and removes them with --repair', async () => {
  const before = await readStored()
  expect(recount('prices')).toMatchObject({ status: 0 })
  const committed = await readCommit()
  await pipeline.database.db.command({
    name: 'lose',
    sql: `DELETE FROM token_prices WHERE observed_at >= '2024-05-01 03:00:00' AND observed_at < '2024-05-01 04:00:00'`,
  })
  expect(recount('prices')).toMatchObject({ status: 3, stdout: expect.stringMatching(/^prices +0 +[1-9]\d+$/m) })
  expect(await readCommit()).toBe(committed)
  expect(recount('prices', '--repair')).toMatchObject({ status: 0, stdout: expect.stringContaining('taken out') })
  // The change event invalidates cached responses that contain coverage.
  expect(await readCommit()).not.toBe(committed)
  expect(await readStored()).toBe(before - 12 * ids.length)
  expect(recount('prices')).toMatchObject({ status: 0 })
  expect(recount('governance')).toMatchObject({ status: 0, stdout: expect.stringContaining('rows cover only a part') })
  expect(recount('weather')).toMatchObject({ status: 1 })
})

it('npm run coverage keeps buckets that cannot be collected again, unless a separate option removes them', async () => {
  const bucket = Date.parse('2024-05-05') / 86_400_000
  const report = {
    entity: 7,
    state: 'stored',
    provider: 'discord',
    seconds: 86_400,
    first: bucket,
    last: bucket,
  } as const
  await addCoverage(pipeline.database.db, discord.dataset, [report])
  expect(recount('discord', '--repair')).toMatchObject({
    status: 3,
    stderr: expect.stringContaining('discord: 1 buckets without a row stay'),
  })
  expect(recount('discord', '--repair-lost')).toMatchObject({ status: 0, stdout: expect.stringContaining('taken out') })
  expect(recount('discord')).toMatchObject({ status: 0 })
})
