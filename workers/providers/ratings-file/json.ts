import { z } from 'zod'
import { DataError, toReason } from '../../../shared/errors.ts'
import type { FileRecord } from './csv.ts'

const list = z.array(z.unknown())

/**
 * Reads the records of a JSON array of objects. The members of `fundamentals` count as members of the record, like the
 * columns of a table. An element that is not an object becomes a record with a fault.
 * @throws DataError `provider_malformed` if the text is not JSON or not such an array.
 */
export function readJson(text: string, file: string): FileRecord[] {
  const records = list.safeParse(parse(text, file))
  if (!records.success) throw new DataError('provider_malformed', `${file}: must be an array of objects`)
  const lines = toElementLines(text)
  return records.data.map((record, index) => {
    const line = lines[index] ?? 0
    if (!isObject(record)) return { line, fields: {}, fault: 'must be an object' }
    const { fundamentals, ...fields } = record
    return { line, fields: { ...fields, ...(isObject(fundamentals) ? fundamentals : {}) } }
  })
}

function parse(text: string, file: string): unknown {
  try {
    return JSON.parse(text.replace(/^\uFEFF/, ''))
  } catch (cause) {
    throw new DataError('provider_malformed', `${file}: not JSON: ${toReason(cause)}`, { cause })
  }
}

const TOKEN = /"(?:[^"\\]|\\.)*"|[[\]{},\n]|[^\s"[\]{},]+/g

/** Returns the first line of each element of the outermost array. */
function toElementLines(text: string): number[] {
  const lines: number[] = []
  let [line, depth, isStarted] = [1, 0, false]
  for (const [token] of text.matchAll(TOKEN)) {
    if (token === '\n') line += 1
    else if (token === ',' && depth === 1) isStarted = false
    else if (token === ']' || token === '}') depth -= 1
    else {
      if (depth === 1 && !isStarted) {
        lines.push(line)
        isStarted = true
      }
      if (token === '[' || token === '{') depth += 1
    }
  }
  return lines
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
