import { readFileSync } from 'node:fs'

/** Reads a /proc file of a process; undefined on systems without /proc. */
function readProc(pid: number, file: string): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

function readStatusBytes(pid: number, name: string): number {
  const [, kilobytes] = new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(readProc(pid, 'status') ?? '') ?? []
  return Number(kilobytes) * 1024
}

/** Resident memory of a process, in bytes; NaN if unknown. */
export const readResidentBytes = (pid: number): number => readStatusBytes(pid, 'VmRSS')

/** Peak resident memory. */
export const readPeakBytes = (pid: number): number => readStatusBytes(pid, 'VmHWM')

/** Linux reports processor time in hundredths of a second, independent of the kernel's clock. */
const TICKS_A_SECOND = 100

/** Processor time of a process, in seconds; NaN if unknown. */
export function readCpuSeconds(pid: number): number {
  // The name in parentheses may contain anything; the 12th and 13th fields after it are user and system time.
  const fields = (readProc(pid, 'stat') ?? '').split(') ').at(-1)?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) / TICKS_A_SECOND
}

/** Processor time of a process and of its running children, such as the connections of PostgreSQL. */
export function readTreeCpuSeconds(pid: number): number {
  const children = (readProc(pid, `task/${pid}/children`) ?? '').split(' ').filter((text) => text !== '')
  return children.reduce((sum, child) => sum + readTreeCpuSeconds(Number(child)), readCpuSeconds(pid))
}
