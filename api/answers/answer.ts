import type { Readable } from 'node:stream'
import type { Database, Statement } from '../../shared/store/clickhouse.ts'
import type { Format } from './formats.ts'
import { withSignal } from './leaving.ts'

/** Up to so many of these, about a megabyte, an answer is kept as bytes; a longer one is streamed. */
export const MOST_KEPT = { tableRecords: 10_000, pricePoints: 5_000, indexPoints: 8_000, voters: 20_000 } as const

interface AnswerFacts {
  /** Time of the newest datum used, in Unix milliseconds; null when the answer holds none. */
  readonly asOf: number | null
  /** From when on the data counts as stale, in Unix milliseconds; `undefined` follows the cadence, null is never. */
  readonly staleAt?: number | null
  /** From when on the clock alone makes the answer another one, in Unix milliseconds. */
  readonly expiresAt?: number
  readonly headers?: Readonly<Record<string, string>>
  /** How it is written, where that is not the route's content type. */
  readonly format?: Format
}

/** A whole answer: it is kept as bytes until one of its datasets changes. */
export interface BytesAnswer extends AnswerFacts {
  readonly body: Buffer
  /** Made without a statement, so that making it again costs little. */
  readonly isQuick?: boolean
}

/** A long answer: its frame around what ClickHouse writes, never whole in memory. */
export interface StreamAnswer extends AnswerFacts {
  /** What the entity tag is made of: it differs whenever the bytes do. */
  readonly digest: string
  readonly before: string
  readonly after: string
  /** What a whole stream ends with: the end of a JSON array unless it is given, and null where it may be empty. */
  readonly ending?: Buffer | null
  /**
   * Its statements end with the signal, and what is held for it is given back. Whoever opens it aborts the signal in
   * the end.
   */
  open(signal: AbortSignal): Promise<Readable>
  /**
   * One statement writes all of it: what it reads is settled before its first byte, so that what changes later does not
   * concern it.
   */
  readonly isSnapshot?: boolean
  /**
   * Whether the data still has that digest; asked after the last row was read, of a snapshot after the first byte.
   * ClickHouse has no snapshot that spans two queries: a commit between the digest and the stream would send other bytes
   * under the same strong entity tag.
   */
  holds(signal: AbortSignal): Promise<boolean>
}

export type Answer = BytesAnswer | StreamAnswer

/** The statement that writes a long answer, and what tells whether its data is still the same. */
interface LongStatement {
  readonly statement: Omit<Statement, 'signal'> & { readonly format: string }
  /** Differs whenever the data does. */
  readonly digest: string
  /** The digest of the data as it is now. */
  readDigest(db: Database): Promise<string | undefined>
}

/** How a long answer is opened that one statement writes, and how it is found to hold. */
export function toStream(
  db: Database,
  { statement, digest, readDigest }: LongStatement,
): Pick<StreamAnswer, 'open' | 'holds' | 'isSnapshot'> {
  return {
    // Each shard of a cluster begins when it is asked.
    isSnapshot: db.cluster === undefined,
    open: (signal) => db.stream({ ...statement, signal, isLong: true }),
    holds: async (signal) => (await readDigest(withSignal(db, signal))) === digest,
  }
}
