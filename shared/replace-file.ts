import { renameSync, rmSync, writeFileSync } from 'node:fs'
import { DataError, type ErrorCode, toReason } from './errors.ts'

/**
 * Replaces or creates a file atomically: concurrent readers see the old or the new content. The lock file `<path>.new`
 * is created exclusively, so concurrent changes do not overwrite each other. `make` reads the current content and
 * returns the new one. With `mode` 0o600 only the owner can read the file.
 * @throws DataError of `code` if another process is changing the file or was killed while changing it, or if the disk
 * fails; any error of `make`. The file is then unchanged.
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
        ? `${next} exists: another process is changing the file; remove it if none is`
        : `${path} cannot be written: ${toReason(cause)}`
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
