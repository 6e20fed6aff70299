import { z } from 'zod'
import { DataError, toReason } from '../../../shared/errors.ts'
import type { FileRecord } from './csv.ts'

const list = z.array(z.record(z.string(), z.unknown()))

/**
 * The records of a JSON array of objects; the members of `fundamentals` count as the record's own, as the columns of a
 * table do.
 * @throws DataError `provider_malformed` where the text is no JSON or no such array.
 */
export function readJson(text: string, file: string): FileRecord[] {
  const records = list.safeParse(parse(text, file))
  if (!records.success) throw new DataError('provider_malformed', `${file}: must be an array of objects`)
  const lines = toElementLines(text)
  return records.data.map(({ fundamentals, ...fields }, index) => ({
    line: lines[index] ?? 0,
    fields: { ...fields, ...(isObject(fundamentals) ? fundamentals : {}) },
  }))
}

function parse(text: string, file: string): unknown {
  try {
    return JSON.parse(text.replace(/^\uFEFF/, ''))
  } catch (cause) {
    throw new DataError('provider_malformed', `${file}: not JSON: ${toReason(cause)}`, { cause })
  }
}

const TOKEN = /"(?:[^"\\]|\\.)*"|[[\]{}\n]/g

/** The line on which each element of the outermost array begins; the elements are objects. */
function toElementLines(text: string): number[] {
  const lines: number[] = []
  let [line, depth] = [1, 0]
  for (const [token] of text.matchAll(TOKEN)) {
    if (token === '\n') line += 1
    else if (token === '{' || token === '[') {
      if (depth === 1) lines.push(line)
      depth += 1
    } else if (token === '}' || token === ']') depth -= 1
  }
  return lines
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
