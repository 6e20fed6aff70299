import { DataError } from '../../shared/errors.ts'
import { holdBack } from './frame.ts'

const OPENING = '[\n'
const CLOSING = '\n]\n'
const LINE_BREAK = 0x0a
/** Length of the separator between two rows. */
const BETWEEN = 2

/**
 * Yields the rows of a JSON array as ClickHouse writes it (`output_format_json_array_of_rows`): one row per line,
 * without the brackets.
 * @throws DataError `storage` when the array is incomplete.
 */
export async function* readRows(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const held = yield* holdBack(withoutOpening(source), CLOSING.length)
  const cut = held.length - CLOSING.length
  if (held.toString('latin1', cut) !== CLOSING) {
    throw new DataError('storage', 'ClickHouse broke off in the middle of an answer')
  }
  if (cut > 0) yield held.subarray(0, cut)
}

async function* withoutOpening(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let opening: Buffer | undefined = Buffer.alloc(0)
  for await (const bytes of source) {
    if (opening === undefined) {
      yield bytes
      continue
    }
    opening = Buffer.concat([opening, bytes])
    if (opening.length < OPENING.length) continue
    if (opening.toString('latin1', 0, OPENING.length) !== OPENING) return
    if (opening.length > OPENING.length) yield opening.subarray(OPENING.length)
    opening = undefined
  }
}

/** Cuts the output of `readRows` into groups with the given numbers of rows, each at least one. */
export interface RowCutter {
  push(bytes: Buffer): void
  /** Returns the bytes of each group, without the separators between groups. */
  end(): Buffer[]
}

export function createRowCutter(counts: readonly number[]): RowCutter {
  const done: Buffer[] = []
  let parts: Buffer[] = []
  let left = counts[0] ?? 0
  return {
    push: (bytes) => {
      let [start, at] = [0, 0]
      while (done.length < counts.length - 1) {
        at = bytes.indexOf(LINE_BREAK, at) + 1
        if (at === 0) break
        left--
        if (left > 0) continue
        const whole = Buffer.concat([...parts, bytes.subarray(start, at)])
        done.push(whole.subarray(0, whole.length - BETWEEN))
        parts = []
        start = at
        left = counts[done.length] ?? 0
      }
      parts.push(bytes.subarray(start))
    },
    end: () => [...done, Buffer.concat(parts)],
  }
}
