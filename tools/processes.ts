import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

/**
 * The command line of a running process; empty when there is no process with that id, or only a zombie.
 * @throws where nobody can tell, which is not the same as none.
 */
export function readCommandLine(pid: number): string {
  // Small containers have no `ps`; every other system has.
  if (process.platform === 'linux') return readOfLinux(pid)
  const { stdout, error } = spawnSync('ps', ['-o', 'stat=,args=', '-p', String(pid)], { encoding: 'utf8' })
  if (error !== undefined) throw error
  return stdout.startsWith('Z') ? '' : stdout
}

/** The kernel gives a zombie an empty one. */
function readOfLinux(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
  } catch (error) {
    // It may end between being opened and being read.
    if (['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) return ''
    throw error
  }
}
