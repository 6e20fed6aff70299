import { readdirSync, readFileSync } from 'node:fs'
import { relative } from 'node:path'
import type { Reporter, TestModule } from 'vitest/node'
import { casesSettings } from './cases.ts'

const LISTED = 30
const SAMPLE_MS = 1_000
/** Linux counts processor time in hundredths of a second. */
const TICKS_PER_SECOND = 100

const KINDS = ['ClickHouse', 'Redis', 'browsers', 'vitest', 'other programs'] as const
type Kind = (typeof KINDS)[number]

interface Process {
  readonly parent: number
  /** Distinguishes a process from a later one with the same id. */
  readonly startedAt: string
  /** Processor time of the process itself, in seconds. */
  readonly seconds: number
}

/**
 * Ends a run with its slowest files and its processor time by kind of program. The processor time is sampled each second
 * for all processes that the run started, so shorter processes are missing. It needs Linux.
 */
export default class RunReport implements Reporter {
  private readonly usage = new Map<string, { readonly kind: Kind; seconds: number }>()
  private readonly own = new Set([process.pid])
  private timer: NodeJS.Timeout | undefined
  private startedAt = 0

  onTestRunStart(): void {
    this.startedAt = performance.now()
    if (process.platform !== 'linux') return
    this.timer = setInterval(() => this.sample(), SAMPLE_MS).unref()
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    clearInterval(this.timer)
    if (process.platform === 'linux') this.sample()
    const files = modules
      .map((module) => ({ file: relative(process.cwd(), module.moduleId), ...countTests(module) }))
      .sort((a, b) => b.seconds - a.seconds)
    console.log(`\nSlowest files of ${files.length} (seconds, tests):`)
    for (const { file, seconds, tests } of files.slice(0, LISTED))
      console.log(`${seconds.toFixed(1).padStart(8)} ${String(tests).padStart(5)}  ${file}`)
    const wall = (performance.now() - this.startedAt) / 1_000
    const seconds = (kind: Kind) => {
      const some = [...this.usage.values()].filter((one) => one.kind === kind)
      return some.reduce((sum, one) => sum + one.seconds, 0)
    }
    const parts = KINDS.map((kind) => `${kind} ${Math.round(seconds(kind))} s`)
    console.log(
      `\nRun: ${Math.round(wall)} s. Processor time: ${this.timer ? parts.join(', ') : 'measured on Linux only'}`,
    )
    console.log(`Random cases: ${casesSettings}`)
  }

  private sample(): void {
    const processes = readProcesses()
    for (const [pid, { parent }] of processes) if (this.own.has(parent)) this.own.add(pid)
    for (const pid of this.own) {
      const found = processes.get(pid)
      if (found === undefined) {
        this.own.delete(pid)
        continue
      }
      const key = `${pid} ${found.startedAt}`
      const known = this.usage.get(key)
      if (known) known.seconds = found.seconds
      else this.usage.set(key, { kind: kindOf(pid), seconds: found.seconds })
    }
  }
}

function countTests(module: TestModule): { seconds: number; tests: number } {
  const { duration, setupDuration, collectDuration } = module.diagnostic()
  const tests = [...module.children.allTests()].length
  return { seconds: (duration + setupDuration + collectDuration) / 1_000, tests }
}

/** All processes in the order of their ids, so that a parent usually comes before its children. */
function readProcesses(): Map<number, Process> {
  const found = new Map<number, Process>()
  for (const name of readdirSync('/proc')) {
    const text = /^\d+$/.test(name) ? readIfPresent(`/proc/${name}/stat`) : ''
    // The second field is the name in brackets, which may have blanks; proc(5) numbers the fields from 1.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    const field = (number: number) => fields[number - 3] ?? ''
    if (text === '') continue
    const seconds = (Number(field(14)) + Number(field(15))) / TICKS_PER_SECOND
    found.set(Number(name), { parent: Number(field(4)), startedAt: field(22), seconds })
  }
  return new Map([...found].sort(([a], [b]) => a - b))
}

function kindOf(pid: number): Kind {
  const command = readIfPresent(`/proc/${pid}/cmdline`)
  if (/clickhouse/i.test(command)) return 'ClickHouse'
  if (/redis-server|valkey-server/.test(command)) return 'Redis'
  if (/chromium/.test(command)) return 'browsers'
  return pid === process.pid || command.includes('vitest') ? 'vitest' : 'other programs'
}

/** The content of a file of /proc, or nothing if the process has ended. */
function readIfPresent(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if (['ENOENT', 'ESRCH'].includes(String((error as NodeJS.ErrnoException).code))) return ''
    throw error
  }
}
