import { DataError } from '../errors.ts'

type Environment = Readonly<Record<string, string | undefined>>

/**
 * The options of all commands but `--json`, `--force` and `--help`, which npm has in its own settings too. `npm run` keeps each
 * for itself unless `--` stands before it. A part that takes none is refused them as well.
 */
const OPTIONS = [
  ...['dry-run', 'check', 'from', 'to', 'interval', 'tokens', 'daos', 'again', 'fix', 'repair', 'repair-lost'],
  ...['into-existing', 'hostile', 'minutes'],
  ...['dataset', 'state', 'reason', 'limit', 'url', 'text', 'short', 'record', 'timeout', 'at', 'data', 'explained'],
  ...['requests', 'seed', 'at-once', 'against', 'leaving', 'list', 'quick', 'rows', 'postgres'],
] as const

/**
 * Without an option that npm kept for itself the program would do something else than it was asked to.
 * @throws DataError `payload` that says how it is written.
 */
export function refuseSwallowed(env: Environment = process.env): void {
  if (env.npm_lifecycle_event === undefined) return
  const isTaken = (option: string) => Boolean(env[`npm_config_${option.replaceAll('-', '_')}`])
  const taken = OPTIONS.filter(isTaken).map((option) => `--${option}`)
  if (taken.length === 0) return
  const example = `npm run ${env.npm_lifecycle_event} -- ${taken[0]}`
  const names = taken.join(' and ')
  throw new DataError('payload', `npm took ${names} for itself: put -- before the options, as in ${example}`)
}
