import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { z } from 'zod'
import { parseConfig } from '../../shared/config/config.ts'
import { declarations, toCheckedProviders } from '../../shared/config/providers/list.ts'
import type { Database } from '../../shared/store/store.ts'
import { findDayLimits } from '../../workers/probe/plans.ts'
import { silent } from '../support/silent.ts'

const ROOT = join(import.meta.dirname, '../..')
const WIDTH = 120

type Declaration = (typeof declarations)[number]

interface Setting {
  readonly name: string
  /** The default as text; empty if there is none. */
  readonly shown: string
  readonly help: string | undefined
}

const settingsOf = ({ settings }: Declaration): Setting[] =>
  Object.entries<z.ZodType>(settings).map(([name, schema]) => {
    const { help, default: shown } = schema.meta() ?? {}
    const parsed = schema.parse(undefined)
    const value = typeof shown === 'string' ? shown : typeof parsed === 'object' ? '' : String(parsed ?? '')
    return { name, shown: value, help: typeof help === 'string' ? help : undefined }
  })

/** Breaks a comment into lines of at most WIDTH characters. */
function toComment(text: string): string {
  const lines = ['#']
  for (const word of text.split(' ')) {
    const line = `${lines.at(-1)} ${word}`
    if (line.length <= WIDTH) lines[lines.length - 1] = line
    else lines.push(`# ${word}`)
  }
  return lines.join('\n')
}

const toEnvironment = () =>
  declarations
    .flatMap((declaration) => [
      toComment(`--- ${declaration.title}: ${declaration.about}`),
      ...settingsOf(declaration).flatMap(({ name, shown, help }) => [
        ...(help === undefined ? [] : [toComment(help)]),
        `#${name}=${shown}`,
      ]),
    ])
    .join('\n')

const toTable = (head: readonly string[], rows: readonly (readonly string[])[]) =>
  [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n')

const toCode = (text: string) => `\`${text}\``

function toSettings(): string {
  const documented = declarations.flatMap((declaration) => settingsOf(declaration).filter(({ help }) => help))
  const access = declarations.flatMap((declaration) => {
    const keys = declaration.data.map(({ key }: { readonly key?: string }) => key)
    const others = settingsOf(declaration).filter(({ name, help }) => !help && !keys.includes(name))
    const hosts = others.map(({ name }) => toCode(name)).join(', ')
    return declaration.data.map(
      (each: { readonly data: string; readonly key?: string; readonly withoutKey?: string }) => [
        each.data,
        hosts === '' ? declaration.title : `${declaration.title}: ${hosts}`,
        each.key === undefined ? '' : toCode(each.key),
        each.withoutKey ?? '',
      ],
    )
  })
  return [
    toTable(['data', 'provider', 'key', 'without it'], access),
    toTable(
      ['setting', 'default', 'meaning'],
      documented.map(({ name, shown, help = '' }) => [toCode(name), shown === '' ? 'none' : toCode(shown), help]),
    ),
  ].join('\n\n')
}

/** Providers with the same cost share a row. */
function toCosts(): string {
  const rows = new Map<string, { titles: string[]; cells: string[] }>()
  for (const { title, days } of declarations)
    for (const { of = title, day, plan } of days as readonly { of?: string; day: string; plan: string }[]) {
      const row = rows.get(`${day}|${plan}`) ?? { titles: [], cells: [day, plan] }
      rows.set(`${day}|${plan}`, { ...row, titles: [...row.titles, of] })
    }
  return toTable(
    ['provider', 'a day', 'the plan'],
    [...rows.values()].map(({ titles, cells }) => [titles.join(', '), ...cells]),
  )
}

const HASHES = { begin: '# Providers: begin\n', end: '\n# Providers: end' }
const COMMENTS = { begin: '<!-- providers: begin -->\n\n', end: '\n\n<!-- providers: end -->' }
const DOCUMENTS = [
  { file: '.env.example', marks: HASHES, render: toEnvironment },
  { file: 'docs/settings.md', marks: COMMENTS, render: toSettings },
  { file: 'docs/going-live.md', marks: COMMENTS, render: toCosts },
]

describe('provider declarations', () => {
  it.each(DOCUMENTS)('match $file', ({ file, marks: { begin, end }, render }) => {
    const path = join(ROOT, file)
    const page = readFileSync(path, 'utf8')
    const [from, to] = [page.indexOf(begin), page.indexOf(end)]
    expect(from, `${file} has ${begin.trim()}`).toBeGreaterThan(0)
    expect(to, `${file} has ${end.trim()}`).toBeGreaterThanOrEqual(from)
    const expected = [page.slice(0, from), begin, render(), page.slice(to)].join('')
    if (process.env.RECORD_PROVIDERS !== undefined) writeFileSync(path, expected)
    else expect(page).toBe(expected)
  })

  it('change only members that a host has for its check', () => {
    const { providers } = parseConfig({
      COINMARKETCAP_API_KEY: 'key',
      COINGECKO_API_KEY: 'key',
      SENTIMENT_SAMPLE_SIZE: '500',
    })
    const checked = toCheckedProviders(providers)
    const toMembers = (all: object) => Object.entries(all).map(([name, own]) => [name, Object.keys(own)])
    expect(toMembers(checked)).toEqual(toMembers(providers))
    expect(checked.x.postsPerDao).toBe(10)
    expect(checked.coinmarketcap).toMatchObject({ creditsPerMonth: undefined, apiKey: 'key' })
    expect(checked.coingecko.callsPerMonth).toBeUndefined()
  })
})

describe('findDayLimits', () => {
  const find = (env: Readonly<Record<string, string>>) =>
    Object.fromEntries(findDayLimits({ config: parseConfig(env), log: silent, db: {} as Database }))

  it('returns the daily share of each plan that has a key', () => {
    const keys = { COINMARKETCAP_API_KEY: 'key', COINGECKO_API_KEY: 'key', MORALIS_API_KEY: 'key' }
    expect(find(keys)).toEqual({ coinmarketcap: 483, coingecko: 322, moralis: 800 })
  })

  it('returns no plan without a key', () => expect(find({})).toEqual({}))
})
