import { DataError } from '../errors.ts'

type Environment = Readonly<Record<string, string | undefined>>

/**
 * Options of the commands that change what is done, and that npm has no use of its own for. `npm run` keeps them for itself
 * unless `--` stands before them.
 */
const OPTIONS = [
  ...['dry-run', 'check', 'from', 'to', 'interval', 'tokens', 'daos', 'again', 'fix', 'repair', 'into-existing'],
  ...['dataset', 'state', 'reason', 'limit', 'url', 'text', 'short', 'record'],
] as const

/**
 * Without an option that npm kept for itself the program would do something else than it was asked to.
 * @throws DataError `payload` that says how it is written.
 */
export function refuseSwallowed(env: Environment): void {
  if (env.npm_lifecycle_event === undefined) return
  const isTaken = (option: string) => Boolean(env[`npm_config_${option.replaceAll('-', '_')}`])
  const taken = OPTIONS.filter(isTaken).map((option) => `--${option}`)
  if (taken.length === 0) return
  const example = `npm run ${env.npm_lifecycle_event} -- ${taken[0]}`
  const names = taken.join(' and ')
  throw new DataError('payload', `npm took ${names} for itself: put -- before the options, as in ${example}`)
}
