import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { toDeriveParams } from '../../shared/datasets/define-dataset.ts'
import { toFlowDays, treasuryFlows } from '../../shared/datasets/treasury-flows.ts'
import { DAY_MS } from '../../shared/intervals.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import type { Database } from '../../shared/store/store.ts'
import treasuryFlowsJob from '../../workers/jobs/treasury-flows.ts'
import { replay, runJob } from '../../workers/run/runner.ts'
import { createPipeline, type Pipeline } from '../support/pipeline.ts'

const TODAY = Date.parse('2026-05-06T00:00:00Z')
const RANGE = { from: TODAY - 10 * DAY_MS, to: TODAY }

const registry = loadRegistry()
const dao = registry.daoBySlug.get('ens')
if (dao === undefined) throw new Error('there is no DAO')

let pipeline: Pipeline
beforeAll(async () => {
  pipeline = await createPipeline({ registry, now: TODAY + 3_600_000 })
  const { context } = pipeline
  const payload = { kind: 'range', ...RANGE, interval: '1d', entities: [dao.id] }
  await runJob(treasuryFlowsJob, treasuryFlowsJob.connect(context), context, payload)
})
afterAll(() => pipeline?.close())

const command = (sql: string, params: Readonly<Record<string, unknown>> = {}) =>
  pipeline.database.db.command({ name: 'change', sql, params })
const read = (sql: string) =>
  pipeline.database.db.rows({ name: 'read', sql, schema: z.record(z.string(), z.unknown()) })

const TRANSFERS = 'SELECT * EXCEPT collected_at FROM treasury_flows FINAL ORDER BY ALL'
/** The sums by day and kind, from the table of days and from the transfers. */
const readSums = () =>
  Promise.all([
    read(
      `SELECT day, kind, sum(base_units) AS units, sum(transfers) AS n FROM (${toFlowDays('true')}) GROUP BY ALL ORDER BY ALL`,
    ),
    read(`SELECT toDate(recorded_at) AS day, toString(kind) AS kind, sum(base_units) AS units, count() AS n FROM treasury_flows FINAL
WHERE kind != 'spam' GROUP BY ALL ORDER BY ALL`),
  ])

/** Stores transfers that only a faulty decoder has, two of each of the first days, and removes a day. */
async function storeFaults(): Promise<void> {
  await command(`INSERT INTO treasury_flows SELECT * REPLACE (recorded_at + INTERVAL 1 SECOND AS recorded_at) FROM treasury_flows FINAL
WHERE kind != 'spam' ORDER BY recorded_at LIMIT 2 BY toDate(recorded_at) LIMIT 8`)
  await command(
    `DELETE FROM treasury_flows WHERE toDate(recorded_at) = (SELECT max(toDate(recorded_at)) FROM treasury_flows WHERE kind != 'spam')`,
  )
  await command('TRUNCATE TABLE treasury_flow_days')
  const params = toDeriveParams({ entities: [dao?.key ?? 0], read: [], slot: TODAY })
  for (const { sql } of treasuryFlows.derive ?? []) await command(sql, params)
}

const correct = (db: Database = pipeline.database.db) => {
  const { context, clock } = pipeline
  const { redis, recomputation } = context
  const range = { from: RANGE.from, to: TODAY + DAY_MS }
  return replay(treasuryFlowsJob, { ...context, db }, { range, apply: { redis, recomputation, now: () => clock.now } })
}

/** The database of a process that is killed instead of a statement. */
function killedAt(name: string): Database {
  const { db } = pipeline.database
  let isKilled = false
  const check = (own: string) => {
    isKilled ||= own === name
    if (isKilled) throw new Error(`killed at ${name}`)
  }
  return {
    ...db,
    command: async (statement) => {
      check(statement.name)
      await db.command(statement)
    },
    insert: async (rows) => {
      check(rows.table)
      await db.insert(rows)
    },
  }
}

describe('replay that is killed', () => {
  let truth: Awaited<ReturnType<typeof read>>
  beforeEach(async () => {
    truth ??= await read(TRANSFERS)
    await storeFaults()
  })

  it.each(['replay-delete', 'treasury_flows', 'treasury-flow-days', 'fill-shadow', 'swap', 'history_changes'])(
    'is completed by the next one: at %s',
    async (name) => {
      const faulty = await read(TRANSFERS)
      await expect(correct(killedAt(name))).rejects.toThrow('killed')
      await correct()
      expect(await read(TRANSFERS)).toEqual(truth)
      const [stored, computed] = await readSums()
      expect(stored).toEqual(computed)
      expect(faulty).not.toEqual(truth)
      const changes = await read('SELECT entity FROM history_changes')
      expect(changes.map(({ entity }) => Number(entity))).toContain(dao.key)
      expect((await correct()).differences).toEqual([])
    },
  )

  it('computes sums again that an earlier one has computed before further transfers were removed', async () => {
    await expect(correct(killedAt('swap'))).rejects.toThrow('killed')
    await storeFaults()
    await correct()
    const [stored, computed] = await readSums()
    expect(stored).toEqual(computed)
    expect(await read(TRANSFERS)).toEqual(truth)
  })
})
