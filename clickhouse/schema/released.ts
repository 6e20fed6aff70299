import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DataError } from '../../shared/errors.ts'

/** Folder of the migration files and the list of released ones. */
export const MIGRATIONS = join(import.meta.dirname, '../migrations')

const LIST = 'released.sha256'

/**
 * The released migration files with their SHA-256, in the format of `sha256sum`. The first release is the baseline:
 * every database created since then can be upgraded, because listed files never change.
 */
export function loadReleased(from: string = MIGRATIONS): ReadonlyMap<string, string> {
  const lines = readFileSync(join(from, LIST), 'utf8').split('\n').filter(Boolean)
  return new Map(
    lines.map((line) => {
      const [, checksum, name] = /^([0-9a-f]{64}) [ *](\d{3}_\w+\.sql)$/.exec(line) ?? []
      if (checksum === undefined || name === undefined)
        throw new DataError('migration', `${LIST}: expected a checksum and a file, got ${line}`)
      return [name, checksum]
    }),
  )
}

/**
 * @throws DataError `migration` if a released file was edited or is missing, or if an unreleased one sorts before it:
 * existing databases would apply it after the released files, new ones before.
 */
export function refuseRewritten(
  migrations: readonly { readonly name: string; readonly checksum: string }[],
  released: ReadonlyMap<string, string>,
): void {
  const files = new Map(migrations.map(({ name, checksum }) => [name, checksum]))
  const newest = [...released.keys()].sort().at(-1) ?? ''
  const mistakes = [
    ...[...released].flatMap(([name, checksum]) => {
      if (!files.has(name)) return [`${name} is released, but its file is missing`]
      return files.get(name) === checksum ? [] : [`${name} is released and was edited: put the change into a new file`]
    }),
    ...[...files.keys()]
      .filter((name) => !released.has(name) && name < newest)
      .map((name) => `${name} is new and comes before ${newest}, which is released: give it a later number`),
  ]
  if (mistakes.length > 0) throw new DataError('migration', `invalid migration files: ${mistakes.join('; ')}`)
}
