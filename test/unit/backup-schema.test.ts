import { describe, expect, it } from 'vitest'
import { type Manifest, readManifest } from '../../clickhouse/backup/files.ts'
import { toSchemaOf } from '../../clickhouse/backup/schema-of.ts'
import { loadMigrations } from '../../clickhouse/migrations.ts'
import { loadBaseline } from '../support/baseline.ts'

const read = () => readManifest(loadBaseline().backup)
const without = (fields: Manifest, table: string): Manifest => ({
  ...fields,
  tables: fields.tables.filter(({ name }) => name !== table),
})

describe('toSchemaOf', () => {
  it("returns the schema of the backup's migrations with all their tables", async () => {
    const observed = await read()
    const { own, later } = toSchemaOf(observed)
    expect(own).toHaveLength(observed.migrations.length)
    expect([...own, ...later]).toHaveLength(loadMigrations().length)
  })

  it.each(['token_prices', 'job_state', 'dao_ratings_latest'])(
    'throws if the manifest lacks the table %s',
    async (table) => {
      const observed = without(await read(), table)
      expect(() => toSchemaOf(observed)).toThrow(`its manifest lacks the tables ${table}, which its schema has`)
    },
  )
})
