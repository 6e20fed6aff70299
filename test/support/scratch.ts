import { existsSync, mkdtempSync, readdirSync, rmSync, statfsSync, statSync } from 'node:fs'
import { freemem } from 'node:os'
import { join } from 'node:path'
import { toReason } from '../../shared/errors.ts'
import { DAY_MS } from '../../shared/intervals.ts'

/** Linux' in-memory file system. */
const MEMORY = '/dev/shm'
/** Space for a run, including the 4 GiB of its ClickHouse. */
const NEEDED_BYTES = 8 * 1024 ** 3
const OWN = /^dao-data-tests-(\d+)-/

/**
 * Creates the folder for the temporary files of a run, including the stores. Uses memory if there is space and TMPDIR
 * is not set, because creating and removing the many small table files on disk takes a tenth of the run's time. Removed
 * at the end of the run.
 */
export default function setup(): (() => void) | undefined {
  if (process.platform !== 'linux' || process.env.TMPDIR || !existsSync(MEMORY)) return undefined
  removeLeftovers()
  if (!hasRoom()) return undefined
  const folder = mkdtempSync(join(MEMORY, `dao-data-tests-${process.pid}-`))
  process.env.TMPDIR = folder
  return () => remove(folder)
}

function hasRoom(): boolean {
  const { bavail, bsize } = statfsSync(MEMORY)
  return Math.min(bavail * bsize, freemem()) >= NEEDED_BYTES
}

/**
 * Removes folders of killed runs, which would fill the memory. A process with the same id may run in another container.
 */
function removeLeftovers(): void {
  for (const name of readdirSync(MEMORY)) {
    const [, pid] = OWN.exec(name) ?? []
    if (pid === undefined || existsSync(join('/proc', pid))) continue
    // A concurrent run may have removed it.
    const found = statSync(join(MEMORY, name), { throwIfNoEntry: false })
    const isOld = found !== undefined && Date.now() - found.mtimeMs > DAY_MS
    if (isOld && found.uid === process.getuid?.()) remove(join(MEMORY, name))
  }
}

/** A read-only or full disk mounted by a killed test stays, but must not fail this run. */
function remove(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true })
  } catch (error) {
    console.warn(`${folder} stays in memory: ${toReason(error)}`)
  }
}
