import type { Filter, Operator, SortKey } from '../parameters/questions.ts'
import type { Keyset, Place } from '../records/keyset.ts'
import { type Member, toComparable } from '../records/members.ts'
import { compareValues, toOrdered } from '../records/order.ts'

/** A record of a list as ClickHouse wrote it, and what its place in the list is made of. */
export interface ListedRecord {
  readonly key: number
  /** Time of its newest datum, in Unix milliseconds. */
  readonly asOf: number
  readonly marketCap: number | null
  /** Its JSON. */
  readonly bytes: Buffer
}

/** All records of a list at a moment, to be asked in any way without the database. */
export interface RecordSet {
  /** Memory that it takes. */
  readonly bytes: number
  readonly records: readonly ListedRecord[]
  /** Indices of the records in the order of these members, or in that of the list without any. */
  inOrder(sort: readonly SortKey[], keyset: Keyset): readonly number[]
  /** Whether all of these hold for a record. */
  fits(index: number, filters: readonly Filter[]): boolean
  /** A record's place in the order of these members: of each whether it is unknown and what it is, then name and key. */
  placeOf(index: number, sort: readonly SortKey[]): Place
}

const HOLDS: Readonly<Record<Operator, (order: number) => boolean>> = {
  '>=': (order) => order >= 0,
  '<=': (order) => order <= 0,
  '!=': (order) => order !== 0,
  '>': (order) => order > 0,
  '<': (order) => order < 0,
  '=': (order) => order === 0,
}

function holds(value: number | string | null, { operator, literal }: Filter): boolean {
  if (literal === null) return (value === null) === (operator === '=')
  return value !== null && HOLDS[operator](compareValues(value, literal))
}

/** What orders records that are equal otherwise: of what has no name its symbol. */
function toName(record: unknown): string {
  const { name, symbol } = record as { name?: unknown; symbol?: unknown }
  return String(name ?? symbol ?? '')
}

/** What a record takes beyond its JSON, about: the entry, its places in the kept orders, and the members read out of it. */
const RECORD_BYTES = 500

/** What stands in a place for an unknown value, which comes after all others whatever it is. */
export const toEmpty = ({ kind }: Member): number | string => (kind === 'text' ? '' : 0)

const parse = ({ bytes }: ListedRecord): unknown => JSON.parse(bytes.toString())

export function createRecordSet(records: readonly ListedRecord[]): RecordSet {
  const columns = new Map<string, readonly (number | string | null)[]>()
  const orders = new Map<string, readonly number[]>()
  let names: readonly string[] | undefined
  const toNames = () => records.map((record) => toName(parse(record)))
  const columnOf = (member: Member) => {
    const known = columns.get(member.path)
    if (known !== undefined) return known
    const column = records.map((record) => toComparable(parse(record), member))
    columns.set(member.path, column)
    return column
  }
  const placeOf: RecordSet['placeOf'] = (index, sort) => {
    names ??= toNames()
    const values = sort.flatMap(({ member }) => {
      const value = columnOf(member)[index] ?? null
      if (value === null) return [1, toEmpty(member)]
      return [0, typeof value === 'string' ? toOrdered(value) : value]
    })
    return [...values, names[index] ?? '', records[index]?.key ?? 0]
  }
  return {
    bytes: records.reduce((sum, record) => sum + record.bytes.length + RECORD_BYTES, 0),
    records,
    inOrder: (sort, { compare }) => {
      const text = sort.map(({ member, isDescending }) => `${isDescending ? '-' : ''}${member.path}`).join()
      const known = orders.get(text)
      if (known !== undefined) return known
      const order = records.map((_, index) => index)
      if (sort.length > 0) {
        const places = order.map((index) => placeOf(index, sort))
        order.sort((a, b) => compare(places[a] as Place, places[b] as Place))
      }
      if (orders.size === MAX_ORDERS) orders.clear()
      orders.set(text, order)
      return order
    },
    fits: (index, filters) => filters.every((filter) => holds(columnOf(filter.member)[index] ?? null, filter)),
    placeOf,
  }
}

/** Orders that are kept of a set: what people ask for again and again is fewer. */
const MAX_ORDERS = 16
