import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { dailySumRow } from '../../shared/datasets/daily-sum.ts'
import { type DaoTreasuryRow, daoTreasury, daoTreasuryRow } from '../../shared/datasets/treasury.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { defineJob } from '../../workers/job/define-job.ts'
import treasuryValue from '../../workers/jobs/treasury-value.ts'
import { createRunner, runJob } from '../../workers/run/runner.ts'
import { createPipeline, type Pipeline } from '../support/pipeline.ts'
import { untilIdle } from '../support/until-idle.ts'

const DAY = 86_400_000
const TODAY = Date.parse('2024-05-06T00:00:00Z')

let pipeline: Pipeline
beforeAll(async () => {
  pipeline = await createPipeline({ registry: loadRegistry(), now: TODAY + 1000 })
})
afterAll(() => pipeline?.close())

const daos = () => pipeline.registry.daos.filter(({ live }) => live).slice(0, 30)

/** A month of treasuries; some DAOs lack days, and the last one's holdings have no price. */
function treasuries(): DaoTreasuryRow[] {
  return daos().flatMap((dao, rank, { length }) =>
    Array.from({ length: 31 }, (_, day) => day)
      .filter((day) => (rank + day) % 5 > 0)
      .map((day) => {
        const value = rank === length - 1 ? null : 1e6 * (rank + 1) + day / 7
        return daoTreasuryRow.parse({
          dao: dao.key,
          observed_at: new Date(TODAY - day * DAY).toISOString(),
          value_usd: value ?? 0,
          tokens: [{ symbol: 'ANY', quantity: 5, value_usd: value }],
          holdings: [],
          spam_count: null,
          source: 'test',
        })
      }),
  )
}

function sumByDay(rows: readonly DaoTreasuryRow[]) {
  const days = new Map<string, { value: number; count: number }>()
  for (const { observed_at, value_usd } of rows.filter((row) => row.value_usd > 0)) {
    const { value, count } = days.get(observed_at) ?? { value: 0, count: 0 }
    days.set(observed_at, { value: value + value_usd, count: count + 1 })
  }
  return days
}

/** Stores treasuries like the collecting job. */
async function collect(rows: DaoTreasuryRow[]) {
  const job = defineJob({
    name: daoTreasury.name,
    cadence: daoTreasury.cadence,
    dataset: daoTreasury,
    providers: [{ name: 'test', cost: 'free', covers: () => true, connect: () => undefined }],
    entities: () => daos(),
    history: { intervals: ['1d'], chunkEntities: 100, chunkPoints: 100 },
    run: async () => rows,
  })
  const { context } = pipeline
  const range = { kind: 'range', from: TODAY - 30 * DAY, to: TODAY + DAY, interval: '1d' }
  await runJob(job, job.connect(context), context, range)
}

const stored = () =>
  pipeline.context.db.rows({
    name: 'stored',
    sql: 'SELECT * FROM treasury_values FINAL ORDER BY recorded_at',
    schema: dailySumRow,
  })

describe('the value of all treasuries', () => {
  it('is computed by day, and a correction changes its day only', async () => {
    const runner = createRunner(treasuryValue, pipeline.context, 'history')
    const queue = pipeline.queue('treasury-value', 'history')
    try {
      await collect(treasuries())
      await untilIdle(runner, queue)
      const expected = sumByDay(treasuries())
      const before = await stored()
      expect(before.map(({ recorded_at }) => recorded_at)).toEqual([...expected.keys()].sort())
      for (const { recorded_at, value_usd, member_count } of before) {
        const { value, count } = expected.get(recorded_at) ?? { value: 0, count: 0 }
        expect(Math.abs(value_usd / value - 1)).toBeLessThan(1e-9)
        expect(member_count).toBe(count)
      }
      expect(new Set(before.map(({ member_count }) => member_count)).size).toBeGreaterThan(1)

      await collect(treasuries())
      await untilIdle(runner, queue)
      expect(await stored()).toEqual(before)

      const [row] = treasuries()
      if (row === undefined) throw new Error('no treasury')
      const value_usd = row.value_usd * 3
      await collect([{ ...row, value_usd, tokens: row.tokens.map((token) => ({ ...token, value_usd })) }])
      await untilIdle(runner, queue)
      const changed = (await stored()).filter((one, at) => JSON.stringify(one) !== JSON.stringify(before[at]))
      expect(changed.map(({ recorded_at }) => recorded_at)).toEqual([row.observed_at])
    } finally {
      await runner.close()
    }
  })

  it('excludes a DAO that is not live', async () => {
    const { context } = pipeline
    const compute = () => {
      const range = { kind: 'range', from: TODAY - 30 * DAY, to: TODAY + DAY, interval: '1d' }
      return runJob(treasuryValue, treasuryValue.connect(context), context, range)
    }
    expect(await compute()).toMatchObject({ rows: 0 })
    const [dao] = daos()
    await context.db.command({
      name: 'retire',
      sql: `INSERT INTO daos (* EXCEPT version)
SELECT * EXCEPT version REPLACE (false AS live, changes + 1 AS changes) FROM daos FINAL WHERE key = {key: UInt64}`,
      params: { key: dao?.key },
    })
    expect((await compute()).rows).toBe(treasuries().filter((row) => row.dao === dao?.key).length)
  })
})
