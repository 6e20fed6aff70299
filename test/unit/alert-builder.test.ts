import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { toOpenApi } from '../../api/openapi/document.ts'
import { routes } from '../../api/routes.ts'
import { datasets } from '../../shared/datasets/list.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import {
  type Draft,
  fieldsOf,
  findMistakes,
  KINDS,
  readField,
  subjectOf,
  toCommand,
  toRule,
  toYaml,
} from '../../web/pages/alert-rule.ts'
import { findUnknown } from '../../workers/alerts/rule-entities.ts'
import { parseRules } from '../../workers/alerts/rules-file.ts'
import { LIST_PATHS, LISTS, SERIES, SERIES_NAMES } from '../../workers/alerts/series.ts'

const UNI = 'a00a15074c647764fac27d6c'
const CHANNELS =
  'channels:\n  team: { type: slack, url: "https://example.org/hook" }\n  ops: { type: discord, url: "https://example.org/hook" }\n'

/** The rule that a worker reads from the text of a draft. */
function readBack(draft: Draft) {
  const { rules } = parseRules(`${CHANNELS}rules:\n${toYaml(toRule(draft), [])}\n`, 'alerts.yaml', () => undefined)
  return rules[0]
}

const fieldOf = (draft: Draft, name: string) => fieldsOf(draft).what.find((field) => field.name === name)
const valuesOf = (draft: Draft, name: string) => (fieldOf(draft, name)?.options ?? []).map(([value]) => value)

/** Every combination of the options of a kind. */
function toDrafts(kind: string): Draft[] {
  let drafts: Draft[] = [{ kind }]
  for (const { name, options } of KINDS[kind]?.fields ?? [])
    if (options !== undefined)
      drafts = drafts.flatMap((draft) => options.map(([value]) => ({ ...draft, [name]: value })))
  return drafts
}

describe('the form that writes rules of alerts', () => {
  it.each(Object.keys(KINDS))('writes rules of the kind %s that a worker accepts, with every option', (kind) => {
    const drafts = toDrafts(kind)
    for (const draft of drafts) {
      expect(findMistakes(draft), JSON.stringify(draft)).toEqual(new Map())
      expect(readBack(draft)?.what.kind).toBe(kind)
    }
    expect(new Set(drafts.map((draft) => JSON.stringify(readBack(draft)?.what))).size).toBe(drafts.length)
  })

  it('offers the same kinds, series, lists, events and datasets as the rules file', () => {
    const kinds = ['level', 'move', 'list', 'proposal', 'powerMove', 'treasury', 'flow', 'dataset', 'provider']
    expect(valuesOf({}, 'kind')).toEqual(kinds)
    expect(valuesOf({ kind: 'level' }, 'series').toSorted()).toEqual([...SERIES_NAMES].toSorted())
    expect(valuesOf({ kind: 'list' }, 'list')).toEqual(LIST_PATHS)
    const names = datasets.map(({ name }) => name).toSorted()
    expect(valuesOf({ kind: 'dataset' }, 'dataset').toSorted()).toEqual(names)
    expect(valuesOf({ kind: 'provider' }, 'collects').toSorted()).toEqual(['', ...names])
  })

  it('knows whether a rule is about tokens, DAOs or neither', () => {
    for (const series of SERIES_NAMES) expect(subjectOf({ kind: 'move', series })).toBe(SERIES[series].of)
    for (const list of LIST_PATHS) expect(subjectOf({ kind: 'list', list })).toBe(LISTS[list].of)
  })

  it('has an example of a filter for each list, of a member that the API filters by', () => {
    const { paths } = JSON.parse(JSON.stringify(toOpenApi([...routes])))
    for (const list of LIST_PATHS) {
      const { what } = toRule({ kind: 'list', list }) as { what: { filter: string[] } }
      const [, member = ''] = /^([\w.]+)[<>=]/.exec(what.filter[0] ?? '') ?? []
      const { description } = paths[list].get.parameters.find(({ name }: { name: string }) => name === 'sort')
      expect(description, list).toContain(`\`${member}\``)
    }
  })

  it('writes who, where and how often', () => {
    const draft = {
      ...{ kind: 'move', who: 'ids', ids: UNI, to: 'team, ops', cooldown: '6h', digest: 'daily' },
      ...{ name: 'uni-moves', description: `The desk's "first" rule: #1` },
    }
    const rule = readBack(draft)
    expect(rule).toMatchObject({
      ...{ name: 'uni-moves', description: draft.description, who: { ids: [UNI] }, to: ['team', 'ops'] },
      ...{ cooldown: 6 * 3_600_000, digest: 'daily' },
    })
    expect(rule === undefined ? undefined : findUnknown(rule, loadRegistry())).toEqual([])
    expect(toYaml(toRule(draft), ['Uniswap', 'A\nB'])).toContain(`who: { ids: [${UNI}] } # Uniswap, A B\n`)
    expect(readBack({ kind: 'treasury', who: 'category', category: 'dex', cooldown: '6h' })).toMatchObject({
      ...{ who: { categories: ['dex'] }, cooldown: 0 },
    })
  })

  it('leaves out a selection of entities that does not fit the condition', () => {
    expect(readBack({ kind: 'dataset', who: 'ids', ids: UNI })?.who).toBe('all')
  })

  it('quotes texts that YAML would read as numbers or truth values', () => {
    const ids = ['123456789012345678901234', '1234567890123456789012e4']
    expect(readBack({ kind: 'level', who: 'ids', ids: ids.join(',') })?.who).toEqual({ ids })
    expect(readBack({ kind: 'provider', provider: 'null' })?.what).toMatchObject({ provider: 'null' })
  })

  it('writes the same rule as an argument of the command', () => {
    const draft = { kind: 'list', list: '/data/daos', filter: ' a>=1 \n\n name!=null', description: "it's" }
    const [, argument = ''] = /^npm run alerts -- add '(.*)'$/.exec(toCommand(toRule(draft))) ?? []
    expect(parse(argument.replaceAll(`'\\''`, "'"))).toEqual(toRule(draft))
    expect(readBack(draft)?.what).toMatchObject({ filter: ['a>=1', 'name!=null'] })
  })

  it.each([
    [{ kind: 'level', level: 'ten' }, 'level'],
    [{ kind: 'move', percent: '0' }, 'percent'],
    [{ kind: 'move', within: '1 day' }, 'within'],
    [{ kind: 'proposal', on: 'ending', hours: '721' }, 'hours'],
    [{ kind: 'proposal', on: 'ending', unlessVotedBy: '0x12' }, 'unlessVotedBy'],
    [{ kind: 'dataset', state: 'incomplete', below: '2' }, 'below'],
    [{ kind: 'provider', failingFor: 'h' }, 'failingFor'],
    [{ name: 'All rules' }, 'name'],
    [{ name: 'all' }, 'name'],
    [{ to: 'Team' }, 'to'],
    [{ cooldown: '6 hours' }, 'cooldown'],
    [{ who: 'ids' }, 'who'],
    [{ who: 'category' }, 'who'],
    [{ kind: 'list', filter: 'a=1\n'.repeat(11) }, 'filter'],
  ])('rejects %j at the field %s', (draft, field) => {
    expect([...findMistakes(draft).keys()]).toEqual([field])
  })

  it('uses defaults for options that the address cannot have', () => {
    const draft = { kind: 'other', series: 'x', digest: 'weekly' }
    expect(readBack(draft)).toMatchObject({ what: { kind: 'level', series: 'price', above: 10 } })
    expect(fieldsOf(draft).what.map((field) => readField(field, draft))).toEqual(['level', 'price', 'above', '10'])
  })
})
