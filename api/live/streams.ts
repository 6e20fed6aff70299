import type { ServerResponse } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import { type ChangeStream, isNewer, type StreamedChange } from '../../shared/store/store.ts'
import { onClose } from '../http/pipelining.ts'

/** Interval of a comment that keeps proxies from closing a silent connection (docs/contract.md, section 11). */
const HEARTBEAT_MS = 15_000
/** A client with more unread bytes is disconnected; it can reconnect and resume. */
const MOST_UNREAD_BYTES = 256 * 1024
/**
 * Maximum number of missed change events sent to a reconnecting client: some days of events. Reading twenty thousand
 * took up to 150 ms for each client that resumed from the beginning of the stream. A client that missed more than this
 * reads all data again anyway.
 */
const MOST_MISSED = 4_000
/** Pause before the change stream is read again while Redis is unavailable. */
const RETRY_MS = 1_000

/** The client's delay before it reconnects, in milliseconds. */
const RECONNECT_MS = 2_000

/** The first bytes of a stream: the reconnection delay, and a comment that it is open. */
export const OPENING = Buffer.from(`retry: ${RECONNECT_MS}\n: open\n\n`)

/** A comment that keeps the connection open. */
const HEARTBEAT = Buffer.from(': still here\n\n')

/** Sets the client's last event id without an event. The client sends it when it reconnects. */
const toMark = (version: string): Buffer => Buffer.from(`: still here\nid: ${version}\n\n`)

/** A change event in the format of the stream. */
const toChange = ({ version, id: _, ...change }: StreamedChange): Buffer =>
  Buffer.from(`id: ${version}\nevent: change\ndata: ${JSON.stringify(change)}\n\n`)

/** Reports that change events may have been missed: any data may have changed. */
const toReset = (version: string): Buffer => Buffer.from(`id: ${version}\nevent: reset\ndata: {}\n\n`)

/** A client's subscription and its position. */
interface Follower {
  readonly response: ServerResponse
  /** Undefined for every dataset. */
  readonly datasets: ReadonlySet<string> | undefined
  /** The last version sent to the client; undefined if the version was unknown when it connected. */
  version: string | undefined
}

export interface Streams {
  /**
   * Sends change events to a client, starting after its version. The response headers must be written already. No
   * events are buffered per client, only its position: missed events are read from the change stream.
   */
  open(follower: Follower): void
  /** Number of connected clients. */
  readonly count: number
  close(): void
}

/** Whether no more events can be sent: the client disconnected, or its stream was ended. */
const isOver = ({ response }: Follower): boolean => response.destroyed || response.writableEnded

/** Writes to a client; disconnects it if it does not read. */
function write(follower: Follower, bytes: Buffer): void {
  if (isOver(follower)) return
  const { response } = follower
  response.write(bytes)
  if (response.writableLength > MOST_UNREAD_BYTES) response.destroy()
}

/** Resolves when the client has read the written bytes or has disconnected. */
const untilTaken = ({ response }: Follower): Promise<void> =>
  new Promise((resolve) => {
    if (!response.writableNeedDrain || response.destroyed) return resolve()
    const taken = () => {
      response.off('drain', taken).off('close', taken)
      resolve()
    }
    response.once('drain', taken).once('close', taken)
  })

const isSubscribed = ({ datasets }: Follower, { dataset }: StreamedChange) => datasets?.has(dataset) ?? true

/** Change events with their bytes, which all clients share. */
const toEvents = (changeEvents: readonly StreamedChange[]) =>
  changeEvents.map((change) => ({ change, bytes: toChange(change) }))

function send(follower: Follower, events: ReturnType<typeof toEvents>): void {
  for (const { change, bytes } of events) {
    if (follower.version !== undefined && !isNewer(change.version, follower.version)) continue
    if (isSubscribed(follower, change)) write(follower, bytes)
    follower.version = change.version
  }
}

function reset(follower: Follower, version: string): void {
  write(follower, toReset(version))
  follower.version = version
}

/**
 * Sends missed events to a client, page by page as it reads, up to this process's position. Then calls `arrived`
 * synchronously, before further events are sent; never for a disconnected client. A client that missed too many events
 * gets a reset.
 */
async function catchUp(follower: Follower, changeStream: ChangeStream, arrived: () => void): Promise<void> {
  for (let missed = 0; !isOver(follower); ) {
    const { version } = follower
    if (version === undefined || version === changeStream.version) return arrived()
    if (missed >= MOST_MISSED && changeStream.version !== undefined && isNewer(changeStream.version, version)) {
      reset(follower, changeStream.version)
      continue
    }
    const changeEvents = await changeStream.after(version)
    if (changeEvents === 'away') await wait(RETRY_MS)
    else if (changeEvents === undefined) {
      if (changeStream.version === undefined) await wait(RETRY_MS)
      else reset(follower, changeStream.version)
    } else if (changeEvents.length > 0) {
      missed += changeEvents.length
      send(follower, toEvents(changeEvents))
    }
    // Another process may have sent the client newer events than this one has received.
    else if (changeStream.version === undefined || isNewer(version, changeStream.version)) return arrived()
    await untilTaken(follower)
  }
}

/**
 * The clients of the change stream. Each event is serialized once and sent to all clients. A reconnecting client reads
 * the missed events from the change stream and then follows like the others.
 */
export function createStreams(changeStream: ChangeStream, options: { readonly heartbeatMs?: number } = {}): Streams {
  const all = new Set<Follower>()
  /** Clients that are at this process's position. */
  const following = new Set<Follower>()
  const follow = (follower: Follower) => void catchUp(follower, changeStream, () => following.add(follower))
  changeStream.follow({
    changed: (changeEvents) => {
      const events = toEvents(changeEvents)
      for (const follower of following) send(follower, events)
    },
    missed: (version) => {
      for (const follower of [...following]) {
        // The change stream may still contain the missed events.
        if (follower.version === undefined) reset(follower, version)
        else if (following.delete(follower)) follow(follower)
      }
    },
  })
  const beat = () => {
    const { version } = changeStream
    const mark = version === undefined ? HEARTBEAT : toMark(version)
    for (const follower of following) {
      const isBehind = version !== undefined && follower.version !== undefined && !isNewer(follower.version, version)
      write(follower, isBehind ? mark : HEARTBEAT)
      if (isBehind) follower.version = version
    }
    for (const follower of all) if (!following.has(follower)) write(follower, HEARTBEAT)
  }
  const beats = setInterval(beat, options.heartbeatMs ?? HEARTBEAT_MS).unref()
  return {
    open: (follower) => {
      all.add(follower)
      onClose(follower.response, () => {
        all.delete(follower)
        following.delete(follower)
      })
      write(follower, OPENING)
      if (follower.version === undefined && changeStream.version !== undefined) {
        follower.version = changeStream.version
        write(follower, toMark(changeStream.version))
      }
      follow(follower)
    },
    get count() {
      return all.size
    },
    close: () => {
      clearInterval(beats)
      for (const { response } of all) response.end()
    },
  }
}
