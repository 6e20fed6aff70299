import { once } from 'node:events'
import type { Readable } from 'node:stream'
import { DataError } from '../../shared/errors.ts'
import { type Database, type Statement, withSignal } from '../../shared/store/store.ts'
import type { Format } from './representation.ts'

/** Maximum records (about a megabyte) of an answer that is cached as bytes; longer answers are streamed. */
export const MOST_CACHED = { tableRecords: 10_000, pricePoints: 5_000, indexPoints: 8_000, voters: 20_000 } as const

interface AnswerFacts {
  /** Time of the newest value used, in Unix milliseconds; null if the answer contains none. */
  readonly asOf: number | null
  /**
   * Time from which the data is stale, in Unix milliseconds; `undefined` derives it from the cadence, null is never.
   */
  readonly staleAt?: number | null
  /** Time at which the answer changes without a change event, in Unix milliseconds. */
  readonly expiresAt?: number
  readonly headers?: Readonly<Record<string, string>>
  /** The format, if it differs from the route's content type. */
  readonly format?: Format
}

/** A complete answer, cached as bytes until one of its datasets changes. */
export interface BytesAnswer extends AnswerFacts {
  readonly body: Buffer
  /** Made without a database statement, so making it again is cheap. */
  readonly isQuick?: boolean
}

/** A body that is assembled from cached parts on request, in the encoding of the client. */
export interface AssembledBody {
  /** Length of the text. */
  readonly length: number
  /** The opaque part of the entity tag: equal for equal texts of one request. */
  readonly tag: string
  /** Memory of the parts, in bytes. */
  readonly size: number
  /** Whether the answer is too long to be built and cached as bytes. Long answers are sent in several writes. */
  readonly isLong: boolean
  toText(): Buffer
  /** A cached answer takes longer to make, and is smaller. */
  toGzip(isCached: boolean): Buffer
  write(encoding: 'identity' | 'gzip'): Generator<Buffer>
}

/** A complete answer without a statement, except for parts that were read for it and are now cached. */
export interface AssembledAnswer extends AnswerFacts {
  readonly assembled: AssembledBody
}

/** A long answer: a frame around the output of ClickHouse, never completely in memory. */
export interface StreamAnswer extends AnswerFacts {
  /** Basis of the entity tag; differs whenever the bytes differ. */
  readonly digest: string
  readonly before: string
  readonly after: string
  /** The end of a complete stream. Default: the end of a JSON array. Null if the stream may be empty. */
  readonly ending?: Buffer | null
  /**
   * Starts the statements. An abort of the signal ends the statements and releases their resources. The caller must
   * abort the signal in the end.
   */
  open(signal: AbortSignal): Promise<Readable>
  /**
   * Whether one statement writes the whole answer. ClickHouse fixes the input of a statement before its first byte, so
   * later changes do not affect it.
   */
  readonly isSnapshot?: boolean
  /**
   * Whether the data still has that digest. Called after the last row was read, for a snapshot after the first byte.
   * ClickHouse has no snapshot across two queries: a change between the digest and the stream would send other bytes
   * under the same strong entity tag.
   */
  holds(signal: AbortSignal): Promise<boolean>
}

export type Answer = BytesAnswer | AssembledAnswer | StreamAnswer

const BYTE_ORDER_MARK = '\ufeff'

/** The same answer with a byte order mark before its bytes. An assembled answer is JSON, which has none. */
export function withByteOrderMark(answer: Answer): Answer {
  if ('body' in answer) return { ...answer, body: Buffer.concat([Buffer.from(BYTE_ORDER_MARK), answer.body]) }
  if ('assembled' in answer) return answer
  return { ...answer, before: BYTE_ORDER_MARK + answer.before, digest: `${answer.digest} bom` }
}

/** The statement that writes a long answer, and the check whether its data has changed. */
interface LongStatement {
  readonly statement: Omit<Statement, 'signal'> & { readonly format: string }
  /** Differs whenever the data differs. */
  readonly digest: string
  /** Reads the digest of the current data. */
  readDigest(db: Database): Promise<string | undefined>
}

/** Builds the `open` and `holds` functions of a long answer that one statement writes. */
export function toStream(
  db: Database,
  { statement, digest, readDigest }: LongStatement,
): Pick<StreamAnswer, 'open' | 'holds' | 'isSnapshot'> {
  return {
    // In a cluster each shard fixes its input when its part of the query starts.
    isSnapshot: db.cluster === undefined,
    open: (signal) => db.stream({ ...statement, signal, isLong: true }),
    holds: async (signal) => (await readDigest(withSignal(db, signal))) === digest,
  }
}

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
 * Number of last bytes that are buffered until they are verified. If ClickHouse fails, the last 16 kB that it
 * sends contain the error. Clients must not receive it, because it names statements and tables.
 */
const HELD_BYTES = 32 * 1024

/** Whether bytes end in the text of a failure. */
export const hasFailed = (end: Buffer) => FAILED.test(end.subarray(-FAILED_BYTES).toString('latin1'))

/** A temporary failure in the middle of an answer: unlike an unexpected shape, it has a cause. */
export const toBrokenOff = (name: string, reason: string) =>
  new DataError('storage', `ClickHouse, ${name}: the answer broke off`, { cause: new Error(reason) })

/** Whether the bytes are the end of a complete answer. */
function isComplete(end: Buffer, ending: StreamAnswer['ending']): boolean {
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
  if (hasFailed(held)) throw toBrokenOff('long answer', 'it ends in the text of a failure')
  if (!isComplete(held, ending)) throw toBrokenOff('long answer', 'it is incomplete')
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
async function* holdBack(source: AsyncIterable<Buffer>, least: number): AsyncGenerator<Buffer, Buffer> {
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

/**
 * Reads within the time limit of an answer, including the wait for a statement.
 * @throws DataError `storage`
 */
export async function inTime<T>(
  timeoutMs: number,
  read: (signal: AbortSignal) => Promise<T>,
  abandoned?: AbortSignal,
): Promise<T> {
  const late = AbortSignal.timeout(timeoutMs)
  try {
    return await read(abandoned === undefined ? late : AbortSignal.any([abandoned, late]))
  } catch (error) {
    if (error !== late.reason) throw error
    throw new DataError('storage', `ClickHouse: no answer within ${timeoutMs / 1000} s`, { cause: error })
  }
}
