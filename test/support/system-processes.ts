import { readdirSync, readFileSync } from 'node:fs'

export interface SystemProcess {
  readonly pid: number
  readonly command: string
}

/** Finds processes of this machine (Linux) by their command line or environment. */
export function findProcesses(matches: (process: { command: string; environment: readonly string[] }) => boolean) {
  return readdirSync('/proc').flatMap((name): SystemProcess[] => {
    if (!/^\d+$/.test(name)) return []
    const environment = readOf(name, 'environ').split('\0')
    const command = readOf(name, 'cmdline').replaceAll('\0', ' ')
    return matches({ command, environment }) ? [{ pid: Number(name), command }] : []
  })
}

/** Empty for a process that has just ended, and for a zombie. */
function readOf(pid: string, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8')
  } catch {
    return ''
  }
}
