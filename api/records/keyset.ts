import { z } from 'zod'
import { toJson } from '../../shared/json.ts'
import { refuseCursor } from './cursor.ts'
import { compareValues } from './order.ts'

type Type = 'UInt8' | 'UInt32' | 'Int64' | 'UInt64' | 'Float64' | 'String'

/** One sort value of a list, its type and its direction; ascending by default. */
export type SortPart = readonly [sql: string, type: Type, direction?: 'descending']

/**
 * The values that order a list, from which a page continues after the last record of the previous one. A statement
 * selects `place` as `page_key` and orders by `order`.
 */
export interface Keyset {
  readonly order: string
  readonly place: string
  /** ` AND ...` for records after the one with these sort values, in parameter `after`; empty on a first page. */
  isAfter(after: string): string
  /**
   * Parses the position in a cursor.
   * @throws Problem `invalid_parameter` for a text that no answer of this list contained.
   */
  read(after: string): Place
  /** Writes a position in the form of `page_key`. */
  write(place: Place): string
  /** Compares two positions: negative if `a` comes first. */
  compare(a: Place, b: Place): number
}

/** The sort values of a record, in order. */
export type Place = readonly (number | string)[]

const whole = z.int()
const float = z.string().regex(/^-?[\d.]+(e[+-]?\d+)?$/)
/** The JSON form of a type: a float as text, because JSON writes large ones as integers, which are not read back. */
const WRITTEN = { UInt8: whole, UInt32: whole, Int64: whole, UInt64: whole, Float64: float, String: z.string() }

/** The condition for a record after the position: the first part that differs decides. */
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

/** A keyset of values that are together unique and never null. */
export function defineKeyset(...parts: readonly SortPart[]): Keyset {
  const types = parts.map(([, type]) => type)
  // The SQL is built on use: in-memory lists need none.
  return {
    get order() {
      return parts.map(([sql, , direction]) => (direction === undefined ? sql : `${sql} DESC`)).join(', ')
    },
    get place() {
      return `tuple(${parts.map(([sql, type]) => (type === 'Float64' ? `toString(${sql})` : sql)).join(', ')})`
    },
    isAfter: (after) => (after === '' ? '' : ` AND ${toAfter(parts, types)}`),
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
      for (const [index, [, , direction]] of parts.entries()) {
        const order = compareValues(a[index] ?? 0, b[index] ?? 0)
        if (order !== 0) return direction === undefined ? order : -order
      }
      return 0
    },
  }
}

/** A float as ClickHouse writes it: -0 differs from 0. */
const toFloatText = (value: number | string) => (Object.is(value, -0) ? '-0' : String(value))
