import { Presets, SingleBar } from 'cli-progress'

export interface Progress {
  readonly total: number
  step(): void
  set(done: number): void
  /** Prints a line without disturbing the progress bar. */
  say(line: string): void
  stop(summary: string): void
}

/** Progress of a long command: a bar on a terminal, else one line per tenth. */
export function createProgress(
  title: string,
  total: number,
  out: NodeJS.WriteStream = process.stdout,
  unit = 'parts',
): Progress {
  const show = out.isTTY ? createBar(title, total, out, unit) : createLines(title, total, out, unit)
  let done = 0
  const set = (now: number) => {
    done = now
    show.update(done)
  }
  const stop = (summary: string) => {
    show.stop()
    out.write(`${title}: ${summary}\n`)
  }
  return { total, set, step: () => set(done + 1), say: show.say, stop }
}

/** Called after each unit of work. */
export type OnPart = (done: number, total: number) => void

/**
 * Progress of work whose total is known only from its first report: a bar on a terminal, nothing on other outputs,
 * because monitors read only the result.
 */
export function createParts(title: string, out: NodeJS.WriteStream = process.stderr): OnPart {
  let bar: ReturnType<typeof createBar> | undefined
  return (done, total) => {
    if (!out.isTTY) return
    bar ??= createBar(title, total, out, 'parts')
    bar.update(done)
    if (done < total) return
    bar.stop()
    bar = undefined
  }
}

function createBar(title: string, total: number, out: NodeJS.WriteStream, unit: string) {
  const format = `${title} [{bar}] {percentage}% | {value}/{total} ${unit} | {eta_formatted} left`
  // Hiding the cursor would leave the terminal without one if the work fails.
  const bar = new SingleBar({ format, stream: out, hideCursor: false }, Presets.shades_classic)
  bar.start(total, 0)
  return {
    update: (done: number) => bar.update(done),
    // The next update redraws the bar below the line.
    say: (line: string) => void out.write(`\r\u001b[K${line}\n`),
    stop: () => bar.stop(),
  }
}

function createLines(title: string, total: number, out: NodeJS.WriteStream, unit: string) {
  let printedTenth = 0
  return {
    update: (done: number) => {
      const tenth = total === 0 ? 0 : Math.floor((done * 10) / total)
      if (tenth > printedTenth) out.write(`${title}: ${tenth * 10} % (${done} of ${total} ${unit})\n`)
      printedTenth = Math.max(printedTenth, tenth)
    },
    say: (line: string) => console.error(line),
    stop: () => {},
  }
}
