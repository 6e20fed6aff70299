import type { Drawing } from '../parts/drawing.ts'

/** A value as the page shows it. Times, exact numbers and lists are text. */
export type Cell = string | number | boolean | null

/** Rows that are read from a result; the table shows fewer. */
export const MOST_ROWS = 100_000

export interface Result {
  readonly columns: readonly { readonly name: string; readonly type: string }[]
  readonly rows: readonly (readonly Cell[])[]
  /** Whether the query has more rows than the page reads. */
  readonly isCut: boolean
  readonly milliseconds: number
}

/** An Arrow type: its text is its name with its parameters. */
interface ArrowType {
  toString(): string
  readonly scale?: number
  readonly children?: readonly { readonly name: string; readonly type: ArrowType }[] | null
}

/** The exact text of a decimal, which Arrow stores as words of 32 bits, lowest first. */
function toDecimalText(words: Uint32Array, scale: number): string {
  const bits = BigInt(32 * words.length)
  const unsigned = words.reduceRight((sum, word) => (sum << 32n) | BigInt(word), 0n)
  const number = BigInt.asIntN(Number(bits), unsigned)
  const digits = String(number < 0n ? -number : number).padStart(scale + 1, '0')
  const whole = digits.slice(0, digits.length - scale)
  return `${number < 0n ? '-' : ''}${whole}${scale === 0 ? '' : `.${digits.slice(-scale)}`}`
}

function toPlain(value: unknown, type: ArrowType): unknown {
  if (value === null || value === undefined) return null
  const name = type.toString()
  if (/^Timestamp/.test(name)) return new Date(Number(value)).toISOString()
  if (/^Date/.test(name)) return new Date(Number(value)).toISOString().slice(0, 10)
  if (value instanceof Uint32Array && /^Decimal/.test(name)) return toDecimalText(value, type.scale ?? 0)
  if (typeof value === 'bigint') return Number.isSafeInteger(Number(value)) ? Number(value) : String(value)
  const children = type.children ?? []
  if (/^(?:List|FixedSizeList)/.test(name) && children[0] !== undefined) {
    const { type: item } = children[0]
    return [...(value as Iterable<unknown>)].map((one) => toPlain(one, item))
  }
  if (/^Struct/.test(name))
    return Object.fromEntries(
      children.map((child) => [child.name, toPlain((value as Record<string, unknown>)[child.name], child.type)]),
    )
  return value
}

/** Converts a value of an Arrow column. */
export function toCell(value: unknown, type: ArrowType): Cell {
  const plain = toPlain(value, type)
  if (plain === null || typeof plain === 'string' || typeof plain === 'number' || typeof plain === 'boolean')
    return plain
  return JSON.stringify(plain, (_key, one: unknown) => (typeof one === 'bigint' ? String(one) : one))
}

/**
 * Rows as CSV with a header, by the rules of the API's CSV with `bom=true`: texts are quoted and a missing value is
 * empty.
 */
export function toCsv({ columns, rows }: Pick<Result, 'columns' | 'rows'>): string {
  const toField = (cell: Cell) => {
    if (typeof cell !== 'string') return cell === null ? '' : String(cell)
    return `"${cell.replaceAll('"', '""')}"`
  }
  const lines = [columns.map(({ name }) => name), ...rows].map((row) => `${row.map(toField).join(',')}\n`)
  return `\ufeff${lines.join('')}`
}

const isNumeric = (type: string) => /^(?:Int|Uint|Float|Decimal)/i.test(type)

/** Whether numbers of the column are aligned at the end. */
export const isNumberColumn = ({ type }: Result['columns'][number]) => isNumeric(type)

/**
 * The rows as a line, if the first column is a time and the second a number. Undefined if several rows have the same
 * time, because they form no line.
 */
export function toLine({ columns, rows }: Result): Drawing | undefined {
  const [time, value] = columns
  if (time === undefined || value === undefined || !/^(?:Timestamp|Date)/.test(time.type) || !isNumeric(value.type))
    return undefined
  const points = rows
    .filter(([at]) => at !== null)
    .map(([at, of]): [number, number | null] => [Date.parse(String(at)) / 1000, of == null ? null : Number(of)])
    .sort(([a], [b]) => a - b)
  if (points.length < 2 || points.some(([at], index) => at === points[index - 1]?.[0])) return undefined
  const lines = [{ name: value.name, values: points.map(([, of]) => of) }]
  return { kind: 'line', as: 'amount', times: points.map(([at]) => at), lines }
}
