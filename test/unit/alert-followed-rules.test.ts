import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { followRules } from '../../workers/alerts/followed-rules.ts'
import { editRules } from '../../workers/alerts/rules-file.ts'

const CHANNELS = 'channels:\n  team: {type: slack, url: "https://hooks.example.org/1"}\n'
const toRule = (name: string, above = 1_000) =>
  `  # Of the desk.\n  - name: ${name}\n    what: {kind: level, series: price, above: ${above}}\n    to: [team]\n    cooldown: 6h\n`
const FULL = `${CHANNELS}rules:\n${['one', 'two', 'three'].map((name) => toRule(name)).join('')}`

let dir: string
let file: string
let errors: string[]
const follow = () => {
  const stream = { write: (line: string) => errors.push((JSON.parse(line) as { reason: string }).reason) }
  return followRules(file, pino({ level: 'error' }, stream))
}
const namesOf = ({ rules }: ReturnType<typeof follow>) => rules.rules.map(({ name }) => name)
let version = 0
/** Replaces the file as an editor does, so that every version has another inode or time. */
const write = (text: string) => {
  writeFileSync(`${file}.${++version}`, text)
  renameSync(`${file}.${version}`, file)
}

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'followed-rules-'))
  file = join(dir, 'alerts.yaml')
  errors = []
})
afterEach(() => rmSync(dir, { recursive: true, force: true }))

describe('followRules', () => {
  it.each([
    ['YAML', FULL],
    ['YAML with an end', `${FULL}...\n`],
    ['YAML with channels last', `${FULL.slice(CHANNELS.length)}${CHANNELS}`],
    ['JSON', JSON.stringify({ channels: {}, rules: [{ name: 'one', what: { kind: 'treasury', movedUsd: 1 } }] })],
  ])('keeps every rule of %s that is cut anywhere, and says why', (_what, text) => {
    write(text)
    const followed = follow()
    const whole = structuredClone(followed.rules)
    for (let length = 0; length < text.trimEnd().length; length++) {
      write(text.slice(0, length))
      followed.refresh()
      expect(followed.rules, text.slice(0, length)).toEqual(whole)
    }
    expect(errors.length).toBeGreaterThan(0)
    write(text)
    followed.refresh()
    expect(followed.rules).toEqual(whole)
  })

  it('keeps every earlier rule when a longer version is cut anywhere', () => {
    write(FULL)
    const followed = follow()
    const longer = `${FULL.replace('# Of the desk.', '# Of the other desk.')}${toRule('four')}`
    for (let length = 0; length < longer.length; length++) {
      write(longer.slice(0, length))
      followed.refresh()
      expect(followed.rules.rules.slice(0, 3).map(({ name, what }) => ({ name, what }))).toEqual(
        ['one', 'two', 'three'].map((name) => ({ name, what: { kind: 'level', series: 'price', above: 1_000 } })),
      )
    }
  })

  it.each([
    ['an empty file', '', /the file ends early\. Complete the file, or confirm it by a last line "\.\.\."/],
    ['comments alone', '# Rules\n', /the file has no rule one, rule two, rule three, channel team\./],
    ['JSON without rules', '{}', /the file ends early|the file has no rule one/],
    ['the beginning', FULL.slice(0, FULL.indexOf('  - name: two')), /the file ends early/],
    ['another beginning', `# New\n${FULL.slice(0, FULL.indexOf('  - name: three'))}`, /the file has no rule three\./],
  ])('keeps the rules and names the problem of %s', (_what, text, reason) => {
    write(FULL)
    const followed = follow()
    write(text)
    followed.refresh()
    followed.refresh()
    expect(namesOf(followed)).toEqual(['one', 'two', 'three'])
    expect(errors).toEqual([expect.stringMatching(reason)])
  })

  it.each([
    ['JSON', JSON.stringify({ rules: [] }), []],
    ['YAML that ends with "..."', `${FULL.slice(0, FULL.indexOf('  - name: two'))}...\n`, ['one']],
    ['nothing but "..."', '...\n', []],
    ['YAML with the same end', FULL.replace(toRule('two'), ''), ['one', 'three']],
  ])('removes rules by %s', (_what, text, names) => {
    write(FULL)
    const followed = follow()
    followed.compared([])
    write(text)
    followed.refresh()
    expect(namesOf(followed)).toEqual(names)
    expect(followed.isConfirmed).toBe(true)
    expect(errors).toEqual([])
  })

  it('removes the last rule by the command', () => {
    write(FULL)
    const followed = follow()
    editRules(file, { action: 'remove', name: 'three' }, () => undefined)
    followed.refresh()
    expect(namesOf(followed)).toEqual(['one', 'two'])
    expect(followed.isConfirmed).toBe(true)
  })

  it('removes no stored rule at its start unless the end of the file proves that it is complete', () => {
    write('')
    const followed = follow()
    expect(followed.isConfirmed).toBe(false)
    followed.compared(['one'])
    expect(errors).toEqual([expect.stringMatching(/has no rule one\./)])
    write(FULL)
    followed.refresh()
    followed.compared([])
    expect(followed.isConfirmed).toBe(true)
    write(`${FULL}...\n`)
    expect(follow().isConfirmed).toBe(true)
  })
})
