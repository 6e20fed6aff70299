import { once } from 'node:events'
import { DataError } from '../../shared/errors.ts'
import type { StreamAnswer } from './answer.ts'

/**
 * Matches the end of an answer that ClickHouse began with status 200 and then failed. Newer versions end the error with
 * a marker, older ones with their version number. No complete answer matches, because every format ends a text with a
 * quote or more. Inside a text the same words may occur, for example in the name of a token or in a proposal.
 */
const FAILED = /(?:__exception__|\(version \d[\w.]*(?: \(official build\))?\))\s*$/
/** Upper bound for the length of such an end. */
const FAILED_BYTES = 128

/**
 * The data changed while an answer was read, so its headers would describe the old data. The answer must be made again.
 */
export class DataChanged extends DataError {
  constructor() {
    super('storage', 'The data changed in the middle of an answer')
  }
}

/**
 * Number of last bytes held back until they are verified. When ClickHouse fails, the error is in the last 16 kB that it
 * sends and names statements and tables. None of it may reach clients.
 */
const HELD_BYTES = 32 * 1024

const hasFailed = (end: Buffer) => FAILED.test(end.subarray(-FAILED_BYTES).toString('latin1'))

/** Whether the bytes are the end of a complete answer. */
function isWhole(end: Buffer, ending: StreamAnswer['ending']): boolean {
  if (ending === undefined) return end.toString('latin1').trimEnd().endsWith(']')
  return ending === null || end.subarray(-ending.length).equals(ending)
}

/**
 * Puts a frame around the JSON array or table that ClickHouse writes. The end is held back until `holds` confirms that
 * the data still matches the answer's headers. On an error the response is aborted: clients must not mistake half a
 * series for a complete one, or new data for the data of the entity tag.
 * @throws DataError `storage` when the answer is incomplete or contains an error, DataChanged when the data changed.
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

/** Beyond this size, copying the held bytes with every small read would cost too much. */
const MOST_HELD_BYTES = 64 * 1024

/**
 * Yields bytes as they arrive, without copying, except for the last ones, which it returns: at least `least` bytes if
 * the source has that many.
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
 * Opens a long answer and waits for its first byte, so that a query that fails early still gets a problem response.
 * Returns the answer's bytes in their frame.
 * @throws DataError `storage` when it fails before the first byte; DataChanged when a snapshot does not match its
 * digest.
 */
export async function openFramed(answer: StreamAnswer, signal: AbortSignal): Promise<AsyncGenerator<Buffer>> {
  try {
    const source = await answer.open(signal)
    // The stream may fail after the client has disconnected and no code waits for it. An unhandled `error` event would
    // end the process.
    source.on('error', () => {})
    // An empty answer never becomes readable; it only ends.
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
