import { existsSync, readFileSync, statSync } from 'node:fs'
import { basename, extname } from 'node:path'
import { type Document, isMap, isNode, isSeq, LineCounter, parseDocument } from 'yaml'
import { DataError, toReason } from '../../shared/errors.ts'
import { replaceFile } from '../../shared/replace-file.ts'
import { type RulesFile, rulesFile } from './rules.ts'

/** Reads an environment variable; undefined if it is not set. */
export type ReadVariable = (name: string) => string | undefined

const VARIABLE = /\$\{([A-Za-z_]\w*)\}/g

/** Replaces `${NAME}` in the texts of channels, so that secrets need not be in the file. */
function fillVariables(value: unknown, path: readonly PropertyKey[], read: ReadVariable, report: Report): unknown {
  if (typeof value === 'string')
    return value.replaceAll(VARIABLE, (whole, variable: string) => {
      const found = read(variable)
      if (found === undefined || found === '') report(path, `${variable}: this environment variable is not set`)
      return found ?? whole
    })
  if (Array.isArray(value)) return value.map((one, at) => fillVariables(one, [...path, at], read, report))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => [key, fillVariables(one, [...path, key], read, report)]),
  )
}

type Report = (path: readonly PropertyKey[], message: string) => void

const toPathText = (path: readonly PropertyKey[]) =>
  path.reduce<string>(
    (text, key) => (typeof key === 'number' ? `${text}[${key}]` : text === '' ? String(key) : `${text}.${String(key)}`),
    '',
  )

/** The node of a path, or of its longest part that exists. */
function findNode(document: Document, path: readonly PropertyKey[]) {
  for (let length = path.length; length >= 0; length--) {
    const node = length === 0 ? document.contents : document.getIn(path.slice(0, length), true)
    if (isNode(node)) return node
  }
  return undefined
}

/** The values of these members are never shown. */
const SECRET = new Set(['url', 'secrets', 'token', 'chat', 'server', 'user', 'password'])

function toShown(document: Document, path: readonly PropertyKey[]): string {
  if (path.some((key) => SECRET.has(String(key)))) return ''
  const value = document.getIn(path)
  return value === undefined || typeof value === 'object' ? '' : `, got ${JSON.stringify(value)}`
}

function parseText(text: string, file: string) {
  const lines = new LineCounter()
  // JSON is a subset of YAML.
  const document = parseDocument(text, { lineCounter: lines })
  const mistakes: string[] = document.errors.map(({ linePos, message }) => {
    const [{ line = 1, col = 1 } = {}] = linePos ?? []
    return `${file}:${line}:${col}: ${message.split('\n', 1)[0]}`
  })
  const report: Report = (path, message) => {
    const { line, col } = lines.linePos(findNode(document, path)?.range?.[0] ?? 0)
    mistakes.push(`${file}:${line}:${col}: ${toPathText(path) || 'the file'}: ${message}${toShown(document, path)}`)
  }
  return { document, mistakes, report }
}

/**
 * Parses a rules file, YAML or JSON.
 * @throws DataError `config` that lists every mistake with line and column.
 */
export function parseRules(text: string, file: string, read: ReadVariable): RulesFile {
  const { document, mistakes, report } = parseText(text, basename(file))
  const given: unknown = mistakes.length === 0 ? (document.toJS() ?? {}) : {}
  const filled =
    typeof given === 'object' && given !== null && 'channels' in given
      ? { ...given, channels: fillVariables(given.channels, ['channels'], read, report) }
      : given
  const parsed = rulesFile.safeParse(filled)
  for (const { path, message } of parsed.error?.issues ?? []) report(path, message)
  if (parsed.success && mistakes.length === 0) return parsed.data
  throw new DataError(
    'config',
    `ALERTS_FILE has ${mistakes.length} mistake(s):\n${mistakes.map((one) => `  ${one}`).join('\n')}`,
  )
}

/** @throws DataError `config` if the file cannot be read or has mistakes. */
export const loadRules = (file: string, read: ReadVariable): RulesFile => readRules(file, read).rules

/** The content of a rules file. */
export interface ReadRules {
  readonly rules: RulesFile
  readonly text: string
  /** Whether the text proves that nothing is missing: by a last bracket, or by YAML's end of a document, `...`. */
  readonly isWhole: boolean
  /** The text from the beginning of the last rule or channel. */
  readonly lastEntry: string
}

/** @throws DataError `config` if the file cannot be read or has mistakes. */
export function readRules(file: string, read: ReadVariable): ReadRules {
  const text = readText(file)
  const rules = parseRules(text, file, read)
  const { document } = parseText(text, basename(file))
  const [list, channels] = [document.get('rules'), document.get('channels')]
  const nodes = [...(isSeq(list) ? list.items : []), ...(isMap(channels) ? channels.items.map(({ key }) => key) : [])]
  const begins = nodes.flatMap((node) => (isNode(node) ? (node.range?.[0] ?? []) : []))
  const isClosed = isMap(document.contents) && document.contents.flow === true && document.has('rules')
  return {
    ...{ rules, text, isWhole: isClosed || document.directives?.docEnd === true },
    lastEntry: text.slice(Math.max(0, ...begins)).trimEnd(),
  }
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (cause) {
    throw new DataError('config', `ALERTS_FILE: ${toReason(cause)}`, { cause })
  }
}

/** A change of the file: adds a rule, removes one, or pauses it. */
export type Edit =
  | { readonly action: 'add'; readonly rule: unknown }
  | { readonly action: 'remove'; readonly name: string }
  | { readonly action: 'pause' | 'resume'; readonly name: string }

/**
 * Changes the file and keeps its comments. The changed file is checked before it replaces the old one.
 * @throws DataError `config` for mistakes, `payload` if there is no such rule.
 */
export function editRules(file: string, edit: Edit, read: ReadVariable): void {
  // The file may contain secrets, so a new one is readable only by its owner, and a changed one has the old mode.
  const mode = existsSync(file) ? statSync(file).mode & 0o777 : 0o600
  replaceFile(file, () => changeText(existsSync(file) ? readText(file) : '', file, edit, read), {
    code: 'config',
    mode,
  })
}

function changeText(text: string, file: string, edit: Edit, read: ReadVariable): string {
  const { rules } = parseRules(text, file, read)
  const { document } = parseText(text, basename(file))
  if (edit.action === 'add') {
    if (document.hasIn(['rules'])) document.addIn(['rules'], document.createNode(edit.rule))
    else document.setIn(['rules'], document.createNode([edit.rule]))
  } else {
    const index = rules.findIndex((one) => one.name === edit.name)
    if (index < 0) throw new DataError('payload', `there is no rule ${edit.name} in ${file}: npm run alerts -- list`)
    if (edit.action === 'remove') {
      document.deleteIn(['rules', index])
      // Confirms to the workers that the rest of the file is complete.
      if (document.directives) document.directives.docEnd = true
    }
    if (edit.action === 'pause') document.setIn(['rules', index, 'paused'], true)
    if (edit.action === 'resume') document.deleteIn(['rules', index, 'paused'])
  }
  const changed =
    extname(file) === '.json' ? `${JSON.stringify(document.toJS(), null, 2)}\n` : document.toString({ lineWidth: 0 })
  parseRules(changed, file, read)
  return changed
}

/** The secrets of the channels, for the redaction of logs. */
export function findChannelSecrets({ channels }: RulesFile): readonly string[] {
  return Object.values(channels).flatMap((one) => {
    if (one.type === 'webhook') return [...one.secrets, new URL(one.url).pathname]
    if (one.type === 'email') return one.password === undefined ? [] : [one.password]
    return [one.type === 'telegram' ? one.token : new URL(one.url).pathname]
  })
}
