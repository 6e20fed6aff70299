import { DataError } from '../errors.ts'

type Environment = Readonly<Record<string, string | undefined>>

/**
 * The options of all commands except `--json`, `--force` and `--help`, which npm also has as settings. `npm run` takes
 * each of them for itself unless `--` precedes it. Programs without options reject them too.
 */
const OPTIONS = [
  ...['dry-run', 'check', 'from', 'to', 'interval', 'tokens', 'daos', 'again', 'fix', 'repair', 'repair-lost'],
  ...['schema', 'into-existing', 'hostile', 'minutes', 'keep-days', 'only'],
  ...['dataset', 'state', 'reason', 'limit', 'url', 'text', 'short', 'record', 'timeout', 'at', 'data', 'explained'],
  ...['requests', 'seed', 'at-once', 'against', 'leaving', 'list', 'quick', 'rows', 'postgres'],
  ...['apply', 'accept', 'provider', 'recordings', 'token', 'without-raw-answers'],
] as const

/**
 * Throws if npm has taken an option for itself: the program would run without it.
 * @throws DataError `payload` that shows the correct command line.
 */
export function refuseSwallowed(env: Environment = process.env): void {
  if (env.npm_lifecycle_event === undefined) return
  const isTaken = (option: string) => Boolean(env[`npm_config_${option.replaceAll('-', '_')}`])
  const taken = OPTIONS.filter(isTaken).map((option) => `--${option}`)
  if (taken.length === 0) return
  const example = `npm run ${env.npm_lifecycle_event} -- ${taken[0]}`
  const names = taken.join(' and ')
  throw new DataError('payload', `npm parsed ${names} as its own option: put -- before the options, as in ${example}`)
}
