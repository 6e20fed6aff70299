import { DataError } from '../../shared/errors.ts'
import type { StreamAnswer } from './answer.ts'
import { holdBack } from './hold-back.ts'

/** How ClickHouse marks a failure inside an answer that it began as a success: newer and older versions. */
const FAILURE_MARKS = [Buffer.from('__exception__'), Buffer.from('DB::Exception')]

/** The data is no longer that which the answer's headers would tell of: made anew, the answer is whole. */
export class DataChanged extends DataError {
  constructor() {
    super('storage', 'The data changed in the middle of an answer')
  }
}

/**
 * Held back until the end is known to be right. ClickHouse says that it failed in the last bytes that it sends, 16 kB at
 * most; looking for that in all of a long answer would take a fifth of the time that sending it does.
 */
const HELD_BYTES = 32 * 1024

/** Whether bytes are the end of a whole answer: of a JSON array where none is given, of anything where there is none. */
function isWhole(end: Buffer, ending: StreamAnswer['ending']): boolean {
  if (ending === undefined) return end.toString('latin1').trimEnd().endsWith(']')
  return ending === null || end.subarray(-ending.length).equals(ending)
}

/**
 * Puts a frame around the JSON array, or the table, that ClickHouse writes. Its end is held back until `holds` says that
 * the data is still what the answer's headers tell of.
 * @throws DataError `storage` when the answer breaks off or reports a failure, DataChanged when it no longer holds, so
 * that the response breaks off too and nobody takes half a series, or one under another's entity tag, for a whole one.
 */
export async function* frame(
  source: AsyncIterable<Buffer>,
  { before, after, ending, holds }: Pick<StreamAnswer, 'before' | 'after' | 'ending' | 'holds'>,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  yield Buffer.from(before)
  const held = yield* holdBack(source, HELD_BYTES)
  if (FAILURE_MARKS.some((mark) => held.includes(mark))) {
    throw new DataError('storage', 'ClickHouse failed in the middle of an answer')
  }
  if (!isWhole(held, ending)) {
    throw new DataError('storage', 'ClickHouse broke off in the middle of an answer')
  }
  if (!(await holds(signal))) throw new DataChanged()
  yield held
  yield Buffer.from(after)
}
