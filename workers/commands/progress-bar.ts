import { Presets, SingleBar } from 'cli-progress'

export interface Progress {
  /** One more part is done, with so many rows. */
  step(rows: number): void
  stop(summary: string): void
}

/** Progress of a long command: a bar on a terminal, a line for every tenth elsewhere. */
export function createProgress(title: string, total: number, out: NodeJS.WriteStream = process.stdout): Progress {
  return out.isTTY ? createBar(title, total, out) : createLines(title, total, out)
}

function createBar(title: string, total: number, out: NodeJS.WriteStream): Progress {
  const format = `${title} [{bar}] {percentage}% | {value}/{total} parts | {rows} rows | {eta_formatted} left`
  const bar = new SingleBar({ format, stream: out, hideCursor: true }, Presets.shades_classic)
  bar.start(total, 0, { rows: 0 })
  let rows = 0
  return {
    step: (more) => {
      rows += more
      bar.increment(1, { rows })
    },
    stop: (summary) => {
      bar.stop()
      out.write(`${title}: ${summary}\n`)
    },
  }
}

function createLines(title: string, total: number, out: NodeJS.WriteStream): Progress {
  let done = 0
  let rows = 0
  let told = 0
  return {
    step: (more) => {
      done += 1
      rows += more
      const tenth = Math.floor((done * 10) / total)
      if (tenth > told) out.write(`${title}: ${tenth * 10} % (${done} of ${total} parts, ${rows} rows)\n`)
      told = Math.max(told, tenth)
    },
    stop: (summary) => out.write(`${title}: ${summary}\n`),
  }
}
