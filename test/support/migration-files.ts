import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { MIGRATIONS } from '../../clickhouse/schema/released.ts'

/** The shipped migrations and their list, with a test's own files beside them, in a folder that goes with the test. */
export function copyMigrations(more: Readonly<Record<string, string>> = {}): string {
  const folder = mkdtempSync(join(tmpdir(), 'dao-data-migrations-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  cpSync(MIGRATIONS, folder, { recursive: true })
  for (const [name, sql] of Object.entries(more)) writeFileSync(join(folder, name), sql)
  return folder
}
