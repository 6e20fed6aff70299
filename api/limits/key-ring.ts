import { timingSafeEqual } from 'node:crypto'
import { existsSync, statSync } from 'node:fs'
import { toReason } from '../../shared/errors.ts'
import { type Allowance, allowance } from '../../shared/keys/allowance.ts'
import { readKeys, type StoredKey, toKeyHash, toKeyId } from '../../shared/keys/key-file.ts'
import type { Logger } from '../../shared/telemetry/log.ts'

/** Who a key is of, and what it may. */
export interface Holder {
  readonly id: string
  readonly name: string
  readonly allowance: Allowance
}

export interface KeyRing {
  /** The holder of a key; undefined for one that is wrong or revoked. */
  find(key: string): Holder | undefined
  close(): void
}

/** How soon a key that is made or revoked counts. */
const LOOK_MS = 1_000

interface Known extends Holder {
  readonly hash: Buffer
}

const toKnown = ({ id, name, hash, limit }: StoredKey): [string, Known] => [
  id,
  { id, name, hash: Buffer.from(hash, 'hex'), allowance: allowance.parse(limit) },
]

const readKnown = (path: string) =>
  new Map(
    readKeys(path)
      .filter(({ revokedAt }) => revokedAt === null)
      .map(toKnown),
  )

/**
 * The keys of a file, read again whenever it changes. A file that has become wrong, or is gone, is logged, and the keys stay.
 * At the start it may be missing, which is logged: every key is refused until it is there.
 * @throws DataError `config` when it is wrong at the start.
 */
export function openKeyRing(path: string, log: Logger): KeyRing {
  // Before it is read: what changes in between counts as a change.
  let seen = toState(path)
  const isThere = existsSync(path)
  if (!isThere) log.warn({ path }, 'API_KEYS_FILE: there is no such file yet: every key is refused')
  let known = isThere ? readKnown(path) : new Map<string, Known>()
  const look = () => {
    const state = toState(path)
    if (state === seen) return
    seen = state
    try {
      known = readKnown(path)
    } catch (error) {
      log.error({ reason: toReason(error) }, 'the file of keys cannot be read: the keys stay as they were')
    }
  }
  const timer = setInterval(look, LOOK_MS)
  timer.unref()
  return {
    find: (key) => {
      const one = known.get(toKeyId(key) ?? '')
      return one !== undefined && timingSafeEqual(one.hash, toKeyHash(key)) ? one : undefined
    },
    close: () => clearInterval(timer),
  }
}

/** What is another one whenever a file is. Node's own watching takes a file that is made while it begins for one that was there. */
function toState(path: string): string {
  try {
    const { ino, mtimeNs, size } = statSync(path, { bigint: true })
    return `${ino} ${mtimeNs} ${size}`
  } catch (error) {
    return toReason(error)
  }
}
