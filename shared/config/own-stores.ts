import { randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { z } from 'zod'
import { DataError, toReason } from '../errors.ts'

/** A user of a store. */
export interface Credentials {
  readonly name: string
  readonly password: string
}

const credentials = z.object({ name: z.string(), password: z.string().min(1) })

const clickhouseAccess = z.object({
  /** Address at the last start; absent before the first one. */
  url: z.string().optional(),
  writer: credentials,
  reader: credentials,
})
const redisAccess = z.object({ url: z.string().optional(), password: z.string().min(1) })

export type ClickHouseAccess = z.infer<typeof clickhouseAccess>
export type RedisAccess = z.infer<typeof redisAccess>

/**
 * Access data of the stores of a data folder. Each store writes its file when it is ready, readable for its owner only.
 * Every process over the same folder reads it, so passwords appear in no command line and no environment.
 */
export const ACCESS_FILE = 'access.json'
const toFile = (dir: string) => join(dir, ACCESS_FILE)

export const clickhouseDir = (dataDir: string) => join(dataDir, 'clickhouse')
export const redisDir = (dataDir: string) => join(dataDir, 'redis')

/** @throws DataError `config` if the file is unreadable or malformed. */
export const readClickHouseAccess = (dir: string) => readAccess(dir, clickhouseAccess)
/** @throws DataError `config` if the file is unreadable or malformed. */
export const readRedisAccess = (dir: string) => readAccess(dir, redisAccess)

function readAccess<S extends z.ZodType>(dir: string, schema: S): z.output<S> | undefined {
  const file = toFile(dir)
  try {
    return schema.parse(JSON.parse(readFileSync(file, 'utf8')))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw new DataError('config', `${file}: ${toAccessReason(error)}`)
  }
}

/** One line without the unparsed text, because it contains passwords. */
function toAccessReason(error: unknown): string {
  if (error instanceof SyntaxError) return 'invalid JSON'
  if (!(error instanceof z.ZodError)) return toReason(error)
  return error.issues.map(({ path, message }) => [path.join('.'), message].filter(Boolean).join(': ')).join('; ')
}

export const writeAccess = (dir: string, access: ClickHouseAccess | RedisAccess): void =>
  writePrivate(toFile(dir), access)

/** Replaces a file atomically: concurrent readers see the old or the new content. */
export function writePrivate(file: string, content: object): void {
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(`${file}.new`, `${JSON.stringify(content, null, 2)}\n`, { mode: 0o600 })
  renameSync(`${file}.new`, file)
}

/** Generates a password for a store without a configured one. */
export const createPassword = (): string => randomBytes(24).toString('base64url')

type Environment = Readonly<Record<string, string | undefined>>

/**
 * Completes an environment with the access data of its data folder: addresses that it does not set, and the passwords
 * of the stores that it names.
 */
export function withOwnStores(env: Environment): Environment {
  const dataDir = resolve(env.DATA_DIR || '.data')
  return {
    ...env,
    ...complete(env, toClickHouseSettings(readClickHouseAccess(clickhouseDir(dataDir)))),
    ...complete(env, toRedisSettings(readRedisAccess(redisDir(dataDir)))),
  }
}

/** The settings of a store; the first one is its address. */
type StoreSettings = readonly (readonly [name: string, value: string])[]

function toClickHouseSettings(access: ClickHouseAccess | undefined): StoreSettings {
  if (access?.url === undefined) return []
  const { url, writer, reader } = access
  return [
    ['CLICKHOUSE_URL', url],
    ['CLICKHOUSE_USER', writer.name],
    ['CLICKHOUSE_PASSWORD', writer.password],
    ['CLICKHOUSE_READ_USER', reader.name],
    ['CLICKHOUSE_READ_PASSWORD', reader.password],
  ]
}

const toRedisSettings = (access: RedisAccess | undefined): StoreSettings =>
  access?.url === undefined ? [] : [['REDIS_URL', access.url]]

function complete(env: Environment, settings: StoreSettings): Record<string, string> {
  const isUnset = (name: string) => !env[name] && !env[`${name}_FILE`]
  const [address] = settings
  if (address === undefined || !(isUnset(address[0]) || env[address[0]] === address[1])) return {}
  return Object.fromEntries(settings.filter(([name]) => isUnset(name)))
}
