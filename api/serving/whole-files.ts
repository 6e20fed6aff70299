import type { FileHandle } from 'node:fs/promises'
import type { Readable } from 'node:stream'
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

export interface WholeFiles {
  /**
   * The bytes that an entity tag names, written by `open` where they are not there yet; undefined where there is no room.
   * Rejects with the reason of `left` when the client leaves.
   */
  get(
    tag: string,
    asker: Asker,
    open: (signal: AbortSignal) => Promise<AsyncIterable<Buffer>>,
    left: AbortSignal,
  ): Promise<WholeFile | undefined>
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
}

/** Files that are kept while there is room: whoever reads a part of a table comes back for the next. */
export function createWholeFiles({ maxBytes, queue, log }: Options): WholeFiles {
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
  /** Makes room by giving up what nobody reads and has been asked for least lately. */
  const claim = (bytes: number): boolean => {
    for (const [tag, entry] of kept) {
      if (used + bytes <= maxBytes) break
      if (entry.readers === 0) drop(tag, entry)
    }
    if (used + bytes > maxBytes) return false
    used += bytes
    return true
  }
  const write = async (tag: string, source: AsyncIterable<Buffer>): Promise<Kept | undefined> => {
    const file = await openUnnamed()
    let length = 0
    try {
      for await (const bytes of source) {
        if (!claim(bytes.length)) throw new NoRoom()
        length += bytes.length
        await writeAt(file, bytes, length - bytes.length)
      }
    } catch (error) {
      used -= length
      close(file)
      if (error instanceof NoRoom) return undefined
      throw error
    }
    const entry = { file, length, readers: 0, isGone: false }
    kept.set(tag, entry)
    return entry
  }
  const toWhole = (entry: Kept): WholeFile => ({
    length: entry.length,
    read: ({ start, end }) => {
      entry.readers += 1
      const stream = entry.file.createReadStream({ start, end, autoClose: false })
      return stream.once('close', () => {
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
        const make = async (abandoned: AbortSignal) => write(tag, await open(abandoned))
        const entry = known ?? (await flights.board(tag, make, asker).flight.join(left))
        if (entry === undefined) return undefined
        // Another one may have needed its room already.
        if (!entry.isGone) return toWhole(entry)
      }
    },
  }
}

/** What is to be kept is larger than the room for it. */
class NoRoom extends Error {}
