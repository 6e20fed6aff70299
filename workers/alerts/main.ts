import { parse } from 'yaml'
import { requireMigrated } from '../../clickhouse/migrations.ts'
import { runCommand } from '../../shared/command.ts'
import { readCommandLine } from '../../shared/command-line.ts'
import { type Config, loadCommandConfig, readVariable } from '../../shared/config/config.ts'
import { createRedactor } from '../../shared/config/secrets.ts'
import { DataError, toReason } from '../../shared/errors.ts'
import { isMain } from '../../shared/process.ts'
import { createDatabase, type Database, readRegistry } from '../../shared/store/store.ts'
import { toShortTime, toTable } from '../terminal/text-table.ts'
import { buildRequest } from './channels.ts'
import { readList } from './conditions/lists.ts'
import { reviveDead } from './delivery.ts'
import { toStoredReason } from './outcome.ts'
import { findUnknown } from './rule-entities.ts'
import type { Rule, RulesFile } from './rules.ts'
import { editRules, findChannelSecrets, loadRules } from './rules-file.ts'
import { createSend } from './send.ts'
import { createAlertStore } from './state.ts'
import type { StoredFiring } from './state-rows.ts'

const HELP = `npm run alerts -- list | check
npm run alerts -- test <rule>
npm run alerts -- add '<rule as YAML or JSON>'
npm run alerts -- pause | resume | remove <rule>
npm run alerts -- dead | retry

The rules of alerts are in the file that ALERTS_FILE names. A running worker reads a changed file within a minute.

  list      prints the rules with their state
  check     checks the file, that each name and category of a rule exists, and each filter of a list with the API
  test      sends a sample message to each channel of a rule and prints the answers
  add       appends a rule, for example '{name: uni, what: {kind: level, series: price, above: 10}, to: [ops]}'
  pause     keeps a rule in the file and does not evaluate it; resume ends that, and the rule begins anew
  remove    deletes a rule from the file
  dead      prints the messages that could not be delivered for a day
  retry     sends these messages again, under their old ids

  --json
  --help`

interface Output {
  readonly text: string
  readonly json: unknown
  readonly isFailed?: boolean
}

type Action = (context: {
  readonly config: Config
  readonly file: string
  readonly target: string
}) => Output | Promise<Output>

async function withDatabase<T>(
  config: Config,
  access: 'read' | 'write',
  work: (db: Database) => Promise<T>,
): Promise<T> {
  const db = createDatabase(config.clickhouse, access)
  try {
    await requireMigrated(db)
    return await work(db)
  } finally {
    await db.close()
  }
}

const list: Action = async ({ config, file }) => {
  const { rules } = loadRules(file, readVariable)
  const stored = await withDatabase(config, 'read', (db) => createAlertStore(db).readRules())
  const rows = rules.map(({ name, what, to, paused, description }) => {
    const state = paused ? 'paused' : stored.get(name)?.state === 'active' ? 'active' : 'new'
    return { rule: name, kind: what.kind, state, since: stored.get(name)?.beganAt ?? null, to, description }
  })
  const table = rows.map(({ rule, kind, state, since, to, description }) => [
    ...[rule, kind, state, since === null || since === 0 ? '-' : toShortTime(since), to.join(', ') || '-', description],
  ])
  return { text: toTable(['rule', 'kind', 'state', 'since (UTC)', 'to', 'description'], table), json: rows }
}

/** Checks what the file alone cannot show. A store or an API that does not answer leaves a rule unchecked. */
async function findMistakes(
  config: Config,
  { rules }: RulesFile,
): Promise<{ mistakes: string[]; unchecked: string[] }> {
  const [mistakes, unchecked]: [string[], string[]] = [[], []]
  try {
    const registry = await withDatabase(config, 'read', (db) => readRegistry(db))
    mistakes.push(...rules.flatMap((rule) => findUnknown(rule, registry)))
  } catch (error) {
    unchecked.push(`names and categories: ${toReason(error)}`)
  }
  for (const { name, what } of rules) {
    if (what.kind !== 'list') continue
    try {
      await readList(what, config.alerts.apiUrl ?? config.api.publicUrl, 1)
    } catch (error) {
      const isOfRule = error instanceof DataError && error.code === 'config'
      ;(isOfRule ? mistakes : unchecked).push(`rule ${name}: ${toReason(error)}`)
    }
  }
  return { mistakes, unchecked }
}

const check: Action = async ({ config, file }) => {
  const loaded = loadRules(file, readVariable)
  const { mistakes, unchecked } = await findMistakes(config, loaded)
  const lines = [...mistakes, ...unchecked.map((one) => `not checked: ${one}`)]
  const counted = `${file}: ${loaded.rules.length} rules, ${Object.keys(loaded.channels).length} channels, ${mistakes.length} mistakes`
  return { text: [...lines, counted].join('\n'), json: { file, mistakes, unchecked }, isFailed: mistakes.length > 0 }
}

function findRule({ rules }: RulesFile, name: string): Rule {
  const rule = rules.find((one) => one.name === name)
  if (rule !== undefined) return rule
  throw new DataError('payload', `there is no rule ${JSON.stringify(name)}: ${rules.map((one) => one.name).join(', ')}`)
}

const toSample = ({ name, what, to }: Rule, now: number): StoredFiring => ({
  ...{ rule: name, id: 'test', kind: what.kind, firedAt: now, dueAt: now, channels: to, isDigest: false },
  ...{ title: `Test of the rule ${name}`, text: 'A sample message. Nothing has happened.' },
  ...{ entityType: '', entityId: '', entityName: '', observedAt: null, value: null, before: null, threshold: null },
  ...{ unit: '', page: '/', request: '/data/status' },
})

const test: Action = async ({ config, file, target }) => {
  const loaded = loadRules(file, readVariable)
  const rule = findRule(loaded, target)
  if (rule.to.length === 0) throw new DataError('payload', `rule ${rule.name} has no channels: add some as "to"`)
  const send = createSend(config.alerts.privateNetworks)
  const redact = createRedactor(findChannelSecrets(loaded))
  const now = Date.now()
  const message = { id: `test-${now}`, type: 'alert.test' as const, rule: rule.name, firings: [toSample(rule, now)] }
  const answers = await Promise.all(
    rule.to.map(async (name) => {
      const channel = loaded.channels[name]
      if (channel === undefined) throw new DataError('config', `there is no channel ${name}`)
      const { smtpName } = config.alerts
      const request = buildRequest(channel, message, { publicUrl: config.api.publicUrl, smtpName, now })
      const { isDelivered, status, reason, body } = await send(request, new AbortController().signal)
      return {
        ...{ channel: name, type: channel.type, isDelivered, status },
        ...{ reason: toStoredReason(reason, redact), answer: toStoredReason(body, redact) },
      }
    }),
  )
  const lines = answers.map(({ channel, type, isDelivered, status, reason, answer }) => {
    const told = isDelivered ? `delivered, status ${status}` : `not delivered: ${reason}`
    return `${channel} (${type}): ${told}${isDelivered && answer !== '' ? `\n  ${answer}` : ''}`
  })
  return { text: lines.join('\n'), json: answers, isFailed: answers.some(({ isDelivered }) => !isDelivered) }
}

const edit =
  (action: 'pause' | 'resume' | 'remove', done: string): Action =>
  ({ file, target }) => {
    editRules(file, { action, name: target }, readVariable)
    return { text: `${target} is ${done} in ${file}`, json: { file, rule: target, action } }
  }

const add: Action = ({ file, target }) => {
  const rule: unknown = parse(target)
  editRules(file, { action: 'add', rule }, readVariable)
  return { text: `added to ${file}`, json: { file, rule, action: 'add' } }
}

const dead: Action = async ({ config }) => {
  const rows = await withDatabase(config, 'read', (db) => createAlertStore(db).readDead())
  const table = rows.map(({ rule, channel, firing, attempts, nextTryAt, reason }) => [
    ...[rule, channel, firing, String(attempts), toShortTime(nextTryAt), reason],
  ])
  return { text: toTable(['rule', 'channel', 'alert', 'attempts', 'last (UTC)', 'reason'], table), json: rows }
}

const retry: Action = async ({ config }) => {
  const revived = await withDatabase(config, 'write', (db) => reviveDead(createAlertStore(db), Date.now()))
  return { text: `${revived} deliveries will be tried again within a minute`, json: { revived } }
}

/** The actions; `takes` is the argument that an action needs. */
const ACTIONS: Readonly<Record<string, { readonly run: Action; readonly takes?: string }>> = {
  list: { run: list },
  check: { run: check },
  test: { run: test, takes: 'a rule' },
  add: { run: add, takes: 'a rule as YAML or JSON' },
  pause: { run: edit('pause', 'paused'), takes: 'a rule' },
  resume: { run: edit('resume', 'active again'), takes: 'a rule' },
  remove: { run: edit('remove', 'removed'), takes: 'a rule' },
  dead: { run: dead },
  retry: { run: retry },
}

/**
 * Runs a command and returns its output.
 * @throws DataError `payload` for an invalid command, `config` for a file with mistakes, `storage`.
 */
export async function runAlerts(config: Config, [word = '', target, ...more]: readonly string[]): Promise<Output> {
  const action = Object.hasOwn(ACTIONS, word) ? ACTIONS[word] : undefined
  if (action === undefined) throw new DataError('payload', HELP)
  if ((target === undefined) !== (action.takes === undefined) || more.length > 0)
    throw new DataError('payload', `${word} takes ${action.takes ?? 'no argument'}`)
  const { file } = config.alerts
  if (file === undefined) throw new DataError('config', 'ALERTS_FILE is not set: it names the file of the rules')
  return action.run({ config, file, target: target ?? '' })
}

async function main(): Promise<void> {
  const { values, positionals } = readCommandLine({
    allowPositionals: true,
    options: { json: { type: 'boolean', default: false }, help: { type: 'boolean', default: false } },
  })
  if (values.help) return console.log(HELP)
  const { text, json, isFailed } = await runAlerts(loadCommandConfig(), positionals)
  console.log(values.json ? JSON.stringify(json, null, 2) : text)
  if (isFailed) process.exitCode = 1
}

if (isMain(import.meta.url)) runCommand(main)
