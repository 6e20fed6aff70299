import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DataError } from '../shared/errors.ts'
import { readCommandLine } from './processes.ts'

/**
 * Locks a data folder for this process, so that a second start does not use the same stores. A lock whose process has
 * ended is taken over.
 * @returns what unlocks the folder.
 * @throws DataError `config` that names the folder and the process that has it.
 */
export function lockFolder(dir: string): () => void {
  mkdirSync(dir, { recursive: true })
  const file = join(dir, 'stack.pid')
  try {
    writeFileSync(file, String(process.pid), { flag: 'wx' })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    const owner = Number(readFileSync(file, 'utf8'))
    if (isStack(owner)) throw new DataError('config', `${dir} is in use by process ${owner}: stop it, or set DATA_DIR`)
    writeFileSync(file, String(process.pid))
  }
  return () => rmSync(file, { force: true })
}

/** The id of an ended process may belong to another program now. */
const isStack = (pid: number): boolean => pid !== process.pid && readCommandLine(pid).includes('tools/stack.ts')
