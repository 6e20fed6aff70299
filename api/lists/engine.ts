import {
  compareValues,
  defineOrder,
  MEMBER_TYPES,
  type Member,
  type Place,
  type SortOrder,
  toComparable,
  toOrdered,
} from '../formats/formats.ts'
import type { Filter, Operator, SortKey } from '../parameters/questions.ts'
import type { Selection } from '../route/entities.ts'

/**
 * The list engine: all filtering, sorting and paging of lists is here and uses the records in memory.
 *
 * - The JSON text of a record is never rewritten: an answer repeats the bytes that were loaded.
 * - A set has the records in the default order of their list. `createRecordSet` makes it from their JSON,
 *   `createSortedSet` from records in any other form.
 * - A cursor holds the sort values of the last record served, so it stays valid when the records are loaded again.
 */

/** One record of a list. */
export interface ListedRecord {
  /** Identifies the record in its list, and breaks ties of the order. */
  readonly key: number
  /** Time of its newest datum, in Unix milliseconds. */
  readonly asOf: number
  readonly marketCap: number | null
  /** Its JSON text. */
  readonly json: Buffer
}

/** A parsed request to a list. */
export interface ListQuery {
  readonly selection: Selection
  readonly sort: readonly SortKey[]
  readonly filters: readonly Filter[]
  /** Most records of a page; without it the page has all records that match. */
  readonly limit?: number
}

export const EVERYTHING: Selection = { all: true, keys: [], exact: [] }

type Value = number | string | null

/** A member's value by the index of the record. */
type Column = (index: number) => Value

/** Stored records of a list, in its default order. */
interface StoredRecords {
  /** Memory that the records take, with what queries add to it. */
  readonly bytes: number
  readonly length: number
  recordAt(index: number): ListedRecord
  keyAt(index: number): number
  /** Breaks ties of the order, before the key. */
  nameAt(index: number): string
  columns(members: readonly Member[]): readonly Column[]
}

/** All records of a list at one moment. */
export interface RecordSet extends Omit<StoredRecords, 'nameAt'> {
  /** Indices of the records in the order of `sort`. */
  sorted(sort: readonly SortKey[]): Uint32Array
  /** The sort values of one record: for each key whether the value is unknown, and the value; then name and key. */
  placeOf(index: number, sort: readonly SortKey[]): Place
}

/** Estimated memory of a record beyond its JSON: the entry, its index in cached orders, and its values in columns. */
const RECORD_BYTES = 500
/** Orders that a set caches. */
const MAX_ORDERS = 16
/** Memory of a record in the cached orders. */
export const ORDER_BYTES = MAX_ORDERS * Uint32Array.BYTES_PER_ELEMENT

/** The value of an unknown member in a `Place`. The flag before it already sorts the record last. */
export const emptyValue = ({ kind }: Member): number | string => (kind === 'text' ? '' : 0)

/** Texts sort by their first characters only, because a cursor has to fit in a URL. */
const sortValue = (value: number | string) => (typeof value === 'string' ? toOrdered(value) : value)

/** The text that orders records with equal sort keys: the name, or the symbol of a record without a name. */
export function nameOf(record: unknown): string {
  const { name, symbol } = record as { name?: unknown; symbol?: unknown }
  return String(name ?? symbol ?? '')
}

/** A set of records that are stored as JSON. */
export interface JsonRecordSet extends RecordSet {
  readonly records: readonly ListedRecord[]
}

export function createRecordSet(records: readonly ListedRecord[]): JsonRecordSet {
  const columns = new Map<string, Value[]>()
  const names = new Array<string | undefined>(records.length)

  /** Parsing costs more than the rest of a query, so each record is parsed once for all members that are missing. */
  const addColumns = (members: readonly Member[]): void => {
    const missing = members
      .filter(({ path }) => !columns.has(path))
      .map((member) => ({ member, column: new Array<Value>(records.length) }))
    for (const [index, { json }] of missing.length === 0 ? [] : records.entries()) {
      const record: unknown = JSON.parse(json.toString())
      for (const { member, column } of missing) column[index] = toComparable(record, member)
    }
    for (const { member, column } of missing) columns.set(member.path, column)
  }
  const recordAt = (index: number) => records[index] as ListedRecord
  const set = createSortedSet({
    bytes: records.reduce((sum, { json }) => sum + json.length + RECORD_BYTES, 0),
    length: records.length,
    recordAt,
    keyAt: (index) => recordAt(index).key,
    /** Few records need their name: those at the end of a page and those that are equal otherwise. */
    nameAt: (index) => {
      const cached = names[index]
      if (cached !== undefined) return cached
      const name = nameOf(JSON.parse(recordAt(index).json.toString()))
      names[index] = name
      return name
    },
    columns: (members) => {
      addColumns(members)
      return members.map(({ path }) => {
        const column = columns.get(path) as Value[]
        return (index) => column[index] ?? null
      })
    },
  })
  return { ...set, records }
}

/** A set of stored records, with the orders that queries request. */
export function createSortedSet({ nameAt, ...stored }: StoredRecords): RecordSet {
  const { length, keyAt, columns } = stored
  const orders = new Map<string, Uint32Array>()
  const sortIndices = (sort: readonly SortKey[]): Uint32Array => {
    const columnsOfSort = columns(sort.map(({ member }) => member))
    const keys = sort.map(({ isDescending }, at) => ({ valueAt: columnsOfSort[at] as Column, isDescending }))
    return Uint32Array.from({ length }, (_, index) => index).sort((a, b) => {
      for (const { valueAt, isDescending } of keys) {
        const [valueOfA, valueOfB] = [valueAt(a), valueAt(b)]
        if (valueOfA === null || valueOfB === null) {
          if (valueOfA !== valueOfB) return valueOfA === null ? 1 : -1
          continue
        }
        const order = compareValues(sortValue(valueOfA), sortValue(valueOfB))
        if (order !== 0) return isDescending ? -order : order
      }
      return compareValues(nameAt(a), nameAt(b)) || keyAt(a) - keyAt(b)
    })
  }
  return {
    ...stored,
    sorted: (sort) => {
      const text = sort.map(({ member, isDescending }) => `${isDescending ? '-' : ''}${member.path}`).join()
      const cached = orders.get(text)
      if (cached !== undefined) return cached
      const order = sort.length === 0 ? Uint32Array.from({ length }, (_, index) => index) : sortIndices(sort)
      if (orders.size === MAX_ORDERS) orders.clear()
      orders.set(text, order)
      return order
    },
    placeOf: (index, sort) => {
      const values = columns(sort.map(({ member }) => member)).flatMap((valueAt, at) => {
        const value = valueAt(index)
        if (value === null) return [1, emptyValue((sort[at] as SortKey).member)]
        return [0, sortValue(value)]
      })
      return [...values, nameAt(index), keyAt(index)]
    },
  }
}

/** Exact name matches first, then by market cap, the largest first, then by name (docs/contract.md, section 2). */
const BY_MARKET_CAP = defineOrder([['UInt8'], ['UInt8'], ['Float64'], ['String'], ['UInt64']])

/** The order by members of the record, unknown values last, then by name and key (docs/contract.md, section 8). */
function sortOrderOf(sort: readonly SortKey[]): SortOrder {
  if (sort.length === 0) return BY_MARKET_CAP
  const parts = sort.flatMap(({ member, isDescending }) => {
    const type = MEMBER_TYPES[member.kind]
    return [['UInt8'] as const, isDescending ? ([type, 'descending'] as const) : ([type] as const)]
  })
  return defineOrder([...parts, ['String'], ['UInt64']])
}

const HOLDS: Readonly<Record<Operator, (order: number) => boolean>> = {
  '>=': (order) => order >= 0,
  '<=': (order) => order <= 0,
  '!=': (order) => order !== 0,
  '>': (order) => order > 0,
  '<': (order) => order < 0,
  '=': (order) => order === 0,
}

function holds(value: Value, { operator, literal }: Filter): boolean {
  if (literal === null) return (value === null) === (operator === '=')
  return value !== null && HOLDS[operator](compareValues(value, literal))
}

function filterIndices(set: RecordSet, indices: Uint32Array, filters: readonly Filter[]): Uint32Array {
  if (filters.length === 0) return indices
  const columns = set.columns(filters.map(({ member }) => member))
  return indices.filter((index) => filters.every((filter, at) => holds(columns[at]?.(index) ?? null, filter)))
}

/** Indices of the records that match, in order, and the sort values of each. */
function findMatches(set: RecordSet, { selection, sort, filters }: ListQuery) {
  const [keys, exact] = [new Set(selection.keys), new Set(selection.exact)]
  const sorted = set.sorted(sort)
  const selected = selection.all ? sorted : sorted.filter((index) => keys.has(set.keyAt(index)))
  const matches = filterIndices(set, selected, filters)
  if (sort.length > 0) return { matches, placeOf: (index: number) => set.placeOf(index, sort) }
  const isExact = (index: number) => exact.has(set.keyAt(index))
  const placeOf = (index: number): Place => {
    const { marketCap } = set.recordAt(index)
    return [isExact(index) ? 0 : 1, marketCap === null ? 1 : 0, -(marketCap ?? 0), ...set.placeOf(index, [])]
  }
  if (exact.size === 0) return { matches, placeOf }
  const rest = matches.filter((index) => !isExact(index))
  return { matches: Uint32Array.from([...matches.filter(isExact), ...rest]), placeOf }
}

/** The position from which the condition holds for all indices. A binary search compares few records. */
function findFirst(ordered: Uint32Array, holdsFrom: (index: number) => boolean): number {
  let [low, high] = [0, ordered.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if (holdsFrom(ordered[middle] as number)) high = middle
    else low = middle + 1
  }
  return low
}

/** One page of a list. */
export interface ListPage {
  readonly records: readonly ListedRecord[]
  /** Time of the newest datum of the page, in Unix milliseconds; null for an empty page. */
  readonly asOf: number | null
  /** The number of matching records, independent of the limit. */
  readonly total: number
  /** The sort values of the last record if more records follow, else an empty text. */
  readonly next: string
}

/**
 * Filters, sorts and pages the records (docs/contract.md, sections 2 and 8). `after` are the sort values in the cursor, an empty
 * text for the first page.
 * @throws Problem `invalid_parameter` if `after` does not belong to this order.
 */
export function selectPage(set: RecordSet, query: ListQuery, after: string): ListPage {
  const { limit = Number.POSITIVE_INFINITY } = query
  const { read, compare, write } = sortOrderOf(query.sort)
  const { matches, placeOf } = findMatches(set, query)
  const last = after === '' ? undefined : read(after)
  const begin = last === undefined ? 0 : findFirst(matches, (index) => compare(placeOf(index), last) > 0)
  const page = [...matches.subarray(begin, begin + limit)]
  const records = page.map(set.recordAt)
  const end = page.at(-1)
  return {
    records,
    asOf: records.reduce<number | null>((newest, { asOf }) => Math.max(newest ?? asOf, asOf), null),
    total: matches.length,
    next: end === undefined || begin + page.length === matches.length ? '' : write(placeOf(end)),
  }
}

/** The JSON of records. */
export const toTexts = (records: readonly ListedRecord[]): Buffer[] => records.map(({ json }) => json)
