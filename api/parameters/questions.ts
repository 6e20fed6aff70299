import { z } from 'zod'
import { type Member, type MemberKind, toMembers } from '../records/members.ts'
import { ORDERED_CHARACTERS } from '../records/order.ts'
import { nearestPath } from './nearest.ts'
import { parseTime } from './time.ts'
import { wholeValues } from './whole-values.ts'

/** A member that orders a list, and which way. */
export interface SortKey {
  readonly member: Member
  readonly isDescending: boolean
}

const OPERATORS = ['>=', '<=', '!=', '>', '<', '='] as const
export type Operator = (typeof OPERATORS)[number]

/** A condition on a member; `literal` is as `toComparable` has values, and null stands for unknown. */
export interface Filter {
  readonly member: Member
  readonly operator: Operator
  readonly literal: number | string | null
}

/** Why a text says nothing, for whoever wrote it, and what it could have said. */
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

/** A member that a question is likely to be about: an amount that may be unknown. */
function exampleMember(members: Members): Member {
  const all = [...members.values()]
  const numbers = all.filter(({ kind }) => kind === 'number')
  return numbers.find(({ isNullable }) => isNullable) ?? numbers[0] ?? (all[0] as Member)
}

function findMember(members: Members, path: string): Member | Mistake {
  const member = members.get(path)
  if (member !== undefined) return member
  const nearest = nearestPath(path, [...members.keys()])
  const hint = nearest === undefined ? '' : ` Did you mean "${nearest}"?`
  const shown = path.slice(0, 60)
  return new Mistake(`knows no member "${shown}" of the records, or it is a list.${hint}`, [...members.keys()])
}

/** The order that a text such as `-financialData.percentChange7d,name` means. */
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

/** A literal as `toComparable` has the values of a kind; undefined where it is none of them. */
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

/** The condition that a text such as `financialData.marketCap>=1000000` means. */
function readFilter(members: Members, text: string): Filter | Mistake {
  const example = `filter=${exampleMember(members).path}>=1000000`
  const { path, operator, literal } = FILTER.exec(text.trim())?.groups ?? {}
  if (path === undefined || operator === undefined || literal === undefined) {
    const detail = `must be a member, one of ${OPERATORS.join(' ')} and a value, for example ${example}`
    return new Mistake(detail, [...OPERATORS])
  }
  const member = findMember(members, path)
  if (member instanceof Mistake) return member
  const isEquality = operator === '=' || operator === '!='
  const kept = { member, operator: operator as Operator }
  if (literal.toLowerCase() === 'null') {
    if (isEquality) return { ...kept, literal: null }
    return new Mistake(`compares null with = and != only, for example filter=${path}!=null`, ['=', '!='])
  }
  if (!isEquality && (member.kind === 'text' || member.kind === 'boolean')) {
    const detail = `compares ${member.kind === 'text' ? 'text' : 'true and false'} with = and != only, for example filter=${path}=${member.kind === 'text' ? 'UNI' : 'true'}`
    return new Mistake(detail, ['=', '!='])
  }
  const value = TO_LITERAL[member.kind](literal)
  if (value === undefined || Number.isNaN(value) || Math.abs(Number(value)) === Number.POSITIVE_INFINITY) {
    return new Mistake(`compares ${path} with ${WORDS[member.kind]} or null, for example ${example}`, [])
  }
  return { ...kept, literal: value }
}

const shortText = z
  .string()
  .trim()
  .max(MAX_TEXT, { error: `must have at most ${MAX_TEXT} characters`, abort: true })

/** Reports the first mistake only: finding what was meant instead of an unknown member takes time. */
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

/** What a list may be asked: the parameters `sort` and `filter`, and what their checked values mean. */
export interface Questions {
  readonly parameters: {
    readonly sort: z.ZodType<string | undefined>
    readonly filter: z.ZodType<string[] | undefined>
  }
  toSort(text: string | undefined): readonly SortKey[]
  toFilters(texts: readonly string[] | undefined): readonly Filter[]
}

/** The questions that records can be asked by their members (docs/contract.md, section 8). */
export function toQuestions(record: z.ZodObject): Questions {
  const members = toMembers(record)
  const { path } = exampleMember(members)
  // The texts stay as they are: a link to the next page repeats them.
  const filters = z
    .array(shortText)
    .max(MAX_FILTERS, { error: `must have at most ${MAX_FILTERS} values`, abort: true })
    .superRefine((texts, context) => refineTexts(texts, (text) => readFilter(members, text), context))
  wholeValues.add(filters)
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
