import { type ParseArgsConfig, parseArgs } from 'node:util'
import { toNpmScript } from './config/started-by.ts'
import { DataError, toReason } from './errors.ts'

interface CommandLine extends ParseArgsConfig {
  readonly options: NonNullable<ParseArgsConfig['options']>
}

/**
 * Parses the options and words of a command. Rejects a repeated option, because Node's `parseArgs` keeps only its last
 * value.
 * @throws DataError `payload` if an option is unknown, lacks its value or is repeated.
 */
export function readCommandLine<const T extends CommandLine>(config: T): ReturnType<typeof parseArgs<T>> {
  try {
    const { tokens } = parseArgs({ ...config, tokens: true } as CommandLine & { tokens: true })
    const names = tokens.flatMap((token) => (token.kind === 'option' && token.value !== undefined ? [token.name] : []))
    const twice = names.find((name, at) => names.indexOf(name) !== at && config.options[name]?.multiple !== true)
    if (twice !== undefined) throw new TypeError(`--${twice} is set twice`)
    return parseArgs(config)
  } catch (error) {
    const script = toNpmScript()
    const hint = script === undefined ? '' : `\nSee: npm run ${script} -- --help`
    throw new DataError('payload', `${toReason(error)}${hint}`, { cause: error })
  }
}
