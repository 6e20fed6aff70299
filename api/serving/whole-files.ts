import type { FileHandle } from 'node:fs/promises'
import { Readable } from 'node:stream'
import type { Logger } from '../../shared/telemetry/log.ts'
import type { ByteRange } from '../http/range.ts'
import { createFlights } from './flight.ts'
import type { Asker } from './lines.ts'
import type { Queue } from './queue.ts'
import { openUnnamed, writeAt } from './unnamed-file.ts'

/** A long answer that is on the disk as a whole. */
export interface WholeFile {
  readonly length: number
  /** A part of it; the file stays at least until the part has been read or given up. */
  read(range: ByteRange): Readable
}

/** Begins to write the bytes, until the signal is aborted. */
type Open = (signal: AbortSignal) => Promise<AsyncIterable<Buffer>>

export interface WholeFiles {
  /**
   * The bytes that an entity tag names, written by `open` where they are not there yet; undefined where there is no room, or
   * the disk fails. They are to be read in the turn of the loop in which they are given. Rejects with the reason of `left` when the client leaves.
   */
  get(tag: string, asker: Asker, open: Open, left: AbortSignal): Promise<WholeFile | undefined>
}

interface Kept {
  readonly file: FileHandle
  readonly length: number
  readers: number
  isGone: boolean
}

interface Options {
  readonly maxBytes: number
  readonly queue: Queue
  readonly log: Logger
  /** Where the bytes go, unless a test has a disk of its own. */
  readonly openFile?: () => Promise<FileHandle>
}

/** Most files that are kept: each is open, and small ones would be as many as there is room for. */
const MOST_FILES = 256

/** What is read from the disk at once. */
const READ_BYTES = 64 * 1024

/** Not a stream of the file itself: when its client leaves it closes the file, which others read too. */
async function* readPart(file: FileHandle, { start, end }: ByteRange): AsyncGenerator<Buffer> {
  for (let at = start; at <= end; ) {
    const bytes = Buffer.allocUnsafe(Math.min(READ_BYTES, end + 1 - at))
    const { bytesRead } = await file.read(bytes, 0, bytes.length, at)
    if (bytesRead === 0) throw new Error('a temporary file has lost its end')
    at += bytesRead
    yield bytes.subarray(0, bytesRead)
  }
}

/** Files that are kept while there is room: whoever reads a part of a table comes back for the next. */
export function createWholeFiles({ maxBytes, queue, log, openFile = openUnnamed }: Options): WholeFiles {
  // In the order in which they were asked for.
  const kept = new Map<string, Kept>()
  const flights = createFlights<Kept | undefined>(queue)
  let used = 0

  const close = (file: FileHandle) =>
    void file.close().catch((err: unknown) => log.warn({ err }, 'a temporary file could not be closed'))
  const drop = (tag: string, entry: Kept) => {
    kept.delete(tag)
    used -= entry.length
    entry.isGone = true
    close(entry.file)
  }
  /** Gives up what nobody reads and has been asked for least lately, until there is room for as many bytes and files. */
  const makeRoom = (bytes: number, files: number): boolean => {
    const isEnough = () => used + bytes <= maxBytes && kept.size + files <= MOST_FILES
    for (const [tag, entry] of kept) {
      if (isEnough()) break
      if (entry.readers === 0) drop(tag, entry)
    }
    return isEnough()
  }
  /** Without a disk there is no room. */
  const onDisk = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work()
    } catch (err) {
      log.warn({ err }, 'an answer cannot be kept on the disk')
      throw new NoRoom()
    }
  }
  const fill = async (file: FileHandle, open: Open, abandoned: AbortSignal): Promise<Kept> => {
    let length = 0
    try {
      for await (const bytes of await open(abandoned)) {
        if (!makeRoom(bytes.length, 0)) throw new NoRoom()
        used += bytes.length
        length += bytes.length
        await onDisk(() => writeAt(file, bytes, length - bytes.length))
      }
      if (!makeRoom(0, 1)) throw new NoRoom()
      // Somebody else may be writing the same by now.
      abandoned.throwIfAborted()
      return { file, length, readers: 0, isGone: false }
    } catch (error) {
      used -= length
      close(file)
      throw error
    }
  }
  const write = async (tag: string, open: Open, abandoned: AbortSignal): Promise<Kept | undefined> => {
    try {
      // First, so that nothing is asked of ClickHouse that cannot be kept.
      const entry = await fill(await onDisk(openFile), open, abandoned)
      kept.set(tag, entry)
      return entry
    } catch (error) {
      if (error instanceof NoRoom) return undefined
      throw error
    }
  }
  /** Keeps a file until whoever was given it reads: what others write may need its room before that. */
  const hold = (entry: Kept): Kept => {
    entry.readers += 1
    setImmediate(() => {
      entry.readers -= 1
    })
    return entry
  }
  const toWhole = (entry: Kept): WholeFile => ({
    length: entry.length,
    read: (range) => {
      entry.readers += 1
      return Readable.from(readPart(entry.file, range), { objectMode: false }).once('close', () => {
        entry.readers -= 1
      })
    },
  })
  return {
    get: async (tag, asker, open, left) => {
      for (;;) {
        left.throwIfAborted()
        const known = kept.get(tag)
        if (known !== undefined) {
          kept.delete(tag)
          kept.set(tag, known)
        }
        const make = (abandoned: AbortSignal) => write(tag, open, abandoned)
        const entry = known ?? (await flights.board(tag, make, asker).flight.join(left))
        if (entry === undefined) return undefined
        // Another one may have needed its room already.
        if (!entry.isGone) return toWhole(hold(entry))
      }
    },
  }
}

/** What is to be kept is larger than the room for it, or the disk does not take it. */
class NoRoom extends Error {}
