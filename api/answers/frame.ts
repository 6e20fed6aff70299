import { once } from 'node:events'
import { DataError } from '../../shared/errors.ts'
import type { StreamAnswer } from './answer.ts'

/**
 * How an answer ends that ClickHouse began as a success and then failed at: newer versions close what went wrong with a
 * mark, older ones with their own version. No whole answer ends so, because every format ends a text with a quote or
 * more; inside of a text anybody may have written the same words, who names a token or proposes something.
 */
const FAILED = /(?:__exception__|\(version \d[\w.]*(?: \(official build\))?\))\s*$/
/** More than such an end has. */
const FAILED_BYTES = 128

/**
 * The data changed while an answer was read: its headers would tell of the old data. The answer has to be made again.
 */
export class DataChanged extends DataError {
  constructor() {
    super('storage', 'The data changed in the middle of an answer')
  }
}

/**
 * So many of the last bytes are held back until they are known to be right. When ClickHouse fails it says so in the
 * last 16 kB that it sends, and with that tells of statements and tables: none of it is sent on.
 */
const HELD_BYTES = 32 * 1024

const hasFailed = (end: Buffer) => FAILED.test(end.subarray(-FAILED_BYTES).toString('latin1'))

/** Whether bytes are the end of a whole answer. */
function isWhole(end: Buffer, ending: StreamAnswer['ending']): boolean {
  if (ending === undefined) return end.toString('latin1').trimEnd().endsWith(']')
  return ending === null || end.subarray(-ending.length).equals(ending)
}

/**
 * Puts a frame around the JSON array, or the table, that ClickHouse writes. Its end is held back until `holds` says
 * that the data is still what the answer's headers tell of.
 * @throws DataError `storage` when the answer breaks off or reports a failure, DataChanged when the data changed. The
 * response breaks off then too: nobody may take half a series for a whole one, or new data for what the tag names.
 */
export async function* frame(
  source: AsyncIterable<Buffer>,
  { before, after, ending, holds }: Pick<StreamAnswer, 'before' | 'after' | 'ending' | 'holds'>,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  yield Buffer.from(before)
  const held = yield* holdBack(source, HELD_BYTES)
  if (hasFailed(held)) {
    throw new DataError('storage', 'ClickHouse failed in the middle of an answer')
  }
  if (!isWhole(held, ending)) {
    throw new DataError('storage', 'ClickHouse broke off in the middle of an answer')
  }
  if (!(await holds(signal))) throw new DataChanged()
  yield held
  yield Buffer.from(after)
}

/** Copying more bytes than these with every small read would cost too much. */
const MOST_HELD_BYTES = 64 * 1024

/**
 * Passes bytes on as they come, without copying them, except for the last ones, which it returns: at least `least` of
 * them where there are so many.
 */
export async function* holdBack(source: AsyncIterable<Buffer>, least: number): AsyncGenerator<Buffer, Buffer> {
  let held: Buffer = Buffer.alloc(0)
  for await (const bytes of source) {
    if (bytes.length >= least) {
      if (held.length > 0) yield held
      held = bytes
      continue
    }
    held = Buffer.concat([held, bytes])
    if (held.length < MOST_HELD_BYTES) continue
    yield held.subarray(0, -least)
    held = held.subarray(-least)
  }
  return held
}

/**
 * Opens a long answer and waits for its first byte: a query that fails at once still gets a proper problem. Gives the
 * answer's bytes, whole in the frame around them.
 * @throws DataError `storage` when it fails before that; DataChanged when a snapshot is not what its digest tells of.
 */
export async function openFramed(answer: StreamAnswer, signal: AbortSignal): Promise<AsyncGenerator<Buffer>> {
  try {
    const source = await answer.open(signal)
    // It may break off when nobody waits for it any more, because the client has left: a failure that nobody hears of would
    // end the process.
    source.on('error', () => {})
    // An empty answer never becomes readable: it ends.
    await Promise.race(['readable', 'end'].map((event) => once(source, event, { signal })))
    if (!answer.isSnapshot) return frame(source, answer, signal)
    if (await answer.holds(signal)) return frame(source, { ...answer, holds: async () => true }, signal)
    source.destroy()
    throw new DataChanged()
  } catch (cause) {
    if (cause instanceof DataError) throw cause
    throw new DataError('storage', 'ClickHouse broke off before the first byte of an answer', { cause })
  }
}
