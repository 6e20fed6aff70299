import { z } from 'zod'
import {
  FORMAT_NAMES,
  FORMATS,
  type Member,
  type MemberKind,
  ORDERED_CHARACTERS,
  toMembers,
} from '../formats/formats.ts'
import { nearestPath, unsplitValues } from './kinds.ts'
import type { QueryShape } from './parse.ts'
import { parseTime, suggestTime } from './time.ts'

const MEDIA_TYPES = FORMAT_NAMES.map((name) => `\`${FORMATS[name].mediaType}\``).join(', ')

const format = z
  .enum(FORMAT_NAMES, `must be one of ${FORMAT_NAMES.join(', ')}`)
  .optional()
  .meta({
    description: `How the answer is written; without it \`Accept\` decides (${MEDIA_TYPES}), and JSON is the default. CSV, Parquet and Arrow have a column for each value, named after its members with underscores in between (\`financialData_price\`); lists inside a record are lists in Parquet and Arrow, JSON text in CSV. In CSV an unknown value is an empty field.`,
    examples: ['csv'],
  })

const bom = z
  .enum(['true', 'false'], 'must be one of true, false')
  .optional()
  .meta({
    description:
      'With `true`, CSV begins with a byte order mark, so that spreadsheets read it as UTF-8. The other formats have none.',
    examples: ['true'],
  })

/** The parameters of every route with records. */
export function recordParameters(record: z.ZodObject): QueryShape {
  const names = Object.keys(record.shape) as [string, ...string[]]
  const fields = z
    .array(z.enum(names, `must be some of ${names.join(', ')}`))
    .optional()
    .meta({
      description:
        'Only these members of each record, in the order of the record: `fields=a,b` or repeated. If the JSON is one object around the records, `fields` works with the other formats only.',
      examples: [names.slice(0, 2)],
    })
  return { fields, format, bom }
}

/** A member that orders a list, and its direction. */
export interface SortKey {
  readonly member: Member
  readonly isDescending: boolean
}

const OPERATORS = ['>=', '<=', '!=', '>', '<', '='] as const
export type Operator = (typeof OPERATORS)[number]

/** A condition on a member; `literal` has the form of `toComparable`, and null means unknown. */
export interface Filter {
  readonly member: Member
  readonly operator: Operator
  readonly literal: number | string | null
}

/** Why a text is invalid, and the allowed values. */
class Mistake {
  readonly message: string
  readonly allowed: readonly string[]

  constructor(message: string, allowed: readonly string[]) {
    this.message = message
    this.allowed = allowed
  }
}

type Members = ReadonlyMap<string, Member>

const MAX_SORT_KEYS = 3
const MAX_FILTERS = 10
const MAX_TEXT = 300
const FILTER = /^(?<path>[A-Za-z_][\w.]*)\s*(?<operator>>=|<=|!=|>|<|=)\s*(?<literal>.*)$/s

/** A likely member for examples: a number that may be unknown. */
function exampleMember(members: Members): Member {
  const all = [...members.values()]
  const numbers = all.filter(({ kind }) => kind === 'number')
  return numbers.find(({ isNullable }) => isNullable) ?? numbers[0] ?? (all[0] as Member)
}

/** A condition on a member that a client may send, by the kind of the member. */
const EXAMPLE_CONDITIONS: Readonly<Record<MemberKind, string>> = {
  number: '>=1000000',
  time: '>=2026-01-01',
  boolean: '=true',
  text: '=UNI',
}

const toExample = ({ path, kind }: Member): string => `filter=${path}${EXAMPLE_CONDITIONS[kind]}`

function findMember(members: Members, path: string): Member | Mistake {
  const member = members.get(path)
  if (member !== undefined) return member
  const nearest = nearestPath(path, [...members.keys()])
  const hint = nearest === undefined ? '' : ` Did you mean "${nearest}"?`
  const shown = path.slice(0, 60)
  return new Mistake(`knows no member "${shown}" of the records, or it is a list.${hint}`, [...members.keys()])
}

/** Parses a sort text such as `-financialData.percentChange7d,name`. */
function readSort(members: Members, text: string): SortKey[] | Mistake {
  const names = text.split(',').map((name) => name.trim())
  const example = `sort=-${exampleMember(members).path}`
  if (names.length > MAX_SORT_KEYS)
    return new Mistake(`takes at most ${MAX_SORT_KEYS} members, for example ${example}`, [])
  const keys: SortKey[] = []
  for (const name of names) {
    const isDescending = name.startsWith('-')
    const member = findMember(members, isDescending ? name.slice(1) : name)
    if (member instanceof Mistake) return member
    if (keys.some((key) => key.member === member)) return new Mistake(`names ${member.path} twice`, [])
    keys.push({ member, isDescending })
  }
  return keys
}

/** Parses a literal to the form of `toComparable`; undefined if it does not fit the kind. */
const TO_LITERAL: Readonly<Record<MemberKind, (text: string) => number | string | undefined>> = {
  number: (text) => (/^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/i.test(text) ? Number(text) : undefined),
  time: (text) => parseTime(text),
  boolean: (text) => ({ true: 1, false: 0 })[text.toLowerCase()],
  text: (text) => text.toLowerCase(),
}

const WORDS: Readonly<Record<MemberKind, string>> = {
  number: 'a number',
  time: 'a time, as ISO date, ISO date-time, Unix seconds or milliseconds',
  boolean: 'true or false',
  text: 'a text',
}

/** Parses a filter text such as `financialData.marketCap>=1000000`. */
function readFilter(members: Members, text: string): Filter | Mistake {
  const { path, operator, literal } = FILTER.exec(text.trim())?.groups ?? {}
  if (path === undefined || operator === undefined || literal === undefined) {
    const detail = `must be a member, one of ${OPERATORS.join(' ')} and a value, for example ${toExample(exampleMember(members))}`
    return new Mistake(detail, [...OPERATORS])
  }
  const member = findMember(members, path)
  if (member instanceof Mistake) return member
  const isEquality = operator === '=' || operator === '!='
  const parsed = { member, operator: operator as Operator }
  if (literal.toLowerCase() === 'null') {
    if (isEquality) return { ...parsed, literal: null }
    return new Mistake(`compares null with = and != only, for example filter=${path}!=null`, ['=', '!='])
  }
  if (!isEquality && (member.kind === 'text' || member.kind === 'boolean')) {
    const detail = `compares ${member.kind === 'text' ? 'text' : 'true and false'} with = and != only, for example ${toExample(member)}`
    return new Mistake(detail, ['=', '!='])
  }
  const value = TO_LITERAL[member.kind](literal)
  if (value === undefined || Number.isNaN(value) || Math.abs(Number(value)) === Number.POSITIVE_INFINITY) {
    const suggestion = member.kind === 'time' ? suggestTime(literal) : undefined
    const hint = suggestion === undefined ? toExample(member) : `filter=${path}${operator}${suggestion}`
    return new Mistake(`compares ${path} with ${WORDS[member.kind]} or null, for example ${hint}`, [])
  }
  return { ...parsed, literal: value }
}

const shortText = z
  .string()
  .trim()
  .max(MAX_TEXT, { error: `must have at most ${MAX_TEXT} characters`, abort: true })

/** Reports the first error only: finding a suggestion for an unknown member takes time. */
function refineTexts(texts: readonly string[], read: (text: string) => unknown, context: z.RefinementCtx): void {
  for (const text of texts) {
    if (text.length > MAX_TEXT) return
    const found = read(text)
    if (!(found instanceof Mistake)) continue
    context.addIssue({ code: 'custom', message: found.message, params: { allowed: found.allowed } })
    return
  }
}

function must<T>(found: T | Mistake): T {
  if (found instanceof Mistake) throw new Error(found.message)
  return found
}

/** The parameters `sort` and `filter` of a list, and the parsers for their validated values. */
export interface Questions {
  readonly parameters: {
    readonly sort: z.ZodType<string | undefined>
    readonly filter: z.ZodType<string[] | undefined>
  }
  toSort(text: string | undefined): readonly SortKey[]
  toFilters(texts: readonly string[] | undefined): readonly Filter[]
}

/** Builds `sort` and `filter` for the members of a record (docs/contract.md, section 8). */
export function toQuestions(record: z.ZodObject): Questions {
  const members = toMembers(record)
  const { path } = exampleMember(members)
  // The texts are not parsed here: a link to the next page repeats them.
  const filters = z
    .array(shortText)
    .max(MAX_FILTERS, { error: `must have at most ${MAX_FILTERS} values`, abort: true })
    .superRefine((texts, context) => refineTexts(texts, (text) => readFilter(members, text), context))
  unsplitValues.add(filters)
  return {
    parameters: {
      sort: shortText
        .superRefine((text, context) => refineTexts([text], (one) => readSort(members, one), context))
        .optional()
        .meta({
          description: `Orders the records by up to ${MAX_SORT_KEYS} members with commas between, \`-\` before one for descending: ${[...members.keys()].map((one) => `\`${one}\``).join(', ')}. An unknown value comes last either way; equal ones are ordered by name, then id. Text is compared by its first ${ORDERED_CHARACTERS} characters, without regard to case.`,
          examples: [`-${path}`],
        }),
      filter: filters.optional().meta({
        description: `Only records of which this holds: a member, one of \`${OPERATORS.join('` `')}\` and a value. Repeated, all must hold, at most ${MAX_FILTERS}. Text, without regard to case, and true or false take \`=\` and \`!=\` only; \`=null\` and \`!=null\` ask whether a value is known, and no other comparison holds for an unknown one. The members are those of \`sort\`.`,
        examples: [[`${path}!=null`]],
      }),
    },
    toSort: (text) => (text === undefined ? [] : must(readSort(members, text))),
    toFilters: (texts = []) => texts.map((text) => must(readFilter(members, text))),
  }
}
