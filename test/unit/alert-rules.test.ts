import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { datasets } from '../../shared/datasets/list.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { findEntities, findUnknown } from '../../workers/alerts/rule-entities.ts'
import { type Rule, toRevision } from '../../workers/alerts/rules.ts'
import { editRules, findChannelSecrets, loadRules, parseRules } from '../../workers/alerts/rules-file.ts'
import { LISTS, SERIES } from '../../workers/alerts/series.ts'

const NONE = () => undefined
const SECRET = `whsec_${Buffer.alloc(24, 1).toString('base64')}`

const FILE = `# Rules of the treasury team.
channels:
  ops:
    type: webhook
    url: https://example.org/hook
    secrets: ['\${HOOK_SECRET}']
rules:
  # Asked for by the desk.
  - name: uni-above-10
    what: {kind: level, series: price, above: 10}
    who: {names: [UNI]}
    to: [ops]
    cooldown: 6h
`

const read = (name: string) => (name === 'HOOK_SECRET' ? SECRET : undefined)

const toRule = (members: object): Rule => {
  const { rules } = parseRules(JSON.stringify({ rules: [{ name: 'one', ...members }] }), 'a.json', NONE)
  return rules[0] as Rule
}

describe('parseRules', () => {
  it('reads YAML, fills variables of channels, and converts durations', () => {
    const { rules, channels } = parseRules(FILE, 'alerts.yaml', read)
    expect(rules).toEqual([
      {
        name: 'uni-above-10',
        description: '',
        what: { kind: 'level', series: 'price', above: 10 },
        who: { names: ['UNI'] },
        to: ['ops'],
        cooldown: 6 * 3_600_000,
        paused: false,
      },
    ])
    expect(channels.ops).toEqual({ type: 'webhook', url: 'https://example.org/hook', secrets: [SECRET] })
  })

  it('reads JSON', () => {
    expect(toRule({ what: { kind: 'treasury', movedUsd: 1e6 } }).what).toEqual({
      kind: 'treasury',
      movedUsd: 1e6,
      direction: 'any',
    })
  })

  it('accepts an empty file', () => {
    expect(parseRules('', 'alerts.yaml', NONE)).toEqual({ channels: {}, rules: [] })
  })

  it.each([
    [
      'an unknown series',
      'rules:\n  - name: a\n    what: {kind: level, series: prise, above: 1}\n',
      /alerts\.yaml:3:33: rules\[0\]\.what\.series: .*"prise"/,
    ],
    [
      'an unknown kind',
      'rules:\n  - name: a\n    what: {kind: levels}\n',
      /alerts\.yaml:3:18: rules\[0\]\.what\.kind: .*"levels"/,
    ],
    [
      'a missing level',
      'rules:\n  - name: a\n    what: {kind: level, series: price}\n',
      /:3:11: rules\[0\]\.what: needs either above or below/,
    ],
    [
      'a cooldown of events',
      'rules:\n  - name: a\n    cooldown: 1h\n    what: {kind: treasury, movedUsd: 1}\n',
      /:3:15: rules\[0\]\.cooldown: is not for proposals, powers and treasuries/,
    ],
    [
      'a wrong duration',
      'rules:\n  - name: a\n    cooldown: soon\n    what: {kind: treasury, movedUsd: 1}\n',
      /:3:15: rules\[0\]\.cooldown: must be a duration such as 30m, 6h or 7d, got "soon"/,
    ],
    [
      'two rules of one name',
      'rules:\n  - {name: a, what: {kind: treasury, movedUsd: 1}}\n  - {name: a, what: {kind: treasury, movedUsd: 1}}\n',
      /:3:12: rules\[1\]\.name: is the name of two rules, got "a"/,
    ],
    [
      'an unknown channel',
      'rules:\n  - {name: a, to: [ops], what: {kind: treasury, movedUsd: 1}}\n',
      /rules\[0\]\.to\[0\]: must be a channel: there are none/,
    ],
    [
      'hours at another event',
      'rules:\n  - {name: a, what: {kind: proposal, on: created, hours: 3}}\n',
      /hours is for "on: ending", "on: flipped" and "on: executable"/,
    ],
    ['broken YAML', 'rules: [\n', /alerts\.yaml:\d+:\d+: /],
    [
      'the name of the feed of all rules',
      'rules:\n  - {name: all, what: {kind: treasury, movedUsd: 1}}\n',
      /must not be "all"/,
    ],
  ])('reports %s with line, column and value', (_what, text, message) => {
    expect(() => parseRules(text, '/etc/alerts.yaml', NONE)).toThrow(message)
  })

  it('reports every mistake at once', () => {
    const text = 'rules:\n  - {name: A, what: {kind: treasury, movedUsd: 1}}\n  - {name: b, what: {kind: nothing}}\n'
    expect(() => parseRules(text, 'alerts.yaml', NONE)).toThrow(/2 mistake.*:2:12.*:3:28/s)
  })

  it('names a variable that is not set, and never shows a secret', () => {
    expect(() => parseRules(FILE, 'alerts.yaml', NONE)).toThrow(
      /:6:15: channels\.ops\.secrets\[0\]: HOOK_SECRET: this environment variable is not set/,
    )
    const text = FILE.replace(`'\${HOOK_SECRET}'`, 'my-own-password')
    expect(() => parseRules(text, 'alerts.yaml', read)).toThrow(/must be whsec_/)
    expect(() => parseRules(text, 'alerts.yaml', read)).not.toThrow(/my-own-password/)
  })
})

describe('a channel for e-mail', () => {
  const parse = (members: object) => {
    const mail = {
      type: 'email',
      url: 'smtp://mail.example.org',
      from: 'a@example.org',
      to: 'b@example.org',
      ...members,
    }
    return parseRules(JSON.stringify({ channels: { mail } }), 'a.json', (name) =>
      name === 'MAIL_PASSWORD' ? 'p@ss:word/1' : undefined,
    )
  }

  it('takes its password from a variable, and redacts it in logs', () => {
    const file = parse({ url: 'smtps://mail.example.org:4650', user: 'alerts', password: `\${MAIL_PASSWORD}` })
    expect(file.channels.mail).toMatchObject({ user: 'alerts', password: 'p@ss:word/1' })
    expect(findChannelSecrets(file)).toEqual(['p@ss:word/1'])
    expect(findChannelSecrets(parse({}))).toEqual([])
  })

  it.each([
    [{ url: 'https://mail.example.org' }, /channels\.mail\.url: must be an smtp or smtps URL$/m],
    [{ url: 'smtp://me:hidden@mail.example.org' }, /must not have credentials: set user and password$/m],
    [{ password: 'hidden' }, /channels\.mail: needs both user and password$/m],
    [{ to: 'ops' }, /channels\.mail\.to: .*, got "ops"/],
  ])('rejects %j without showing a secret', (members, message) => {
    expect(() => parse(members)).toThrow(message)
    expect(() => parse(members)).not.toThrow(/hidden/)
  })
})

describe('the catalogue of series and lists', () => {
  it('names existing datasets, and the table of each series belongs to its dataset', () => {
    const names = datasets.map(({ name }) => name)
    for (const { dataset, table, time } of Object.values(SERIES)) {
      const { series } = datasets.find(({ name }) => name === dataset) ?? expect.fail(dataset)
      expect({ table, time }).toEqual({ table: series.table, time: series.time })
    }
    for (const list of Object.values(LISTS)) expect(names).toEqual(expect.arrayContaining([...list.datasets]))
  })
})

describe('editRules', () => {
  let dir: string
  let file: string
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'alert-rules-'))
    file = join(dir, 'alerts.yaml')
    writeFileSync(file, FILE, { mode: 0o640 })
  })
  afterEach(() => rmSync(dir, { recursive: true, force: true }))

  it('adds, pauses, resumes and removes a rule, and keeps comments and mode', () => {
    editRules(file, { action: 'add', rule: { name: 'two', what: { kind: 'treasury', movedUsd: 5 } } }, read)
    expect(loadRules(file, read).rules.map((one) => one.name)).toEqual(['uni-above-10', 'two'])
    editRules(file, { action: 'pause', name: 'two' }, read)
    expect(loadRules(file, read).rules[1]?.paused).toBe(true)
    editRules(file, { action: 'resume', name: 'two' }, read)
    editRules(file, { action: 'remove', name: 'two' }, read)
    const text = readFileSync(file, 'utf8')
    expect(text).toMatch(/# Rules of the treasury team\..*# Asked for by the desk\./s)
    expect(text).not.toContain('two')
    expect(parseRules(text, file, read)).toEqual(parseRules(FILE, file, read))
    expect(statSync(file).mode & 0o777).toBe(0o640)
  })

  it('creates a file that only its owner can read', () => {
    const fresh = join(dir, 'fresh.yaml')
    editRules(fresh, { action: 'add', rule: { name: 'two', what: { kind: 'treasury', movedUsd: 5 } } }, read)
    expect(loadRules(fresh, read).rules).toHaveLength(1)
    expect(statSync(fresh).mode & 0o777).toBe(0o600)
  })

  it('leaves the file unchanged if the rule is invalid or does not exist', () => {
    expect(() => editRules(file, { action: 'add', rule: { name: 'two', what: { kind: 'x' } } }, read)).toThrow(
      /rules\[1\]\.what\.kind/,
    )
    expect(() => editRules(file, { action: 'remove', name: 'two' }, read)).toThrow(/there is no rule two/)
    expect(readFileSync(file, 'utf8')).toBe(FILE)
  })

  it('writes JSON to a JSON file', () => {
    const json = join(dir, 'alerts.json')
    editRules(json, { action: 'add', rule: { name: 'two', what: { kind: 'treasury', movedUsd: 5 } } }, read)
    expect(JSON.parse(readFileSync(json, 'utf8'))).toEqual({
      rules: [{ name: 'two', what: { kind: 'treasury', movedUsd: 5 } }],
    })
  })
})

describe('findEntities', () => {
  const registry = loadRegistry()
  const price = { what: { kind: 'level', series: 'price', above: 1 } }
  const [dao] = registry.daos.filter(({ live }) => live)

  it('selects live tokens by symbol, id and category, without regard to case', () => {
    const [uni] = registry.tokens.filter(({ symbol, live }) => symbol === 'UNI' && live)
    expect(findEntities(toRule({ ...price, who: { names: ['uni'] } }), registry)?.map(({ id }) => id)).toEqual([
      uni?.id,
    ])
    expect(findEntities(toRule({ ...price, who: { ids: [uni?.id] } }), registry)).toHaveLength(1)
    const [category] = registry.daoBySlug.get(uni?.dao ?? '')?.categories ?? []
    const ofCategory = findEntities(toRule({ ...price, who: { categories: [category] } }), registry)
    expect(ofCategory?.map(({ id }) => id)).toContain(uni?.id)
    expect(findEntities(toRule(price), registry)).toHaveLength(registry.tokens.filter(({ live }) => live).length)
  })

  it('selects DAOs for series of DAOs, and nothing for sums', () => {
    const treasury = toRule({ what: { kind: 'level', series: 'treasury', below: 1 }, who: { names: [dao?.slug] } })
    expect(findEntities(treasury, registry)).toEqual([{ type: 'dao', id: dao?.id, key: dao?.key, name: dao?.name }])
    expect(findEntities(toRule({ what: { kind: 'level', series: 'index', above: 1 } }), registry)).toBeUndefined()
  })

  it('reports what matches nothing', () => {
    const rule = toRule({ ...price, who: { names: ['UNI', 'no such token'] } })
    expect(findUnknown(rule, registry)).toEqual(['rule one: who.names: nothing live matches "no such token"'])
  })
})

describe('toRevision', () => {
  it('changes with the condition only', () => {
    const what = { kind: 'level', series: 'price', above: 1 }
    expect(toRevision(toRule({ what }))).toBe(toRevision(toRule({ what, cooldown: '1h', description: 'x' })))
    expect(toRevision(toRule({ what }))).not.toBe(toRevision(toRule({ what: { ...what, above: 2 } })))
  })
})
