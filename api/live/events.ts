import type { LoggedCommit } from '../../shared/store/commit-log.ts'

/** How long a client waits before it comes back, in milliseconds. */
const RETRY_MS = 2_000

/** What a stream begins with: when to come back, and that it stands. */
export const OPENING = Buffer.from(`retry: ${RETRY_MS}\n: open\n\n`)

/** Says that the stream still stands. */
export const HEARTBEAT = Buffer.from(': still here\n\n')

/** From which version on a client resumes, without an event: a client that comes back tells the last that it saw. */
export const toMark = (version: string): Buffer => Buffer.from(`: still here\nid: ${version}\n\n`)

/** A commit as an event. */
export const toChange = ({ version, id: _, ...change }: LoggedCommit): Buffer =>
  Buffer.from(`id: ${version}\nevent: change\ndata: ${JSON.stringify(change)}\n\n`)

/** Tells that commits may have been missed: everything may have changed. */
export const toReset = (version: string): Buffer => Buffer.from(`id: ${version}\nevent: reset\ndata: {}\n\n`)
