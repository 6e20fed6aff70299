import type { FileHandle } from 'node:fs/promises'
import type { Logger } from '../../shared/telemetry/log.ts'
import { openUnnamed, writeAt } from './unnamed-file.ts'

/** What is told of an answer on its way through a spool. */
interface Told {
  /** The first time that its source has to wait for the client: there is no room left on the disk. */
  blocked(): void
  /** Its source has ended, or failed: whatever the client has not taken yet is here. */
  ended(): void
}

/** Room for what clients have not taken yet, for all answers on their way together. */
export interface Spools {
  /** The bytes of a source, which is read as fast as it writes while there is room, however slow the client is. */
  through(source: AsyncIterable<Buffer>, told: Told): AsyncGenerator<Buffer>
}

/** So much of an answer waits in memory before any of it goes to the disk. */
const MEMORY_BYTES = 256 * 1024
/** What is read from the disk at once. */
const READ_BYTES = 64 * 1024
/**
 * So long, all in all, a source waits for its client before the disk is used: a client that is about as fast needs none,
 * and for it the way over the disk would be the longer one.
 */
const PATIENCE_MS = 500

/** The bytes on the disk of all answers together. */
function createDisk(maxBytes: number) {
  let used = 0
  return {
    claim: (bytes: number): boolean => {
      if (used + bytes > maxBytes) return false
      used += bytes
      return true
    },
    release: (bytes: number) => {
      used -= bytes
    },
  }
}

type Disk = ReturnType<typeof createDisk>

/** Somebody waits until somebody else rings. */
function createBell() {
  let ring = () => {}
  let rung = new Promise<void>((resolve) => {
    ring = resolve
  })
  return {
    wait: () => rung,
    ring: () => {
      const wake = ring
      rung = new Promise((resolve) => {
        ring = resolve
      })
      wake()
    },
  }
}

/** The end of a queue of bytes that is on the disk, read and written in turn. */
function createTail(disk: Disk, open: () => Promise<FileHandle>) {
  let opening: Promise<FileHandle> | undefined
  let [from, to] = [0, 0]
  return {
    get isEmpty() {
      return from === to
    },
    /** @returns false when there is no room. */
    append: async (bytes: Buffer): Promise<boolean> => {
      if (from === to && to > 0) {
        disk.release(to)
        from = 0
        to = 0
      }
      if (!disk.claim(bytes.length)) return false
      try {
        opening ??= open()
        await writeAt(await opening, bytes, to)
      } catch (error) {
        disk.release(bytes.length)
        throw error
      }
      to += bytes.length
      return true
    },
    read: async (): Promise<Buffer> => {
      const bytes = Buffer.allocUnsafe(Math.min(READ_BYTES, to - from))
      const { bytesRead = 0 } = (await (await opening)?.read(bytes, 0, bytes.length, from)) ?? {}
      if (bytesRead === 0) throw new Error('a temporary file has lost its end')
      from += bytesRead
      return bytes.subarray(0, bytesRead)
    },
    close: async () => {
      disk.release(to)
      // The client may leave while the file is being opened.
      const file = await opening?.catch(() => undefined)
      await file?.close()
    },
  }
}

/** The bytes of one answer between its source and its client: the first in memory, then those on the disk. */
function createSpool(disk: Disk, { log, open = openUnnamed }: SpoolOptions, onBlocked: () => void) {
  const memory: Buffer[] = []
  const tail = createTail(disk, open)
  const bell = createBell()
  let [inMemory, waitedMs, isOver] = [0, 0, false]
  let end: { readonly failure?: unknown } | undefined

  const append = async (bytes: Buffer): Promise<boolean> => {
    try {
      return await tail.append(bytes)
    } catch (err) {
      // Without a disk the source goes at the pace of its client.
      log.warn({ err }, 'a download cannot be kept on the disk')
      return false
    }
  }
  /** Waits until the client has taken something, for as long as a source may. */
  const waitShortly = async () => {
    const since = performance.now()
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, PATIENCE_MS - waitedMs)
    })
    await Promise.race([bell.wait(), late])
    clearTimeout(timer)
    waitedMs += performance.now() - since
  }
  const hasRoom = () => tail.isEmpty && inMemory < MEMORY_BYTES
  return {
    put: async (bytes: Buffer): Promise<void> => {
      while (!isOver) {
        if (hasRoom()) {
          memory.push(bytes)
          inMemory += bytes.length
          return bell.ring()
        }
        if (tail.isEmpty && waitedMs < PATIENCE_MS) await waitShortly()
        else if (await append(bytes)) return bell.ring()
        else {
          onBlocked()
          // The client may have taken all while the disk was asked, and waits now: nobody would ring.
          if (!hasRoom()) await bell.wait()
        }
      }
    },
    /** Nothing more comes; `failure` is what the client's side hears of at the end. */
    end: (how: { readonly failure?: unknown }) => {
      end = how
      bell.ring()
    },
    /** The client has gone, or has everything. */
    close: () => {
      isOver = true
      bell.ring()
    },
    tail,
    take: async function* (): AsyncGenerator<Buffer> {
      for (;;) {
        const bytes = memory.shift()
        if (bytes !== undefined) inMemory -= bytes.length
        const taken = bytes ?? (tail.isEmpty ? undefined : await tail.read())
        if (taken !== undefined) {
          bell.ring()
          yield taken
        } else if (end === undefined) await bell.wait()
        else if ('failure' in end) throw end.failure
        else return
      }
    },
  }
}

interface SpoolOptions {
  readonly maxBytes: number
  readonly log: Logger
  /** Where bytes go that wait, unless a test has a disk of its own. */
  readonly open?: () => Promise<FileHandle>
}

/** Spools with so many bytes of disk, in the system's folder for temporary files. */
export function createSpools(options: SpoolOptions): Spools {
  const { maxBytes, log } = options
  const disk = createDisk(maxBytes)
  return {
    through: async function* (source, { blocked, ended }) {
      let isBlocked = false
      const spool = createSpool(disk, options, () => {
        if (!isBlocked) blocked()
        isBlocked = true
      })
      const read = async () => {
        try {
          for await (const bytes of source) await spool.put(bytes)
          spool.end({})
        } catch (failure) {
          spool.end({ failure })
        } finally {
          ended()
        }
      }
      const reading = read()
      try {
        yield* spool.take()
      } finally {
        spool.close()
        // The file may still be written to.
        reading
          .then(spool.tail.close)
          .catch((err: unknown) => log.warn({ err }, 'a temporary file could not be closed'))
      }
    },
  }
}
