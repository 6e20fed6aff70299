import { DataError } from '../../../shared/errors.ts'

/** One record of a file: its fields by column, and the line that it begins on, counted from 1. */
export interface FileRecord {
  readonly line: number
  readonly fields: Readonly<Record<string, unknown>>
}

interface Row {
  readonly line: number
  readonly cells: string[]
}

/**
 * The records of a CSV text with a header line (RFC 4180: quotes, doubled quotes, line breaks inside quotes, LF or CRLF).
 * An empty cell is left out; empty lines are skipped.
 * @throws DataError `provider_malformed` naming the line: a quote out of place, or a row of another length.
 */
export function readCsv(text: string, file: string): FileRecord[] {
  const [header, ...rows] = toRows(text.replace(/^\uFEFF/, ''), file)
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

/** A cell and what ends it: a quoted one, or a bare one without quotes in it. */
const CELL = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n|\n|$)/y

function toRows(text: string, file: string): Row[] {
  const rows: Row[] = []
  let [line, start, at] = [1, 1, 0]
  let cells: string[] = []
  while (at < text.length || cells.length > 0) {
    CELL.lastIndex = at
    const found = CELL.exec(text)
    if (found === null) throw toFault(file, line, 'a quote out of place, or one that is never closed')
    const [whole, quoted, bare = '', end] = found
    cells.push(quoted === undefined ? bare : quoted.replaceAll('""', '"'))
    at += whole.length
    line += whole.split('\n').length - 1
    if (end === ',') continue
    if (cells.length > 1 || cells[0] !== '') rows.push({ line: start, cells })
    cells = []
    start = line
  }
  return rows
}

function toFault(file: string, line: number, reason: string): DataError {
  return new DataError('provider_malformed', `${file}:${line}: ${reason}`)
}
