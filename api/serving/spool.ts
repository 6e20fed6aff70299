import type { FileHandle } from 'node:fs/promises'
import type { Logger } from '../../shared/telemetry/log.ts'
import { openUnnamed, writeAt } from '../../shared/unnamed-file.ts'

/** Callbacks about an answer that passes through a spool. */
interface SpoolCallbacks {
  /** The source waits for the client for the first time because no disk space is left. */
  blocked(): void
  /** The source has ended or failed; the bytes not yet read by the client are in the spool. */
  ended(): void
}

/** Buffer space for bytes that clients have not read yet, shared by all answers. */
export interface Spools {
  /**
   * Yields the bytes of a source. The source is read at full speed while there is space, independent of the client's
   * speed.
   */
  through(source: AsyncIterable<Buffer>, callbacks: SpoolCallbacks): AsyncGenerator<Buffer>
}

/** Bytes of an answer buffered in memory before the disk is used. */
const MEMORY_BYTES = 256 * 1024
/** Bytes per read from the disk. */
const READ_BYTES = 64 * 1024
/**
 * Total time that a source waits for its client before the disk is used. A client that is about as fast as the source
 * needs no disk, and the disk would slow it down.
 */
const PATIENCE_MS = 500

/** Disk usage of all answers. */
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

/** A signal between two tasks: `wait` resolves at the next `ring`. */
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

/** The on-disk end of a queue of bytes; reads and writes alternate. */
function createTail(disk: Disk, open: () => Promise<FileHandle>) {
  let opening: Promise<FileHandle> | undefined
  let [from, to] = [0, 0]
  return {
    get isEmpty() {
      return from === to
    },
    /** @returns false when there is no space. */
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
      if (bytesRead === 0) throw new Error('a temporary file is shorter than the bytes written to it')
      from += bytesRead
      return bytes.subarray(0, bytesRead)
    },
    close: async () => {
      disk.release(to)
      // The client may disconnect while the file is being opened.
      const file = await opening?.catch(() => undefined)
      await file?.close()
    },
  }
}

/** The bytes of one answer between its source and its client: first those in memory, then those on the disk. */
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
      // Without a disk the source runs at the client's speed.
      log.warn({ err }, 'download cannot be buffered on the disk')
      return false
    }
  }
  /** Waits until the client has read something, within the source's waiting time. */
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
          // The client may have read everything during `append` and be waiting now: no `ring` would follow.
          if (!hasRoom()) await bell.wait()
        }
      }
    },
    /** No more bytes follow. The client's side receives `failure` at the end. */
    end: (how: { readonly failure?: unknown }) => {
      end = how
      bell.ring()
    },
    /** The client has disconnected or has everything. */
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
  /** Opens the file for waiting bytes. Tests may replace it. */
  readonly open?: () => Promise<FileHandle>
}

/** Creates spools with `maxBytes` of disk space in the system's folder for temporary files. */
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
        // The file may still be in use by a write.
        reading.then(spool.tail.close).catch((err: unknown) => log.warn({ err }, 'temporary file could not be closed'))
      }
    },
  }
}
