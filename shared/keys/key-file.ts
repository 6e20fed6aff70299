import { createHash, randomBytes } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { z } from 'zod'
import { DataError, toReason } from '../errors.ts'
import { replaceFile } from '../replace-file.ts'
import { allowance } from './allowance.ts'

/** Only the owner may read the file. */
const MODE = 0o600

const ID_BYTES = 4
const SECRET_BYTES = 24

/** A stored key: its hash, never the key itself. */
const stored = z.strictObject({
  id: z.string().regex(/^[0-9a-f]{8}$/),
  name: z.string().min(1),
  hash: z.string().regex(/^[0-9a-f]{64}$/),
  limit: z.string().refine((text) => allowance.safeParse(text).success, 'must be requests and seconds, such as 600/60'),
  createdAt: z.iso.datetime(),
  revokedAt: z.iso.datetime().nullable(),
})

export type StoredKey = z.infer<typeof stored>

const file = z.strictObject({ keys: z.array(stored) })

const KEY = /^daod_([0-9a-f]{8})_[0-9a-f]{48}$/

/** The id within a key; undefined for text that is not a key. */
export const toKeyId = (key: string): string | undefined => KEY.exec(key)?.[1]

/** A plain hash is enough, because a key has 192 random bits and cannot be guessed. */
export const toKeyHash = (key: string): Buffer => createHash('sha256').update(key).digest()

/**
 * Reads the keys of a file.
 * @throws DataError `config` if the file is missing, unreadable or not a key file.
 */
export function readKeys(path: string): readonly StoredKey[] {
  try {
    return file.parse(JSON.parse(readFileSync(path, 'utf8'))).keys
  } catch (cause) {
    const reason = cause instanceof z.ZodError ? z.prettifyError(cause) : toReason(cause)
    throw new DataError('config', `API_KEYS_FILE: ${path}: ${reason}`, { cause })
  }
}

/**
 * Changes the keys of a file; creates a missing file.
 * @throws DataError `config` if the file is not a key file, or as `replaceFile`.
 */
export function changeKeys(path: string, change: (keys: readonly StoredKey[]) => readonly StoredKey[]): void {
  const make = () => {
    const keys = change(existsSync(path) ? readKeys(path) : [])
    return `${JSON.stringify(file.parse({ keys }), null, 2)}\n`
  }
  replaceFile(path, make, { code: 'config', mode: MODE })
}

/** Creates a key and its stored record. Logs contain the id; the rest is secret. */
export function createKey(name: string, limit: string, now: number): { key: string; stored: StoredKey } {
  const id = randomBytes(ID_BYTES).toString('hex')
  const key = `daod_${id}_${randomBytes(SECRET_BYTES).toString('hex')}`
  const createdAt = new Date(now).toISOString()
  return { key, stored: { id, name, hash: toKeyHash(key).toString('hex'), limit, createdAt, revokedAt: null } }
}
