import { timingSafeEqual } from 'node:crypto'
import { existsSync, statSync } from 'node:fs'
import { toReason } from '../errors.ts'
import { type Allowance, allowance } from './allowance.ts'
import { readKeys, type StoredKey, toKeyHash, toKeyId } from './key-file.ts'

/** The holder of a key, and its allowance. */
export interface Holder {
  readonly id: string
  readonly name: string
  readonly allowance: Allowance
}

export interface KeyRing {
  /** The holder of a key; undefined for a wrong or revoked one. */
  find(key: string): Holder | undefined
  close(): void
}

/** The part of a logger that is used here. Its module imports the configuration, which imports this folder. */
interface Log {
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

/** Maximum delay until a new or revoked key takes effect. */
const POLL_MS = 1_000

interface ActiveKey extends Holder {
  readonly hash: Buffer
}

const toActiveKey = ({ id, name, hash, limit }: StoredKey): [string, ActiveKey] => [
  id,
  { id, name, hash: Buffer.from(hash, 'hex'), allowance: allowance.parse(limit) },
]

const readActiveKeys = (path: string) =>
  new Map(
    readKeys(path)
      .filter(({ revokedAt }) => revokedAt === null)
      .map(toActiveKey),
  )

/**
 * The keys of a file, which is read again after each change. If the file becomes invalid or disappears, that is logged
 * and the previous keys remain. At the start the file may be missing, which is logged: every key is rejected until the
 * file exists.
 * @throws DataError `config` if the file is invalid at the start.
 */
export function openKeyRing(path: string, log: Log): KeyRing {
  // Taken before the file is read: a change in between counts as a change.
  let seen = toState(path)
  const isThere = existsSync(path)
  if (!isThere) log.warn({ path }, 'API_KEYS_FILE: the file does not exist yet, so every key is rejected')
  let activeKeys = isThere ? readActiveKeys(path) : new Map<string, ActiveKey>()
  const poll = () => {
    const state = toState(path)
    if (state === seen) return
    seen = state
    try {
      activeKeys = readActiveKeys(path)
    } catch (error) {
      log.error({ reason: toReason(error) }, 'API_KEYS_FILE cannot be read: the previous keys remain valid')
    }
  }
  const timer = setInterval(poll, POLL_MS)
  timer.unref()
  return {
    find: (key) => {
      const one = activeKeys.get(toKeyId(key) ?? '')
      return one !== undefined && timingSafeEqual(one.hash, toKeyHash(key)) ? one : undefined
    },
    close: () => clearInterval(timer),
  }
}

/**
 * A value that differs whenever the file differs. Node's `fs.watch` may treat a file created during its start as an
 * existing one.
 */
function toState(path: string): string {
  try {
    const { ino, mtimeNs, size } = statSync(path, { bigint: true })
    return `${ino} ${mtimeNs} ${size}`
  } catch (error) {
    return toReason(error)
  }
}
