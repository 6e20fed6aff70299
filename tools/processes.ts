import { spawnSync } from 'node:child_process'

/** The command line of a running process; empty when there is no process with that id, or only a zombie. */
export function readCommandLine(pid: number): string {
  const { stdout } = spawnSync('ps', ['-o', 'stat=,args=', '-p', String(pid)], { encoding: 'utf8' })
  return stdout === null || stdout.startsWith('Z') ? '' : stdout
}
