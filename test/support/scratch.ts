import { existsSync, mkdtempSync, readdirSync, rmSync, statfsSync, statSync } from 'node:fs'
import { freemem } from 'node:os'
import { join } from 'node:path'
import { toReason } from '../../shared/errors.ts'
import { DAY_MS } from '../../shared/intervals.ts'

/** Where Linux keeps files in memory. */
const MEMORY = '/dev/shm'
/** What a run may take at most, with the 4 GiB that its ClickHouse may. */
const NEEDED_BYTES = 8 * 1024 ** 3
const OWN = /^dao-data-tests-(\d+)-/

/**
 * The folder for the temporary files of a run, the stores' among them: in memory where that has room and TMPDIR names no
 * other, since making and removing the many small files of tables takes a disk a tenth of all the run's time. Removed when
 * the run ends.
 */
export default function setup(): (() => void) | undefined {
  if (process.platform !== 'linux' || process.env.TMPDIR || !existsSync(MEMORY)) return undefined
  removeLeft()
  if (!hasRoom()) return undefined
  const folder = mkdtempSync(join(MEMORY, `dao-data-tests-${process.pid}-`))
  process.env.TMPDIR = folder
  return () => remove(folder)
}

function hasRoom(): boolean {
  const { bavail, bsize } = statfsSync(MEMORY)
  return Math.min(bavail * bsize, freemem()) >= NEEDED_BYTES
}

/** What killed runs left would fill the memory for good. A process with another's numbers may be in a container. */
function removeLeft(): void {
  for (const name of readdirSync(MEMORY)) {
    const [, pid] = OWN.exec(name) ?? []
    if (pid === undefined || existsSync(join('/proc', pid))) continue
    // Another run that begins may have removed it meanwhile.
    const found = statSync(join(MEMORY, name), { throwIfNoEntry: false })
    const isOld = found !== undefined && Date.now() - found.mtimeMs > DAY_MS
    if (isOld && found.uid === process.getuid?.()) remove(join(MEMORY, name))
  }
}

/** A disk that a test of a run that was killed had put there stays, and is no reason for this run to fail. */
function remove(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true })
  } catch (error) {
    console.warn(`${folder} stays in memory: ${toReason(error)}`)
  }
}
