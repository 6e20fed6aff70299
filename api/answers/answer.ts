import type { Readable } from 'node:stream'
import type { Database, Statement } from '../../shared/store/clickhouse.ts'
import type { Format } from './formats.ts'
import { withSignal } from './leaving.ts'

/** Maximum records (about a megabyte) of an answer that is cached as bytes; longer answers are streamed. */
export const MOST_KEPT = { tableRecords: 10_000, pricePoints: 5_000, indexPoints: 8_000, voters: 20_000 } as const

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

/** A complete answer. It is cached as bytes until one of its datasets changes. */
export interface BytesAnswer extends AnswerFacts {
  readonly body: Buffer
  /** Made without a database statement, so making it again is cheap. */
  readonly isQuick?: boolean
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
   * Starts the statements. They end with the signal, which also releases their resources. The caller must abort the
   * signal in the end.
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

export type Answer = BytesAnswer | StreamAnswer

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
