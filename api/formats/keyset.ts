import { createHash } from 'node:crypto'
import { z } from 'zod'
import { toJson } from '../../shared/json.ts'
import { Problem } from '../problem/problem.ts'

/** SQL for a record's public id from the parts of its natural key, like `toId` (docs/contract.md, section 3). */
export const toIdSql = (...parts: readonly string[]): string =>
  `lower(hex(substring(SHA256(concat(${parts.map((part) => `toString(${part})`).join(", '\\x1f', ")})), 1, 12)))`

/** Rank of a UTF-16 unit among code points: surrogates, which encode the highest ones, come last. */
const toRank = (unit: number) => (unit < 0xd800 ? unit : unit < 0xe000 ? unit + 0x2000 : unit - 0x800)

/** Compares texts by code points, like ClickHouse: negative when `a` comes first. */
function compareTexts(a: string, b: string): number {
  if (a === b) return 0
  const most = Math.min(a.length, b.length)
  let at = 0
  while (at < most && a.charCodeAt(at) === b.charCodeAt(at)) at++
  return at === most ? a.length - b.length : toRank(a.charCodeAt(at)) - toRank(b.charCodeAt(at))
}

/** Number of characters by which a text is ordered: a record's position in a cursor must fit in a URL. */
export const ORDERED_CHARACTERS = 100

/** The ordered part of a text. A character is one or two UTF-16 units, so only twice the number of units is read. */
export const toOrdered = (text: string): string =>
  text.length <= ORDERED_CHARACTERS
    ? text
    : [...text.slice(0, 2 * ORDERED_CHARACTERS)].slice(0, ORDERED_CHARACTERS).join('')

/** Compares two values of one member: negative when `a` comes first. */
export const compareValues = (a: number | string, b: number | string): number =>
  typeof a === 'number' && typeof b === 'number' ? a - b : compareTexts(String(a), String(b))

const SEAL_BYTES = 9

/** A hash of the query and the position. A cursor with another hash is damaged, or from another query. */
const toSeal = (query: string, key: string) =>
  createHash('sha256').update(`${query}\u001f${key}`).digest().subarray(0, SEAL_BYTES)

/**
 * Encodes a position in an ordered answer for URLs: the sort values of the last record served. A cursor needs no server
 * state and does not expire. Records with an unchanged position are neither skipped nor repeated.
 */
export function writeCursor(query: string, key: string): string {
  return Buffer.concat([toSeal(query, key), Buffer.from(key)]).toString('base64url')
}

/** The problem for a cursor that is invalid in this query. */
export function refuseCursor(): Problem {
  const detail = 'cursor is not one of this query: take it from the Link of an answer to it.'
  return new Problem('invalid_parameter', detail, { param: 'cursor' })
}

/**
 * The sort values of a cursor as they were written. The seal detects mistakes, not forgery: any client can compute it.
 * @throws Problem `invalid_parameter` for a cursor of another query, or an invalid one.
 */
export function readCursor(query: string, cursor: string): string {
  const bytes = Buffer.from(cursor, 'base64url')
  const key = bytes.toString('utf8', SEAL_BYTES)
  if (bytes.length > SEAL_BYTES && writeCursor(query, key) === cursor) return key
  throw refuseCursor()
}

type Type = 'UInt8' | 'UInt32' | 'Int64' | 'UInt64' | 'Float64' | 'String'

type Direction = 'descending'

/** The type of one sort value, and its direction: ascending by default. */
type OrderPart = readonly [type: Type, direction?: Direction]

/** One sort value of a statement: its SQL, its type, and its direction. */
export type SortPart = readonly [sql: string, type: Type, direction?: Direction]

/** The sort values of a record, in order. */
export type Place = readonly (number | string)[]

/** The order of a list by its sort values, which are unique together and never null. A cursor holds those of one record. */
export interface SortOrder {
  /**
   * Parses the place in a cursor.
   * @throws Problem `invalid_parameter` for a text that is not from an answer of this list.
   */
  read(after: string): Place
  /** A place as text for a cursor. ClickHouse writes the same text for a `page_key`. */
  write(place: Place): string
  /** Negative if `a` comes first. */
  compare(a: Place, b: Place): number
}

/**
 * The order of rows that ClickHouse sorts and pages. A statement selects `place` as `page_key` and orders by `order`.
 */
export interface Keyset extends SortOrder {
  readonly order: string
  readonly place: string
  /** ` AND ...` for the rows after the record with the sort values in parameter `after`; an empty text on a first page. */
  isAfter(after: string): string
}

const integer = z.int()
const float = z.string().regex(/^-?[\d.]+(e[+-]?\d+)?$/)
/** The JSON of each type. A float is text: ClickHouse writes large floats as integers, which it does not read back. */
const WRITTEN = { UInt8: integer, UInt32: integer, Int64: integer, UInt64: integer, Float64: float, String: z.string() }

/** Compares part by part, as `tuple(...) >` cannot if directions differ. */
function toCondition(parts: readonly SortPart[], place: string): string {
  const values = parts.map((_, index) => `${place}.${index + 1}`)
  const steps = parts.map(([sql, , direction], index) => {
    const equal = parts.slice(0, index).map(([before], at) => `${before} = ${values[at]} AND `)
    return `(${equal.join('')}${sql} ${direction === 'descending' ? '<' : '>'} ${values[index]})`
  })
  return `(${steps.join(' OR ')})`
}

function toAfter(parts: readonly SortPart[], types: readonly Type[]): string {
  const place = `JSONExtract({after: String}, 'Tuple(${types.join(', ')})')`
  const isAscending = parts.every(([, , direction]) => direction === undefined)
  return isAscending ? `tuple(${parts.map(([sql]) => sql).join(', ')}) > ${place}` : toCondition(parts, place)
}

export function defineOrder(parts: readonly OrderPart[]): SortOrder {
  const types = parts.map(([type]) => type)
  return {
    read: (after) => {
      const schemas = types.map((type) => WRITTEN[type]) as unknown as [z.ZodType, ...z.ZodType[]]
      const { data } = z.tuple(schemas).safeParse(toJson(after))
      if (data === undefined) throw refuseCursor()
      return data.map((value, index) => (types[index] === 'Float64' ? Number(value) : (value as number | string)))
    },
    write: (values) => {
      return JSON.stringify(values.map((value, index) => (types[index] === 'Float64' ? toFloatText(value) : value)))
    },
    compare: (a, b) => {
      for (const [index, [, direction]] of parts.entries()) {
        const order = compareValues(a[index] ?? 0, b[index] ?? 0)
        if (order !== 0) return direction === undefined ? order : -order
      }
      return 0
    },
  }
}

export function defineKeyset(...parts: readonly SortPart[]): Keyset {
  const types = parts.map(([, type]) => type)
  return {
    ...defineOrder(parts.map(([, type, direction]) => (direction === undefined ? [type] : [type, direction]))),
    order: parts.map(([sql, , direction]) => (direction === undefined ? sql : `${sql} DESC`)).join(', '),
    place: `tuple(${parts.map(([sql, type]) => (type === 'Float64' ? `toString(${sql})` : sql)).join(', ')})`,
    isAfter: (after) => (after === '' ? '' : ` AND ${toAfter(parts, types)}`),
  }
}

/** A float as ClickHouse writes it, which keeps the sign of -0. */
const toFloatText = (value: number | string) => (Object.is(value, -0) ? '-0' : String(value))
