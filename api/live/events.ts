import type { LoggedCommit } from '../../shared/store/commit-log.ts'

/** The client's delay before it reconnects, in milliseconds. */
const RETRY_MS = 2_000

/** The first bytes of a stream: the reconnection delay, and a comment that it is open. */
export const OPENING = Buffer.from(`retry: ${RETRY_MS}\n: open\n\n`)

/** A comment that keeps the connection open. */
export const HEARTBEAT = Buffer.from(': still here\n\n')

/** Sets the client's last event id without an event. The client sends it when it reconnects. */
export const toMark = (version: string): Buffer => Buffer.from(`: still here\nid: ${version}\n\n`)

/** A change event in the format of the stream. */
export const toChange = ({ version, id: _, ...change }: LoggedCommit): Buffer =>
  Buffer.from(`id: ${version}\nevent: change\ndata: ${JSON.stringify(change)}\n\n`)

/** Reports that change events may have been missed: any data may have changed. */
export const toReset = (version: string): Buffer => Buffer.from(`id: ${version}\nevent: reset\ndata: {}\n\n`)
