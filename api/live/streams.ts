import type { ServerResponse } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import { type CommitLog, isNewer, type LoggedCommit } from '../../shared/store/commit-log.ts'
import { HEARTBEAT, OPENING, toChange, toMark, toReset } from './events.ts'

/** A comment so often keeps proxies from closing a silent connection (docs/contract.md, section 11). */
const HEARTBEAT_MS = 15_000
/** A client that leaves more than this unread is closed: it comes back, and resumes. */
const MOST_UNREAD_BYTES = 256 * 1024
/**
 * Most commits that a client is told of when it comes back: some days of them. To read twenty thousand took up to 150 ms,
 * each time that anybody came back to the beginning of the log; whoever missed so many reads everything anew anyway.
 */
const MOST_MISSED = 4_000
/** The pause before the log is asked again, while Redis does not answer. */
const AGAIN_MS = 1_000

/** What a client follows, and how far. */
interface Follower {
  readonly response: ServerResponse
  /** Undefined for every dataset. */
  readonly datasets: ReadonlySet<string> | undefined
  /** The last version that it knows of; undefined where nobody could tell when it came. */
  version: string | undefined
}

export interface Streams {
  /**
   * Sends commits to a client from now on, beginning with those after its version; its headers are written already. Nothing
   * is held for a client but its place: what it missed is read from the log.
   */
  open(follower: Follower): void
  /** How many clients follow. */
  readonly count: number
  close(): void
}

/** Whether nothing can be told to a client any more: it has left, or its stream was ended. */
const isOver = ({ response }: Follower): boolean => response.destroyed || response.writableEnded

/** Writes to a client, or closes it where it does not read. */
function write(follower: Follower, bytes: Buffer): void {
  if (isOver(follower)) return
  const { response } = follower
  response.write(bytes)
  if (response.writableLength > MOST_UNREAD_BYTES) response.destroy()
}

/** Once the client has taken what was written, or has left. */
const untilTaken = ({ response }: Follower): Promise<void> =>
  new Promise((resolve) => {
    if (!response.writableNeedDrain || response.destroyed) return resolve()
    const taken = () => {
      response.off('drain', taken).off('close', taken)
      resolve()
    }
    response.once('drain', taken).once('close', taken)
  })

const wants = ({ datasets }: Follower, { dataset }: LoggedCommit) => datasets?.has(dataset) ?? true

/** Commits with their bytes, which all clients share. */
const toEvents = (commits: readonly LoggedCommit[]) => commits.map((commit) => ({ commit, bytes: toChange(commit) }))

function send(follower: Follower, events: ReturnType<typeof toEvents>): void {
  for (const { commit, bytes } of events) {
    if (follower.version !== undefined && !isNewer(commit.version, follower.version)) continue
    if (wants(follower, commit)) write(follower, bytes)
    follower.version = commit.version
  }
}

function reset(follower: Follower, version: string): void {
  write(follower, toReset(version))
  follower.version = version
}

/**
 * Brings a client as far as the log was followed, a page at a time as it reads. `arrived` is called in the moment in which
 * that is so, before anything more is told; never for a client that has left. One that missed too many is reset.
 */
async function catchUp(follower: Follower, commitLog: CommitLog, arrived: () => void): Promise<void> {
  for (let missed = 0; !isOver(follower); ) {
    const { version } = follower
    if (version === undefined || version === commitLog.version) return arrived()
    if (missed >= MOST_MISSED && commitLog.version !== undefined && isNewer(commitLog.version, version)) {
      reset(follower, commitLog.version)
      continue
    }
    const commits = await commitLog.after(version)
    if (commits === 'away') await wait(AGAIN_MS)
    else if (commits === undefined) {
      if (commitLog.version === undefined) await wait(AGAIN_MS)
      else reset(follower, commitLog.version)
    } else if (commits.length > 0) {
      missed += commits.length
      send(follower, toEvents(commits))
    }
    // Another process may have told it of more than this one knows by now.
    else if (commitLog.version === undefined || isNewer(version, commitLog.version)) return arrived()
    await untilTaken(follower)
  }
}

/**
 * The clients that follow the log. Each event is written once and sent to all of them; a client that comes back reads
 * what it missed from the log, and then follows like the others.
 */
export function createStreams(commitLog: CommitLog, options: { readonly heartbeatMs?: number } = {}): Streams {
  const all = new Set<Follower>()
  /** Those of them that know as much as this process. */
  const following = new Set<Follower>()
  const follow = (follower: Follower) => void catchUp(follower, commitLog, () => following.add(follower))
  commitLog.follow({
    committed: (commits) => {
      const events = toEvents(commits)
      for (const follower of following) send(follower, events)
    },
    lost: (version) => {
      for (const follower of [...following]) {
        // Whether it missed anything the log may still tell.
        if (follower.version === undefined) reset(follower, version)
        else if (following.delete(follower)) follow(follower)
      }
    },
  })
  const beat = () => {
    const { version } = commitLog
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
      follower.response.once('close', () => {
        all.delete(follower)
        following.delete(follower)
      })
      write(follower, OPENING)
      if (follower.version === undefined && commitLog.version !== undefined) {
        follower.version = commitLog.version
        write(follower, toMark(commitLog.version))
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
