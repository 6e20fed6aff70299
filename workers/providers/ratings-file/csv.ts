import { CsvError, parse } from 'csv-parse/sync'
import { DataError } from '../../../shared/errors.ts'

/** One record of a file: its fields by column, and the line that it begins on, counted from 1. */
export interface FileRecord {
  readonly line: number
  readonly fields: Readonly<Record<string, unknown>>
}

interface Row {
  readonly line: number
  readonly cells: readonly string[]
}

/**
 * The records of a CSV text with a header line (RFC 4180: quotes, doubled quotes, line breaks inside quotes, LF or CRLF).
 * An empty cell is left out; empty lines are skipped; a line break inside a cell is a LF.
 * @throws DataError `provider_malformed` naming the line: a quote out of place, or a row of another length.
 */
export function readCsv(text: string, file: string): FileRecord[] {
  const [header, ...rows] = toRows(text, file)
  if (header === undefined) return []
  const names = header.cells.map((name) => name.trim())
  const repeated = names.find((name, index) => names.indexOf(name) !== index)
  if (repeated !== undefined) throw toFault(file, header.line, `the column ${repeated} is there twice`)
  return rows.map(({ line, cells }) => {
    if (cells.length !== names.length) {
      throw toFault(file, line, `${cells.length} cells, the header has ${names.length}`)
    }
    const fields = names.flatMap((name, index) => (cells[index]?.trim() ? [[name, cells[index].trim()] as const] : []))
    return { line, fields: Object.fromEntries(fields) }
  })
}

/** The parser tells the line that a row ends on, and would count a CRLF inside quotes twice. */
function toRows(text: string, file: string): Row[] {
  const rows: Row[] = []
  let end = 0
  const addRow = (cells: readonly string[], { lines }: { readonly lines: number }): null => {
    end = lines
    rows.push({ line: lines - cells.reduce((breaks, cell) => breaks + cell.split('\n').length - 1, 0), cells })
    return null
  }
  try {
    parse(text.replaceAll('\r\n', '\n'), { ...FORMAT, on_record: addRow })
  } catch (error) {
    if (!(error instanceof CsvError)) throw error
    // A quote that is never closed is noticed at the end of the file: it is somewhere in the row that was begun.
    const line = error.code === 'CSV_QUOTE_NOT_CLOSED' ? end + 1 : Number(error.lines)
    throw toFault(file, line, 'a quote out of place, or one that is never closed')
  }
  return rows
}

const FORMAT = { bom: true, record_delimiter: '\n', relax_column_count: true, skip_empty_lines: true }

function toFault(file: string, line: number, reason: string): DataError {
  return new DataError('provider_malformed', `${file}:${line}: ${reason}`)
}
