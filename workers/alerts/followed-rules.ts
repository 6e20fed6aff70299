import { statSync } from 'node:fs'
import { readVariable } from '../../shared/config/config.ts'
import { createRedactor } from '../../shared/config/secrets.ts'
import { DataError, toReason } from '../../shared/errors.ts'
import type { Logger } from '../../shared/telemetry/log.ts'
import { type RuleGroup, toGroups } from './evaluation.ts'
import { findChannelSecrets, type ReadRules, readRules } from './rules-file.ts'

/** The names of rules and channels, as in messages. */
const toNames = ({ rules: { rules, channels } }: ReadRules) => [
  ...rules.map(({ name }) => `rule ${name}`),
  ...Object.keys(channels).map((name) => `channel ${name}`),
]

const howToConfirm = 'Complete the file, or confirm it by a last line "..."'

/**
 * Refuses a changed file that may be incomplete, because its writer has not finished or has failed. YAML without an end
 * is valid wherever it is cut: the end of a rule, a rule or all rules may be missing.
 * @throws DataError `config`
 */
function requireWhole(next: ReadRules, previous: ReadRules): void {
  if (next.isWhole) return
  const [text, before] = [next.text.trimEnd(), previous.text.trimEnd()]
  const isCut = text.length < before.length && before.startsWith(text)
  if (isCut || (previous.text.endsWith('\n') && !next.text.endsWith('\n')))
    throw new DataError('config', `ALERTS_FILE: the file ends early. ${howToConfirm}`)
  const names = new Set(toNames(next))
  const missing = toNames(previous).filter((name) => !names.has(name))
  if (missing.length > 0 && !text.endsWith(previous.lastEntry))
    throw new DataError('config', `ALERTS_FILE: the file has no ${missing.join(', ')}. ${howToConfirm}`)
}

/**
 * The rules of the file, loaded again when it changes. A file with mistakes, or one that may be incomplete, leaves the
 * rules as they were.
 * @throws DataError `config` for a file with mistakes.
 */
export function followRules(file: string, log: Logger) {
  const toStamp = () => {
    const { mtimeMs, size, ino } = statSync(file)
    return `${mtimeMs} ${size} ${ino}`
  }
  // Taken before the file is read: a change in between counts as a change.
  let stamp = toStamp()
  let current = readRules(file, readVariable)
  // Without an earlier content, only the end of the file proves that it is complete.
  let isConfirmed = current.isWhole
  let groups = toGroups(current.rules.rules)
  let redact = createRedactor(findChannelSecrets(current.rules))
  let loggedReason = ''
  const report = (reason: string, message: string) => {
    // Every job looks at the file: a reason is logged once.
    if (reason !== loggedReason) log.error({ file, reason }, message)
    loggedReason = reason
  }
  return {
    get rules() {
      return current.rules
    },
    get groups(): ReadonlyMap<string, RuleGroup> {
      return groups
    },
    /** Whether rules that are not in the file are removed. Else they may be in a part that is missing. */
    get isConfirmed() {
      return isConfirmed
    },
    /** Takes the stored rules that are not in the file. */
    compared: (missing: readonly string[]) => {
      if (missing.length === 0) isConfirmed = true
      else if (!isConfirmed)
        report(
          `ALERTS_FILE: the file has no rule ${missing.join(', ')}. ${howToConfirm}`,
          'rules are not evaluated, and not removed either: the file may be incomplete',
        )
    },
    redact: (text: string) => redact(text),
    refresh: (): void => {
      try {
        const newest = toStamp()
        if (newest === stamp) return
        stamp = newest
        const next = readRules(file, readVariable)
        requireWhole(next, current)
        isConfirmed = next.isWhole || isConfirmed
        current = next
        groups = toGroups(next.rules.rules)
        redact = createRedactor(findChannelSecrets(next.rules))
        loggedReason = ''
        log.info({ file, rules: next.rules.rules.length }, 'alert rules loaded')
      } catch (error) {
        report(toReason(error), 'the changed alert rules are not used: the previous rules stay active')
      }
    },
  }
}
