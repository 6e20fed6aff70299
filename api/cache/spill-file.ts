import type { FileHandle } from 'node:fs/promises'
import { crc32 } from 'node:zlib'
import type { Logger } from '../../shared/telemetry/log.ts'
import { openUnnamed, writeAt } from '../../shared/unnamed-file.ts'

/**
 * Evicted values on the disk: the last ones that were written, each with the sources that it was read from. Reading one
 * takes a fraction of a statement's time.
 */
export interface SpillFile<Sources> {
  has(key: string): boolean
  /** Writes a value over the oldest ones. Does nothing if the value is there already. */
  put(key: string, sources: Sources, bytes: Buffer): void
  /** Returns the bytes of a value; undefined if they are no longer there, or the disk fails. */
  read(key: string): Promise<Buffer | undefined>
  /** Removes the values that were read from these sources. */
  drop(isDropped: (sources: Sources) => boolean): void
}

export interface SpillOptions {
  /** Size of the file. Less than `LEAST_FILE_BYTES` disables it. */
  readonly maxBytes: number
  readonly log: Logger
  /** Opens the file at the first eviction. Tests may replace it. */
  readonly openFile?: () => Promise<FileHandle>
}

/** Values that wait for the disk are in memory; if there are more, values are evicted without a copy. */
const MOST_UNWRITTEN_BYTES = 4 * 1024 * 1024
/** A value that waits for the disk is never overwritten. */
const LEAST_FILE_BYTES = 4 * MOST_UNWRITTEN_BYTES

/** Space is taken in pages: so small values, of which each has an entry in memory, are limited in number, too. */
const PAGE_BYTES = 4096

interface Place<Sources> {
  readonly sources: Sources
  readonly at: number
  readonly length: number
  readonly crc: number
  /** Set until the value is written. */
  unwritten: Buffer | undefined
}

/** Creates the file as a ring: the next value is written over the oldest ones. */
export function createSpillFile<Sources>({ maxBytes, log, openFile = openUnnamed }: SpillOptions): SpillFile<Sources> {
  /** In the order in which they were written. */
  const places = new Map<string, Place<Sources>>()
  let file: Promise<FileHandle> | undefined
  let isUsable = maxBytes >= LEAST_FILE_BYTES
  /** The end of the newest value. */
  let head = 0
  let unwrittenBytes = 0

  /** Ends the use of the file, and frees its space. */
  const fail = (err: unknown) => {
    if (!isUsable) return
    log.warn({ err }, 'evicted values cannot be cached on the disk')
    isUsable = false
    places.clear()
    // An error of the opening is logged above.
    file
      ?.then(
        (opened) => opened.close(),
        () => undefined,
      )
      .catch((error: unknown) => log.warn({ err: error }, 'temporary file could not be closed'))
  }
  /** Removes the oldest values with places from `head` up to `end`; newer ones are before `head`. */
  const clearTo = (end: number) => {
    for (const [name, { at }] of places) {
      if (at < head || at >= end) return
      places.delete(name)
    }
  }
  const write = async (place: Place<Sources>, bytes: Buffer) => {
    unwrittenBytes += bytes.length
    try {
      file ??= openFile()
      await writeAt(await file, bytes, place.at)
    } catch (error) {
      fail(error)
    } finally {
      place.unwritten = undefined
      unwrittenBytes -= bytes.length
    }
  }
  return {
    has: (key) => places.has(key),
    put: (key, sources, bytes) => {
      if (!isUsable || places.has(key) || unwrittenBytes + bytes.length > MOST_UNWRITTEN_BYTES) return
      const space = Math.ceil(bytes.length / PAGE_BYTES) * PAGE_BYTES
      if (head + space > maxBytes) {
        clearTo(maxBytes)
        head = 0
      }
      clearTo(head + space)
      const place = { sources, at: head, length: bytes.length, crc: crc32(bytes), unwritten: bytes }
      places.set(key, place)
      head += space
      void write(place, bytes)
    },
    read: async (key) => {
      const place = places.get(key)
      if (place === undefined || file === undefined) return undefined
      if (place.unwritten !== undefined) return place.unwritten
      const bytes = Buffer.allocUnsafeSlow(place.length)
      try {
        const { bytesRead } = await (await file).read(bytes, 0, place.length, place.at)
        // Another value may have been written there during the read, and a change event may have removed this one.
        if (places.get(key) !== place) return undefined
        if (bytesRead < place.length) throw new Error('a temporary file is shorter than the bytes written to it')
        if (crc32(bytes) !== place.crc) throw new Error('a temporary file has other bytes than were written to it')
        return bytes
      } catch (error) {
        fail(error)
        return undefined
      }
    },
    drop: (isDropped) => {
      for (const [key, { sources }] of places) if (isDropped(sources)) places.delete(key)
    },
  }
}
