import { readFileSync } from 'node:fs'

/** What /proc says of a process; undefined where the system has no /proc. */
function readProc(pid: number, file: string): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** Memory that a process has in RAM now, in bytes; NaN where the system does not tell. */
export function readResidentBytes(pid: number): number {
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readProc(pid, 'status') ?? '') ?? []
  return Number(kilobytes) * 1024
}

/** Linux counts processor time in hundredths of a second, whatever the kernel's own clock. */
const TICKS_A_SECOND = 100

/** Processor time that a process has used, in seconds; NaN where the system does not tell. */
export function readCpuSeconds(pid: number): number {
  // The name in parentheses may hold anything; the 12th and 13th fields after it are user and system time.
  const fields = (readProc(pid, 'stat') ?? '').split(') ').at(-1)?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) / TICKS_A_SECOND
}
