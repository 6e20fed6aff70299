import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { readManifest } from '../../clickhouse/backup/files.ts'
import { loadMigrations, requireMigrated } from '../../clickhouse/migrations.ts'
import { restore } from '../../clickhouse/restore.ts'
import { loadReleased } from '../../clickhouse/schema/released.ts'
import type { Config } from '../../shared/config/config.ts'
import { datasets } from '../../shared/datasets/list.ts'
import { addFromRows } from '../../shared/ledger/recount.ts'
import { findUnfounded } from '../../shared/ledger/unfounded.ts'
import { type Baseline, loadBaseline, recordAnswers, recordBaseline } from '../support/baseline.ts'
import { createTestConfig, createTestDatabase } from '../support/database.ts'
import { copyMigrations } from '../support/migration-files.ts'
import { silent } from '../support/silent.ts'
import { EVERY_REQUEST, readAnswers, SITE_NOW } from '../support/site.ts'

/** A day after the newest rows of the baseline. */
const NOW = SITE_NOW + 86_400_000
const buckets = z.object({ buckets: z.number() })
const BUCKETS = `SELECT sum(n) AS buckets FROM (SELECT bitmapCardinality(groupBitmapMergeState(buckets)) AS n FROM coverage GROUP BY dataset, entity)`

/** `all` records the baseline again, `answers` the responses of its database after the current migrations. */
const record = process.env.RECORD_BASELINE

/** Upgrades a database of the baseline with every migration of a folder. */
async function upgrade({ backup }: Baseline, migrations?: string) {
  const config = createTestConfig()
  const { server, db, drop } = await createTestDatabase(config, { empty: true })
  onTestFinished(drop)
  const options = { intoExisting: false, log: silent, onTable: () => {} }
  const tables = await restore(server, db, backup, migrations === undefined ? options : { ...options, migrations })
  const { applied } = await requireMigrated(db)
  return { config, db, tables, applied: [...applied.keys()] }
}

/** Requests with changed responses. */
async function findChanged({ registry, answers }: Baseline, config: Config): Promise<string[]> {
  const got = await readAnswers({ registry }, config, Object.keys(answers))
  return Object.keys(answers).filter((path) => got[path] !== answers[path])
}

it.runIf(record === 'all')('records the baseline', () => recordBaseline())

it.runIf(record === 'answers')("records the baseline's responses", async () => {
  const baseline = loadBaseline()
  const { config } = await upgrade(baseline)
  const documented = new Set(EVERY_REQUEST)
  const requests = Object.keys(baseline.answers).filter((path) => documented.has(path))
  await recordAnswers(baseline.registry, config, requests)
})

describe.skipIf(record)('database of the baseline', () => {
  it('has the first released migrations, and rows in every table', async () => {
    const { migrations, tables } = await readManifest(loadBaseline().backup)
    const released = [...loadReleased()].map(([name, checksum]) => ({ name, checksum }))
    expect(migrations).toEqual(released.slice(0, migrations.length))
    expect(tables.filter(({ rows }) => rows === 0).map(({ name }) => name)).toEqual([])
  })

  it('returns the same documented responses after every later migration', async () => {
    const baseline = loadBaseline()
    // Routes that were added since are documented but have no recorded response.
    expect(EVERY_REQUEST).toEqual(expect.arrayContaining(Object.keys(baseline.answers)))
    for (const answer of Object.values(baseline.answers)) expect(answer).toMatch(/^200 /)
    const { config, tables, applied } = await upgrade(baseline)
    expect(tables.filter(({ equal }) => !equal)).toEqual([])
    expect(applied).toEqual(loadMigrations().map(({ name }) => name))
    expect(await findChanged(baseline, config)).toEqual([])
  })

  it('gets its coverage from its rows, also after an interruption', async () => {
    const { db } = await upgrade(loadBaseline())
    const filled = datasets.filter(
      ({ name }) => !['dex-trades', 'governance', 'governors', 'delegations', 'fees'].includes(name),
    )
    for (const dataset of filled) {
      await addFromRows(db, dataset, NOW)
      expect([dataset.name, await findUnfounded(db, dataset)]).toEqual([dataset.name, []])
      expect([dataset.name, await addFromRows(db, dataset, NOW)]).toEqual([dataset.name, 0])
    }
    const [before] = await db.rows({ name: 'buckets', sql: BUCKETS, schema: buckets })
    expect(before?.buckets).toBeGreaterThan(1_000)
    await db.command({
      name: 'lose',
      sql: "ALTER TABLE coverage DELETE WHERE dataset = 'prices' AND entity % 2 = 0",
      settings: { mutations_sync: 2 },
    })
    for (const dataset of filled) await addFromRows(db, dataset, NOW)
    expect(await db.rows({ name: 'buckets', sql: BUCKETS, schema: buckets })).toEqual([before])
  })

  it('returns the same responses with an additional column', async () => {
    const later = copyMigrations({
      '900_note.sql': "ALTER TABLE market_caps ADD COLUMN IF NOT EXISTS note String DEFAULT 'none';",
    })
    const baseline = loadBaseline()
    const { config, applied } = await upgrade(baseline, later)
    expect(applied.at(-1)).toBe('900_note.sql')
    expect(await findChanged(baseline, config)).toEqual([])
  })

  it('returns changed responses if a migration loses rows', async () => {
    const later = copyMigrations({
      '900_loss.sql': 'ALTER TABLE market_caps DELETE WHERE 1 SETTINGS mutations_sync = 2;',
    })
    const baseline = loadBaseline()
    const { config } = await upgrade(baseline, later)
    const changed = await findChanged(baseline, config)
    expect(changed).toEqual(expect.arrayContaining(['aggregated/market-cap']))
    expect(changed.filter((path) => !/market-cap|status/.test(path))).toEqual([])
  })
})
