import type { FileHandle } from 'node:fs/promises'
import { Readable } from 'node:stream'
import type { Logger } from '../../shared/telemetry/log.ts'
import { openUnnamed, writeAt } from '../../shared/unnamed-file.ts'
import type { ClientKey, FairQueue } from '../admission/admission.ts'
import type { ByteRange } from '../http/negotiation.ts'
import { createSingleFlight, inTurn } from '../single-flight/single-flight.ts'
import type { RangedFile } from './send-file.ts'

/** Starts writing the bytes; stops when the signal is aborted. */
type Open = (signal: AbortSignal) => Promise<AsyncIterable<Buffer>>

export interface AnswerFiles {
  /** Whether the bytes that an entity tag names are on the disk. */
  has(tag: string): boolean
  /**
   * Returns the bytes that an entity tag names, as a file that stays at least until a range has been read or its reader is
   * closed; `open` writes them if they are not on the disk yet. Returns undefined
   * if there is no space or the disk fails. The caller must start reading in the same turn of the event loop. Rejects
   * with the reason of `signal` when the client disconnects.
   */
  get(tag: string, client: ClientKey, open: Open, signal: AbortSignal): Promise<RangedFile | undefined>
}

interface CachedFile {
  readonly file: FileHandle
  readonly length: number
  readers: number
  isGone: boolean
}

interface Options {
  readonly maxBytes: number
  readonly queue: FairQueue
  readonly log: Logger
  /** Opens the file for the bytes. Tests may replace it. */
  readonly openFile?: () => Promise<FileHandle>
}

/** Maximum number of files: each is open, and small files would not be limited by `maxBytes`. */
const MOST_FILES = 256

/** Bytes per read from the disk. */
const READ_BYTES = 64 * 1024

/**
 * Not a stream of the file itself: such a stream closes the file when its client disconnects, but other clients read
 * the file too.
 */
async function* readPart(file: FileHandle, { start, end }: ByteRange): AsyncGenerator<Buffer> {
  for (let at = start; at <= end; ) {
    const bytes = Buffer.allocUnsafe(Math.min(READ_BYTES, end + 1 - at))
    const { bytesRead } = await file.read(bytes, 0, bytes.length, at)
    if (bytesRead === 0) throw new Error('a temporary file is shorter than the bytes written to it')
    at += bytesRead
    yield bytes.subarray(0, bytesRead)
  }
}

/** Caches files while there is space: clients read a table in consecutive ranges. */
export function createAnswerFiles({ maxBytes, queue, log, openFile = openUnnamed }: Options): AnswerFiles {
  // Ordered by last use.
  const cached = new Map<string, CachedFile>()
  const singleFlight = createSingleFlight<CachedFile | undefined>(queue)
  let used = 0

  const close = (file: FileHandle) =>
    void file.close().catch((err: unknown) => log.warn({ err }, 'temporary file could not be closed'))
  const drop = (tag: string, entry: CachedFile) => {
    cached.delete(tag)
    used -= entry.length
    entry.isGone = true
    close(entry.file)
  }
  /** Evicts the least recently used files without readers until there is space for `bytes` and `files`. */
  const makeRoom = (bytes: number, files: number): boolean => {
    const isEnough = () => used + bytes <= maxBytes && cached.size + files <= MOST_FILES
    for (const [tag, entry] of cached) {
      if (isEnough()) break
      if (entry.readers === 0) drop(tag, entry)
    }
    return isEnough()
  }
  /** A disk failure counts as no space. */
  const onDisk = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work()
    } catch (err) {
      log.warn({ err }, 'answer cannot be cached on the disk')
      throw new NoRoom()
    }
  }
  const fill = async (file: FileHandle, open: Open, abandoned: AbortSignal): Promise<CachedFile> => {
    let length = 0
    try {
      for await (const bytes of await open(abandoned)) {
        if (!makeRoom(bytes.length, 0)) throw new NoRoom()
        used += bytes.length
        length += bytes.length
        await onDisk(() => writeAt(file, bytes, length - bytes.length))
      }
      if (!makeRoom(0, 1)) throw new NoRoom()
      // A concurrent request may be writing the same file.
      abandoned.throwIfAborted()
      return { file, length, readers: 0, isGone: false }
    } catch (error) {
      used -= length
      close(file)
      throw error
    }
  }
  const write = async (tag: string, open: Open, abandoned: AbortSignal): Promise<CachedFile | undefined> => {
    try {
      // Opens the file before the query, so that no query runs if its result cannot be stored.
      const entry = await fill(await onDisk(openFile), open, abandoned)
      cached.set(tag, entry)
      return entry
    } catch (error) {
      if (error instanceof NoRoom) return undefined
      throw error
    }
  }
  /** Protects a file from eviction until its caller starts reading: other writes may need space before that. */
  const hold = (entry: CachedFile): CachedFile => {
    entry.readers += 1
    setImmediate(() => {
      entry.readers -= 1
    })
    return entry
  }
  const toAnswerFile = (entry: CachedFile): RangedFile => ({
    length: entry.length,
    read: (range) => {
      entry.readers += 1
      return Readable.from(readPart(entry.file, range), { objectMode: false }).once('close', () => {
        entry.readers -= 1
      })
    },
  })
  return {
    has: (tag) => cached.has(tag),
    get: async (tag, client, open, signal) => {
      for (;;) {
        signal.throwIfAborted()
        const existing = cached.get(tag)
        if (existing !== undefined) {
          cached.delete(tag)
          cached.set(tag, existing)
        }
        const make = inTurn((abandoned) => write(tag, open, abandoned))
        const entry = existing ?? (await singleFlight.share(tag, make, { client }, signal).result)
        if (entry === undefined) return undefined
        // Another write may have evicted it already.
        if (!entry.isGone) return toAnswerFile(hold(entry))
      }
    },
  }
}

/** The file is larger than the available space, or the disk failed. */
class NoRoom extends Error {}
