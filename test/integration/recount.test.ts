import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { datasets } from '../../shared/datasets/list.ts'
import { addFromRows } from '../../shared/ledger/recount.ts'
import { addCoverage } from '../../shared/ledger/tables.ts'
import { findUnfounded } from '../../shared/ledger/unfounded.ts'
import type { Job } from '../../workers/job/define-job.ts'
import { jobs } from '../../workers/jobs/list.ts'
import { PartialFailureError, runJob } from '../../workers/run/runner.ts'
import { createPipeline, type Pipeline } from '../support/pipeline.ts'

const NOW = Date.parse('2024-05-06T07:05:09Z')
const HOUR = 3_600_000

let pipeline: Pipeline
const toJob = (name: string) => {
  const job = jobs.find((one) => one.name === name)
  if (job === undefined) throw new Error(`there is no job ${name}`)
  return job
}
const run = (job: Job, payload: object) => runJob(job, job.connect(pipeline.context), pipeline.context, payload)
const range = (from: string, to: string, interval: string, entities?: string[]) => ({
  ...{ kind: 'range', from: Date.parse(from), to: Date.parse(to), interval },
  ...(entities === undefined ? {} : { entities }),
})
beforeAll(async () => {
  pipeline = await createPipeline({ now: NOW, settings: { MORALIS_API_KEY: '' } })
  const { compositions } = pipeline.registry.index
  const ids = [...new Set(compositions.flatMap(({ elements }) => elements.map(({ token }) => token.id)))]
  await run(toJob('prices'), range('2023-12-30', '2024-01-04', '1d', ids))
  await run(toJob('prices'), range('2024-05-01', '2024-05-03', '5m', ids))
  await run(toJob('prices'), range('2024-04-28', '2024-05-01', '1h', ids))
  await run(toJob('tvl'), range('2024-04-01', '2024-05-01', '1d'))
  await run(toJob('market-cap'), range('2024-01-01', '2024-05-04', '1d'))
  await run(toJob('index'), range('2024-05-01', '2024-05-02', '5m'))
  for (const name of ['prices', 'tvl', 'twitter', 'governance']) {
    const slot = Math.floor(NOW / 300_000) * 300_000
    await run(toJob(name), {
      kind: 'slot',
      slot: name === 'twitter' ? Date.parse('2024-05-06') : name === 'prices' ? slot : slot - (slot % HOUR),
    })
  }
  const midnight = Date.parse('2024-05-02T00:00:00Z')
  for (const at of [-300_000, 0, 300_000]) {
    pipeline.clock.now = midnight + at + 20_000
    await run(toJob('index-token'), { kind: 'slot', slot: midnight + at })
  }
  for (const at of [0, 1, 2, 12, 13]) {
    const slot = Date.parse('2024-05-05T12:00:00Z') + at * HOUR
    pipeline.clock.now = slot + 20_000
    // Tokens of other chains have no provider without a key: the test uses the stored ones.
    await run(toJob('holders'), { kind: 'slot', slot }).catch((error) =>
      expect(error).toBeInstanceOf(PartialFailureError),
    )
  }
  pipeline.clock.now = NOW
})
afterAll(() => pipeline?.close())

const counts = z.object({ dataset: z.string(), buckets: z.number() })

/** Number of stored buckets, by dataset. */
async function readStored(): Promise<ReadonlyMap<string, number>> {
  const rows = await pipeline.database.db.rows({
    name: 'stored-buckets',
    sql: `SELECT dataset, sum(n) AS buckets FROM
(SELECT dataset, entity, bitmapCardinality(groupBitmapMergeState(buckets)) AS n FROM coverage WHERE state = 'stored' GROUP BY dataset, entity)
GROUP BY dataset ORDER BY dataset`,
    schema: counts,
  })
  return new Map(rows.map(({ dataset, buckets }) => [dataset, buckets]))
}

describe('coverage check against stored rows', () => {
  it('finds no difference after a collection', async () => {
    const before = await readStored()
    expect([...before.keys()]).toEqual(
      expect.arrayContaining(['holders', 'index', 'index-token', 'market-cap', 'prices', 'tvl', 'twitter']),
    )
    for (const dataset of datasets) {
      expect([dataset.name, await findUnfounded(pipeline.database.db, dataset)]).toEqual([dataset.name, []])
      expect([dataset.name, await addFromRows(pipeline.database.db, dataset, NOW)]).toEqual([dataset.name, 0])
    }
    expect(await readStored()).toEqual(before)
  })

  it('restores lost coverage', async () => {
    const before = await readStored()
    await pipeline.database.db.command({ name: 'lose', sql: 'TRUNCATE TABLE coverage' })
    for (const dataset of datasets) await addFromRows(pipeline.database.db, dataset, NOW)
    const after = await readStored()
    for (const [name, buckets] of before) {
      if (name === 'governance') continue
      // The step of a day with one live slot or a few is unknown: a longer one is assumed.
      const existing = Number(after.get(name))
      expect([name, existing >= buckets]).toEqual([name, true])
      if (['index', 'market-cap', 'twitter'].includes(name)) expect([name, existing]).toEqual([name, buckets])
    }
  })

  it('skips the past of a table that keeps only its newest rows, and finds later rows', async () => {
    const { db } = pipeline.database
    const { dataset } = toJob('daos')
    const day = (text: string) => Date.parse(text) / 86_400_000
    const link = (observed_at: string) => ({
      ...{ dao: 7, field: 'website', source: 'coingecko', value: 'https://dao.example' },
      observed_at,
    })
    const days = { entity: 7, state: 'stored', provider: 'coingecko', seconds: 86_400 } as const
    for (const at of ['2024-05-01', '2024-05-02', '2024-05-03']) {
      await db.insert({ table: 'dao_links', rows: [link(`${at}T00:00:00.000Z`)] })
      await addCoverage(db, dataset, [{ ...days, first: day(at), last: day(at) }])
    }
    await db.command({ name: 'merge', sql: 'OPTIMIZE TABLE dao_links FINAL' })
    expect(await findUnfounded(db, dataset)).toEqual([])
    await addCoverage(db, dataset, [{ ...days, first: day('2024-05-05'), last: day('2024-05-05') }])
    expect(await findUnfounded(db, dataset)).toEqual([{ ...days, first: day('2024-05-05'), last: day('2024-05-05') }])
  })

  it('finds the row of a week at any of its times', async () => {
    const { db } = pipeline.database
    const prices = toJob('prices')
    await run(prices, range('2023-11-06', '2023-12-04', '7d'))
    expect(await findUnfounded(db, prices.dataset)).toEqual([])
    expect(await addFromRows(db, prices.dataset, NOW)).toBe(0)
  })
})
