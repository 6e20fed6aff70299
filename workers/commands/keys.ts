import { runCommand } from '../../shared/command.ts'
import { readCommandLine } from '../../shared/command-line.ts'
import { loadCommandConfig } from '../../shared/config/config.ts'
import { DataError } from '../../shared/errors.ts'
import { allowance } from '../../shared/keys/allowance.ts'
import { changeKeys, createKey, readKeys } from '../../shared/keys/key-file.ts'
import { isMain } from '../../shared/process.ts'
import { toShortTime, toTable } from '../terminal/text-table.ts'

const DEFAULT_LIMIT = '6000/60'

const HELP = `npm run keys -- create <name> [--limit <requests>/<seconds>]
npm run keys -- list
npm run keys -- revoke <id>

Keys of the API, in the file of API_KEYS_FILE. A new key is printed once, because the file contains only its hash. A
running API reads the file again within a second. The default of --limit is ${DEFAULT_LIMIT}.`

/**
 * Runs a key command and returns its output. `now` is in Unix milliseconds.
 * @throws DataError `payload` for an invalid command, `config` for an invalid file.
 */
export function runKeys(path: string, words: readonly string[], limit: string, now: number): string {
  const [what, subject, ...more] = words
  if (more.length > 0) throw new DataError('payload', `one name or id per run: ${more.join(', ')} is more`)
  if (what === 'list') return list(path)
  if (what !== 'create' && what !== 'revoke') throw new DataError('payload', HELP)
  if (subject === undefined || subject.trim() === '')
    throw new DataError('payload', `${what} takes ${what === 'create' ? 'a name' : 'an id'}`)
  return what === 'create' ? create(path, subject, limit, now) : revoke(path, subject, now)
}

function create(path: string, name: string, limit: string, now: number): string {
  const wrong = allowance.safeParse(limit).error?.issues[0]
  if (wrong !== undefined) throw new DataError('payload', `--limit ${wrong.message}`)
  const { key, stored } = createKey(name, limit, now)
  changeKeys(path, (keys) => [...keys, stored])
  return `${key}\n\nIt is not shown again. Send it as X-API-Key, or as Authorization: Bearer.`
}

function list(path: string): string {
  const rows = readKeys(path).map(({ id, name, limit, createdAt, revokedAt }) => [
    ...[id, name, limit, toShortTime(Date.parse(createdAt))],
    revokedAt === null ? '-' : toShortTime(Date.parse(revokedAt)),
  ])
  return toTable(['id', 'name', 'limit', 'created (UTC)', 'revoked'], rows)
}

function revoke(path: string, id: string, now: number): string {
  let revokedAt = new Date(now).toISOString()
  changeKeys(path, (keys) => {
    const found = keys.find((key) => key.id === id)
    if (found === undefined) throw new DataError('payload', `there is no key ${id}`)
    revokedAt = found.revokedAt ?? revokedAt
    return keys.map((key) => (key === found ? { ...key, revokedAt } : key))
  })
  return `${id} is revoked since ${toShortTime(Date.parse(revokedAt))}`
}

async function main(): Promise<void> {
  const { values, positionals } = readCommandLine({
    allowPositionals: true,
    options: { limit: { type: 'string', default: DEFAULT_LIMIT }, help: { type: 'boolean', default: false } },
  })
  if (values.help) return console.log(HELP)
  const { keysFile: path } = loadCommandConfig().api.limits
  if (path === undefined) throw new DataError('config', 'API_KEYS_FILE is not set: it names the file of the keys')
  console.log(runKeys(path, positionals, values.limit, Date.now()))
}

if (isMain(import.meta.url)) runCommand(main)
