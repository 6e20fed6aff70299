import { CsvError, parse } from 'csv-parse/sync'
import { DataError } from '../../../shared/errors.ts'

/** One record of a file: its fields by column, and its first line, counted from 1. */
export interface FileRecord {
  readonly line: number
  readonly fields: Readonly<Record<string, unknown>>
  /** Why it is unreadable; such a record has no fields. */
  readonly fault?: string
}

interface Row {
  readonly line: number
  readonly cells: readonly string[]
}

/**
 * Reads the records of a CSV text with a header line (RFC 4180: quotes, doubled quotes, line breaks inside quotes, LF
 * or CRLF). Empty cells are left out and empty lines skipped; a line break inside a cell becomes LF. A line with a
 * misplaced quote, or a row of another length, becomes a record with a fault.
 * @throws DataError `provider_malformed` for an unreadable header, and for a hundred misplaced quotes.
 */
export function readCsv(text: string, file: string): FileRecord[] {
  const {
    rows: [header, ...rows],
    faults,
  } = toRows(text)
  const [fault] = faults
  if (faults.length >= MOST_BAD_QUOTES)
    throw toFault(file, faults.at(-1)?.line ?? 0, `${QUOTE}, and so are ${faults.length - 1} before`)
  if (fault !== undefined && (header === undefined || fault.line < header.line)) throw toFault(file, fault.line, QUOTE)
  if (header === undefined) return []
  const names = header.cells.map((name) => name.trim())
  const repeated = names.find((name, index) => names.indexOf(name) !== index)
  if (repeated !== undefined) throw toFault(file, header.line, `the column ${repeated} is there twice`)
  const records = rows.map(({ line, cells }): FileRecord => {
    if (cells.length !== names.length)
      return { line, fields: {}, fault: `${cells.length} cells, the header has ${names.length}` }
    const fields = names.flatMap((name, index) => (cells[index]?.trim() ? [[name, cells[index].trim()] as const] : []))
    return { line, fields: Object.fromEntries(fields) }
  })
  return [...records, ...faults].sort((a, b) => a.line - b.line)
}

const QUOTE = 'a quote out of place, or one that is never closed'
/** Each misplaced quote makes the rest of the file be parsed again. */
const MOST_BAD_QUOTES = 100

/**
 * Returns the rows and the unreadable lines. After an unreadable line, parsing restarts at the next line. The parser
 * reports the last line of a row, and would count a CRLF inside quotes twice.
 */
function toRows(text: string): { rows: Row[]; faults: FileRecord[] } {
  const lines = text.replaceAll('\r\n', '\n').split('\n')
  const rows: Row[] = []
  const faults: FileRecord[] = []
  let first = 0
  while (first < lines.length && faults.length < MOST_BAD_QUOTES) {
    let end = first
    const addRow = (cells: readonly string[], context: { readonly lines: number }): null => {
      end = first + context.lines
      rows.push({ line: end - cells.reduce((breaks, cell) => breaks + cell.split('\n').length - 1, 0), cells })
      return null
    }
    try {
      parse(lines.slice(first).join('\n'), { ...FORMAT, on_record: addRow })
      return { rows, faults }
    } catch (error) {
      if (!(error instanceof CsvError)) throw error
      // The unreadable row starts at the first line that is not empty.
      const bad = lines.findIndex((line, at) => at >= end && line !== '')
      faults.push({ line: bad + 1, fields: {}, fault: QUOTE })
      first = bad + 1
    }
  }
  return { rows, faults }
}

const FORMAT = { bom: true, record_delimiter: '\n', relax_column_count: true, skip_empty_lines: true }

function toFault(file: string, line: number, reason: string): DataError {
  return new DataError('provider_malformed', `${file}:${line}: ${reason}`)
}
