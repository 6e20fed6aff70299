import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

/**
 * The command line of a running process; empty for a missing process or a zombie.
 * @throws if the system cannot report it.
 */
export function readCommandLine(pid: number): string {
  // Small containers lack `ps`; all other systems have it.
  if (process.platform === 'linux') return readOfLinux(pid)
  const { stdout, error } = spawnSync('ps', ['-o', 'stat=,args=', '-p', String(pid)], { encoding: 'utf8' })
  if (error !== undefined) throw error
  return stdout.startsWith('Z') ? '' : stdout
}

/** The kernel returns an empty command line for a zombie. */
function readOfLinux(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
  } catch (error) {
    // The process may end between open and read.
    if (['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) return ''
    throw error
  }
}
