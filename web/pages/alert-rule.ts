import { DATASET_TITLES, ALERT_LISTS as LISTS, ALERT_SERIES as SERIES } from '../declared.ts'

/** The entered values, by the name of the field. */
export type Draft = Readonly<Record<string, string>>

/** The kind of entity that a rule is about. */
type Subject = 'token' | 'dao' | 'none'

/** A field of the form. */
export interface Field {
  readonly name: string
  readonly label: string
  /** Accepted values and their texts; a field without them takes text. */
  readonly options?: readonly (readonly [value: string, text: string])[]
  /** Rejects an entered text, with the reason; an empty text is only checked if the field is required. */
  readonly check?: (text: string) => string | undefined
  readonly usual?: string
  readonly hint?: string
  readonly isOptional?: boolean
  readonly isNumber?: boolean
  /** Whether the field applies; default: always. */
  readonly applies?: (draft: Draft) => boolean
  /** The member of the condition; default: the name of the field. Undefined if it has none. */
  readonly member?: (draft: Draft) => string | undefined
  /** Whether the member is a list, with an entry for each line. */
  readonly isList?: boolean
}

interface Kind {
  readonly title: string
  readonly fields: readonly Field[]
  readonly about: (draft: Draft) => Subject
  /** Whether each event fires once, so that no pause is needed. */
  readonly isOnce?: boolean
}

const toOptions = (texts: Readonly<Record<string, string>>) => Object.entries(texts)

const SUBJECTS = Object.keys(SERIES) as Subject[]

const PROPOSAL_EVENTS = {
  ...{
    created: 'is created',
    started: 'starts',
    ending: 'ends soon',
    flipped: 'has another leading choice',
    ended: 'has ended',
    queued: 'is queued',
  },
  ...{ executable: 'can be executed soon', executed: 'is executed', canceled: 'is canceled', expired: 'has expired' },
}

/** Checks a number above `least` and at most `most`. */
function toNumberCheck(least = Number.NEGATIVE_INFINITY, most = Number.POSITIVE_INFINITY) {
  return (text: string) => {
    const value = Number(text)
    if (!Number.isFinite(value)) return 'Enter a number, such as 1000000.'
    if (value <= least) return `Enter a number above ${least}.`
    return value > most ? `Enter at most ${most}.` : undefined
  }
}

const toPatternCheck = (pattern: RegExp, why: string) => (text: string) => (pattern.test(text) ? undefined : why)
const checkDuration = toPatternCheck(/^[1-9]\d{0,3}[mhd]$/, 'Enter minutes, hours or days, such as 30m, 6h or 7d.')

const NAME = /^(?!all$)[a-z0-9][a-z0-9-]{0,62}$/
const toWords = (text: string) => text.split(/[\s,]+/).filter((word) => word !== '')
const toLines = (text: string) =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')

const is = (draft: Draft, name: string, value: string) => draft[name] === value

const series: Field = {
  name: 'series',
  label: 'Series',
  options: SUBJECTS.flatMap((subject) => toOptions(SERIES[subject])),
  usual: 'price',
}
const subjectOfSeries = (draft: Draft) =>
  SUBJECTS.find((subject) => Object.hasOwn(SERIES[subject], readField(series, draft))) ?? 'none'

const toDirection = (texts: Readonly<Record<string, string>>): Field => ({
  name: 'direction',
  label: 'Direction',
  options: toOptions(texts),
  usual: 'any',
})

const list: Field = {
  name: 'list',
  label: 'List',
  options: Object.entries(LISTS).map(([path, [text]]) => [path, text]),
  usual: '/data/tokens',
}

const isEnding = (draft: Draft) => is(draft, 'on', 'ending')
const hasHours = (draft: Draft) => isEnding(draft) || is(draft, 'on', 'executable') || is(draft, 'on', 'flipped')
const isIncomplete = (draft: Draft) => is(draft, 'state', 'incomplete')

/** The kinds of rules, each with the fields of its condition. */
export const KINDS: Readonly<Record<string, Kind>> = {
  level: {
    title: 'A value crosses a level',
    about: subjectOfSeries,
    fields: [
      series,
      {
        ...{ name: 'side', label: 'Side', options: toOptions({ above: 'rises above', below: 'falls below' }) },
        usual: 'above',
        member: () => undefined,
      },
      {
        ...{ name: 'level', label: 'Level', check: toNumberCheck(), usual: '10', isNumber: true },
        member: (draft) => (is(draft, 'side', 'below') ? 'below' : 'above'),
      },
    ],
  },
  move: {
    title: 'A value moves by a percentage',
    about: subjectOfSeries,
    fields: [
      series,
      toDirection({ any: 'up or down', up: 'up', down: 'down' }),
      { name: 'percent', label: 'Percent', check: toNumberCheck(0), usual: '10', isNumber: true },
      { name: 'within', label: 'Within', check: checkDuration, usual: '24h', hint: '30m, 6h or 7d' },
    ],
  },
  list: {
    title: 'A token or DAO enters or leaves a filtered list',
    about: (draft) => (readField(list, draft).startsWith('/data/tokens') ? 'token' : 'dao'),
    fields: [
      list,
      {
        ...{ name: 'event', label: 'Event', usual: 'enter', member: () => 'on' },
        options: toOptions({ enter: 'enters', leave: 'leaves', both: 'enters or leaves' }),
      },
      {
        ...{ name: 'filter', label: 'Filter', isList: true, hint: 'one condition per line, as in the API' },
        check: (text) => (toLines(text).length > 10 ? 'Enter at most 10 conditions.' : undefined),
      },
    ],
  },
  proposal: {
    title: 'A proposal changes its state',
    about: () => 'dao',
    isOnce: true,
    fields: [
      { name: 'on', label: 'The proposal', options: toOptions(PROPOSAL_EVENTS), usual: 'created' },
      {
        ...{ name: 'hours', label: 'Hours before', check: toNumberCheck(0, 720), usual: '24', isNumber: true },
        applies: hasHours,
      },
      {
        ...{ name: 'unlessVotedBy', label: 'Unless this address voted', isOptional: true, applies: isEnding },
        ...{
          hint: 'optional',
          check: toPatternCheck(/^0x[0-9a-fA-F]{40,64}$/, 'Enter an address: 0x and 40 to 64 digits.'),
        },
      },
    ],
  },
  powerMove: {
    title: "A delegate's power changes",
    about: () => 'dao',
    isOnce: true,
    fields: [
      {
        name: 'quorumPercent',
        label: 'At least, in percent of the quorum',
        check: toNumberCheck(0),
        usual: '10',
        isNumber: true,
      },
      toDirection({ any: 'up or down', up: 'up', down: 'down' }),
    ],
  },
  treasury: {
    title: 'A treasury moves an asset',
    about: () => 'dao',
    isOnce: true,
    fields: [
      { name: 'movedUsd', label: 'At least, in US dollars', check: toNumberCheck(0), usual: '1000000', isNumber: true },
      toDirection({ any: 'in or out', in: 'in', out: 'out' }),
    ],
  },
  flow: {
    title: 'A treasury pays or receives',
    about: () => 'dao',
    isOnce: true,
    fields: [
      { name: 'overUsd', label: 'At least, in US dollars', check: toNumberCheck(0), usual: '1000000', isNumber: true },
      toDirection({ any: 'in or out', in: 'in', out: 'out' }),
      {
        ...{ name: 'flowKind', label: 'Kind', isOptional: true, usual: '' },
        options: [
          ['', 'any'],
          ...toOptions({ income: 'income', spending: 'spending', investment: 'investment', swap: 'swap' }),
        ],
      },
      {
        ...{ name: 'counterparty', label: 'Other address', usual: 'any' },
        options: toOptions({ any: 'any', unknown: 'without a known name' }),
      },
    ],
  },
  dataset: {
    title: 'A dataset is stale, incomplete or corrected',
    about: () => 'none',
    fields: [
      { name: 'dataset', label: 'Dataset', options: toOptions(DATASET_TITLES), usual: 'prices' },
      {
        ...{ name: 'state', label: 'State', usual: 'stale', member: () => 'is' },
        options: toOptions({ stale: 'is stale', incomplete: 'is incomplete', corrected: 'is corrected' }),
      },
      {
        ...{ name: 'below', label: 'Stored share below', check: toNumberCheck(0, 1), usual: '0.99', isNumber: true },
        ...{ applies: isIncomplete, hint: '0 to 1' },
      },
    ],
  },
  provider: {
    title: 'A provider fails',
    about: () => 'none',
    fields: [
      { name: 'provider', label: 'Provider', isOptional: true, hint: 'all, if empty' },
      {
        ...{ name: 'collects', label: 'Dataset', member: () => 'dataset', isOptional: true, usual: '' },
        options: [['', 'any'], ...toOptions(DATASET_TITLES)],
      },
      { name: 'failingFor', label: 'Failing for', check: checkDuration, usual: '1h', hint: '30m, 6h or 7d' },
    ],
  },
}

const kind: Field = {
  ...{ name: 'kind', label: 'When', usual: 'level' },
  options: Object.entries(KINDS).map(([name, { title }]) => [name, title]),
}
const kindOf = (draft: Draft): Kind => KINDS[readField(kind, draft)] as Kind

/** The kind of entity that the rule of a draft is about. */
export const subjectOf = (draft: Draft): Subject => kindOf(draft).about(draft)

const who: Field = {
  ...{ name: 'who', label: 'About', usual: 'all', applies: (draft) => subjectOf(draft) !== 'none' },
  options: toOptions({ all: 'all', ids: 'selected ones', category: 'a category' }),
}

const name: Field = {
  ...{ name: 'name', label: 'Name', isOptional: true, hint: 'part of the URL of its feed' },
  check: toPatternCheck(NAME, 'Use lower-case letters, digits and hyphens, at most 63, and not "all".'),
}
const to: Field = {
  ...{ name: 'to', label: 'Channels', isOptional: true, hint: 'names of channels of the file; none: only the feed' },
  check: (text) =>
    toWords(text).every((word) => NAME.test(word)) ? undefined : 'Names have lower-case letters, digits and hyphens.',
}
const cooldown: Field = {
  ...{ name: 'cooldown', label: 'Pause after an alert', isOptional: true, hint: '30m, 6h or 7d; none, if empty' },
  ...{ check: checkDuration, applies: (draft) => kindOf(draft).isOnce !== true },
}
const digest: Field = {
  ...{ name: 'digest', label: 'Messages', isOptional: true, usual: '' },
  options: [
    ['', 'one for each alert'],
    ['hourly', 'one for each hour'],
    ['daily', 'one for each day'],
  ],
}
const description: Field = { name: 'description', label: 'Description', isOptional: true, hint: 'optional' }

/** The fields of a draft in four groups: what, who, where, how often. */
export function fieldsOf(draft: Draft): Readonly<Record<'what' | 'who' | 'where' | 'often', readonly Field[]>> {
  const applying = (fields: readonly Field[]) => fields.filter(({ applies }) => applies?.(draft) ?? true)
  return {
    what: applying([kind, ...kindOf(draft).fields]),
    who: applying([who]),
    where: [to],
    often: applying([cooldown, digest, name, description]),
  }
}

/** The value of a field: what the reader entered, or the default. */
export function readField(field: Field, draft: Draft): string {
  const entered = draft[field.name]?.trim() ?? ''
  if (field.options !== undefined)
    return field.options.some(([value]) => value === entered) ? entered : (field.usual ?? '')
  if (entered !== '') return entered
  return field.name === 'filter' ? (LISTS[readField(list, draft)]?.[1] ?? '') : (field.usual ?? '')
}

/** The mistakes of a draft by the name of the field. */
export function findMistakes(draft: Draft): ReadonlyMap<string, string> {
  const mistakes = new Map<string, string>()
  for (const field of Object.values(fieldsOf(draft)).flat()) {
    const text = readField(field, draft)
    const mistake = text === '' ? undefined : field.check?.(text)
    if (mistake !== undefined) mistakes.set(field.name, mistake)
  }
  const selection = subjectOf(draft) === 'none' ? 'all' : readField(who, draft)
  if (selection === 'ids' && toWords(draft.ids ?? '').length === 0) mistakes.set('who', 'Add at least one below.')
  if (selection === 'category' && !draft.category) mistakes.set('who', 'Choose a category below.')
  return mistakes
}

type Value = string | number | readonly Value[] | { readonly [member: string]: Value }

function toWhat(draft: Draft): Record<string, Value> {
  const members = fieldsOf(draft).what.flatMap((field): [string, Value][] => {
    const member = field.member === undefined ? field.name : field.member(draft)
    const text = readField(field, draft)
    if (member === undefined || text === '') return []
    return [[member, field.isList ? toLines(text) : field.isNumber ? Number(text) : text]]
  })
  return Object.fromEntries(members)
}

/** A name from the condition: `level-price-above-10`. */
function toUsualName(what: Readonly<Record<string, Value>>): string {
  const words = Object.entries(what).flatMap(([member, value]) =>
    typeof value === 'number' ? [member, value] : typeof value === 'string' && value !== 'any' ? [value] : [],
  )
  const slug = words
    .join('-')
    .toLowerCase()
    .replace('/data/', '')
    .replaceAll(/[^a-z0-9]+/g, '-')
  return slug.slice(0, 63).replace(/-$/, '')
}

/** The rule of a draft without mistakes, as a rules file has it. */
export function toRule(draft: Draft): Readonly<Record<string, Value>> {
  const fields = fieldsOf(draft)
  const what = toWhat(draft)
  const said = (field: Field) => (Object.values(fields).flat().includes(field) ? readField(field, draft) : '')
  const selection = said(who)
  const channels = toWords(said(to))
  const optional = [description, cooldown, digest].map((field) => [field.name, said(field)] as const)
  const texts = Object.fromEntries(optional.filter(([, text]) => text !== ''))
  return {
    name: said(name) || toUsualName(what),
    ...(texts.description === undefined ? {} : { description: texts.description }),
    what,
    ...(selection === 'ids' ? { who: { ids: toWords(draft.ids ?? '') } } : {}),
    ...(selection === 'category' ? { who: { categories: [draft.category ?? ''] } } : {}),
    ...(channels.length === 0 ? {} : { to: channels }),
    ...(texts.cooldown === undefined ? {} : { cooldown: texts.cooldown }),
    ...(texts.digest === undefined ? {} : { digest: texts.digest }),
  }
}

/** Texts that YAML reads as texts without quotes. */
const PLAIN = /^(?!(?:true|false|null|yes|no|on|off|y|n)$)(?:[a-z/][\w./-]*|[1-9]\d{0,3}[mhd])$/i

/** A value as YAML in one line. */
function toFlow(value: Value): string {
  if (typeof value === 'number') return String(value)
  if (typeof value === 'string') return PLAIN.test(value) ? value : JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(toFlow).join(', ')}]`
  const members = Object.entries(value as Readonly<Record<string, Value>>)
  return `{ ${members.map(([member, one]) => `${member}: ${toFlow(one)}`).join(', ')} }`
}

/** An entry of `rules` in a rules file. `names` are those of the selected entities, as a comment. */
export function toYaml(rule: Readonly<Record<string, Value>>, names: readonly string[]): string {
  const comment = names.length === 0 ? '' : ` # ${names.join(', ').replaceAll(/\s+/g, ' ')}`
  return Object.entries(rule)
    .map(([member, value], at) => {
      const line = `${at === 0 ? '- ' : '  '}${member}: ${toFlow(value)}`
      return member === 'who' ? line + comment : line
    })
    .join('\n')
}

/** The command that adds a rule to the file of the operator. */
export const toCommand = (rule: Readonly<Record<string, Value>>) =>
  `npm run alerts -- add '${toFlow(rule).replaceAll("'", "'\\''")}'`
