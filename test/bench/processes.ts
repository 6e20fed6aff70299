import { readFileSync } from 'node:fs'

/** What a process has in RAM, now and at most so far, in bytes; NaN where the system does not tell. */
export function readMemory(pid: number): { resident: number; most: number } {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8')
    const read = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1]) * 1024
    return { resident: read('VmRSS'), most: read('VmHWM') }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { resident: Number.NaN, most: Number.NaN }
    throw error
  }
}
