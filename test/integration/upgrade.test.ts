import { describe, expect, it, onTestFinished } from 'vitest'
import { readManifest } from '../../clickhouse/backup/files.ts'
import { loadMigrations, requireMigrated } from '../../clickhouse/migrate.ts'
import { restore } from '../../clickhouse/restore.ts'
import { loadReleased } from '../../clickhouse/schema/released.ts'
import { type Baseline, loadBaseline, recordBaseline } from '../support/baseline.ts'
import { createTestConfig, createTestDatabase } from '../support/database.ts'
import { copyMigrations } from '../support/migration-files.ts'
import { silent } from '../support/silent.ts'
import { EVERY_REQUEST, readAnswers } from '../support/site.ts'

/** A database of the baseline, brought through every migration of a folder: what it answers, and what was applied. */
async function upgrade({ backup, registry, answers }: Baseline, migrations?: string) {
  const config = createTestConfig()
  const { server, db, drop } = await createTestDatabase(config, { empty: true })
  onTestFinished(drop)
  const options = { intoExisting: false, log: silent, onTable: () => {} }
  const tables = await restore(server, db, backup, migrations === undefined ? options : { ...options, migrations })
  const { applied } = await requireMigrated(db)
  const got = await readAnswers({ registry }, config, Object.keys(answers))
  const changed = Object.keys(answers).filter((path) => got[path] !== answers[path])
  return { tables, applied: [...applied.keys()], changed }
}

describe.runIf(process.env.RECORD_BASELINE)('the baseline', () => {
  it('is recorded', () => recordBaseline())
})

describe.skipIf(process.env.RECORD_BASELINE)('a database of the baseline', () => {
  it('has the files that were released first, and rows in every table', async () => {
    const { migrations, tables } = await readManifest(loadBaseline().backup)
    const released = [...loadReleased()].map(([name, checksum]) => ({ name, checksum }))
    expect(migrations).toEqual(released.slice(0, migrations.length))
    expect(tables.filter(({ rows }) => rows === 0).map(({ name }) => name)).toEqual([])
  })

  it('answers what is documented as it did, after every later migration', async () => {
    const baseline = loadBaseline()
    // What came since is documented and was not answered then.
    expect(EVERY_REQUEST).toEqual(expect.arrayContaining(Object.keys(baseline.answers)))
    for (const answer of Object.values(baseline.answers)) expect(answer).toMatch(/^200 /)
    const { tables, applied, changed } = await upgrade(baseline)
    expect(tables.filter(({ equal }) => !equal)).toEqual([])
    expect(applied).toEqual(loadMigrations().map(({ name }) => name))
    expect(changed).toEqual([])
  })

  it('answers the same with a column more', async () => {
    const later = copyMigrations({
      '900_note.sql': "ALTER TABLE market_caps ADD COLUMN IF NOT EXISTS note String DEFAULT 'none';",
    })
    const { applied, changed } = await upgrade(loadBaseline(), later)
    expect(applied.at(-1)).toBe('900_note.sql')
    expect(changed).toEqual([])
  })

  it('is seen to answer something else when a migration loses rows', async () => {
    const later = copyMigrations({
      '900_loss.sql': 'ALTER TABLE market_caps DELETE WHERE 1 SETTINGS mutations_sync = 2;',
    })
    const { changed } = await upgrade(loadBaseline(), later)
    expect(changed).toEqual(expect.arrayContaining(['aggregated/market-cap']))
    expect(changed.filter((path) => !/market-cap|status/.test(path))).toEqual([])
  })
})
