import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DataError } from '../shared/errors.ts'
import { readCommandLine } from './processes.ts'

/**
 * Locks a data folder for this process, so that a second start does not use the same stores. The lock of an ended
 * process is taken over, by exactly one of several concurrent starts.
 * @returns a function that unlocks the folder.
 * @throws DataError `config` that names the folder and the owning process, or the file of a concurrent takeover.
 */
export function lockFolder(dir: string): () => void {
  mkdirSync(dir, { recursive: true })
  const file = join(dir, 'stack.pid')
  if (!create(file)) takeOver(dir, file)
  return () => rmSync(file, { force: true })
}

/** Returns false if the file exists. */
function create(file: string): boolean {
  try {
    writeFileSync(file, String(process.pid), { flag: 'wx' })
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    return false
  }
}

function takeOver(dir: string, file: string): void {
  const next = `${file}.new`
  if (!create(next))
    throw new DataError('config', `${next} exists: another start is taking over ${dir}; remove it if none is`)
  try {
    const owner = Number(readFileSync(file, 'utf8'))
    if (isStack(owner)) throw new DataError('config', `${dir} is in use by process ${owner}: stop it, or set DATA_DIR`)
    renameSync(next, file)
  } catch (error) {
    rmSync(next, { force: true })
    throw error
  }
}

/** The id of an ended process may belong to another program now. */
const isStack = (pid: number): boolean => pid !== process.pid && readCommandLine(pid).includes('tools/stack.ts')
