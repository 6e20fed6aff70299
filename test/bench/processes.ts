import { readFileSync } from 'node:fs'

/** Memory that a process has in RAM now, in bytes; NaN where the system does not tell. */
export function readResidentBytes(pid: number): number {
  try {
    const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
    return Number(kilobytes) * 1024
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return Number.NaN
    throw error
  }
}
