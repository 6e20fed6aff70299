import { existsSync, mkdtempSync, readdirSync, rmSync, statfsSync } from 'node:fs'
import { join } from 'node:path'

/** Where Linux keeps files in memory. */
const MEMORY = '/dev/shm'
/** Twice what the files of a run have been seen to take. */
const NEEDED_BYTES = 4 * 1024 ** 3
const PREFIX = 'dao-data-tests-'

/**
 * The folder for the temporary files of a run, the stores' among them: in memory where that has room, since making and
 * removing the many small files of tables takes a disk a tenth of all the run's time. Removed when the run ends.
 */
export default function setup(): (() => void) | undefined {
  if (!hasRoom()) return undefined
  removeLeft()
  const folder = mkdtempSync(join(MEMORY, `${PREFIX}${process.pid}-`))
  process.env.TMPDIR = folder
  return () => rmSync(folder, { recursive: true, force: true })
}

function hasRoom(): boolean {
  if (process.platform !== 'linux' || process.env.TMPDIR || !existsSync(MEMORY)) return false
  const { bavail, bsize } = statfsSync(MEMORY)
  return bavail * bsize >= NEEDED_BYTES
}

/** What runs left that were killed would fill the memory for good. */
function removeLeft(): void {
  for (const name of readdirSync(MEMORY)) {
    const [, pid] = /^dao-data-tests-(\d+)-/.exec(name) ?? []
    if (pid !== undefined && !existsSync(join('/proc', pid)))
      rmSync(join(MEMORY, name), { recursive: true, force: true })
  }
}
