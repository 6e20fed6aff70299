import { renameSync, rmSync, writeFileSync } from 'node:fs'
import { DataError, type ErrorCode, toReason } from './errors.ts'

/**
 * Replaces a file at once, or makes it where there is none yet: who reads it meanwhile reads the old or the new one. The new one
 * is made under a name that only one process can take, so that of two changes at a time none is lost: `make` reads what it
 * changes, and gives what the file is to hold. Only its owner may read what is made with `mode` 0o600.
 * @throws DataError of `code` when another process changes the file, was killed while it did, or the disk refuses; whatever `make` throws. The
 * file is then what it was.
 */
export function replaceFile(
  path: string,
  make: () => string,
  { code, mode = 0o666 }: { readonly code: ErrorCode; readonly mode?: number },
): void {
  const next = `${path}.new`
  const write = (work: () => void) => {
    try {
      work()
    } catch (cause) {
      const isTaken = (cause as NodeJS.ErrnoException).code === 'EEXIST'
      const reason = isTaken
        ? `${next} is there: another change is under way; remove it if none is`
        : `${path} cannot be changed: ${toReason(cause)}`
      throw new DataError(code, reason, { cause })
    }
  }
  write(() => writeFileSync(next, '', { mode, flag: 'wx' }))
  try {
    const content = make()
    write(() => {
      writeFileSync(next, content)
      renameSync(next, path)
    })
  } catch (error) {
    rmSync(next, { force: true })
    throw error
  }
}
