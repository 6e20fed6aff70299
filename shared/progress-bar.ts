import { Presets, SingleBar } from 'cli-progress'

export interface Progress {
  readonly total: number
  /** One more is done. */
  step(): void
  /** So many are done. */
  set(done: number): void
  /** Prints a line beside the progress. */
  say(line: string): void
  stop(summary: string): void
}

/** Progress of a long command: a bar on a terminal, a line for every tenth elsewhere. */
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

/** Told after each part of a work: how many are done, of how many. */
export type OnPart = (done: number, total: number) => void

/**
 * Progress of a work that finds out itself how much there is: a bar on a terminal. Elsewhere nothing: a monitor reads only what
 * came of it.
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
  // A work that fails leaves the bar as it is, and must not leave a terminal without its cursor.
  const bar = new SingleBar({ format, stream: out, hideCursor: false }, Presets.shades_classic)
  bar.start(total, 0)
  return {
    update: (done: number) => bar.update(done),
    // The bar is drawn again below the line.
    say: (line: string) => void out.write(`\r\u001b[K${line}\n`),
    stop: () => bar.stop(),
  }
}

function createLines(title: string, total: number, out: NodeJS.WriteStream, unit: string) {
  let told = 0
  return {
    update: (done: number) => {
      const tenth = total === 0 ? 0 : Math.floor((done * 10) / total)
      if (tenth > told) out.write(`${title}: ${tenth * 10} % (${done} of ${total} ${unit})\n`)
      told = Math.max(told, tenth)
    },
    say: (line: string) => console.error(line),
    stop: () => {},
  }
}
