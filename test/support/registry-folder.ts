import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SHIPPED } from '../../shared/registry/source.ts'

const FILES = ['categories', 'chains', 'tokens', 'daos', 'index'] as const
type File = (typeof FILES)[number]

type Row = Readonly<Record<string, unknown>>

/** A copy of the shipped registry's files for a test to change. */
export interface RegistryFolder {
  readonly dir: string
  /** Changes the records of a list. */
  edit(file: Exclude<File, 'index'>, change: (rows: readonly Row[]) => readonly object[]): void
  remove(): void
}

export function createRegistryFolder(): RegistryFolder {
  const dir = mkdtempSync(join(tmpdir(), 'dao-data-registry-'))
  const toPath = (file: File) => join(dir, `${file}.json`)
  for (const file of FILES) cpSync(join(SHIPPED, `${file}.json`), toPath(file))
  return {
    dir,
    edit: (file, change) =>
      writeFileSync(toPath(file), JSON.stringify(change(JSON.parse(readFileSync(toPath(file), 'utf8'))))),
    remove: () => rmSync(dir, { recursive: true }),
  }
}
