import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { MIGRATIONS } from '../../clickhouse/schema/released.ts'

/** Copies the shipped migrations and their list, and adds a test's files. The folder is removed after the test. */
export function copyMigrations(more: Readonly<Record<string, string>> = {}): string {
  const folder = mkdtempSync(join(tmpdir(), 'dao-data-migrations-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  cpSync(MIGRATIONS, folder, { recursive: true })
  for (const [name, sql] of Object.entries(more)) writeFileSync(join(folder, name), sql)
  return folder
}
