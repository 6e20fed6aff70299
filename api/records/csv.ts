import { z } from 'zod'
import { toColumns } from './columns.ts'
import { readMembers } from './json-text.ts'

const quote = (text: string) => `"${text.replaceAll('"', '""')}"`

/** Converts a value's JSON to CSV: unknown is an empty field, a list is JSON in quotes. */
function toCell(json: string): string {
  if (json === 'null') return ''
  if (json.startsWith('"')) return quote(JSON.parse(json) as string)
  return json.startsWith('[') ? quote(json) : json
}

function toCells(schema: z.ZodType, json: string): string[] {
  const inner = schema instanceof z.ZodNullable ? (schema.unwrap() as z.ZodType) : schema
  if (!(inner instanceof z.ZodObject)) return [toCell(json)]
  const members = json === 'null' ? new Map<string, string>() : readMembers(json)
  return Object.entries(inner.shape as z.ZodRawShape).flatMap(([name, one]) =>
    toCells(one as z.ZodType, members.get(name) ?? 'null'),
  )
}

/** Converts records from JSON to CSV, byte for byte as ClickHouse writes it (`CSVWithNames`). */
export function toCsv(record: z.ZodObject, fields: readonly string[], records: readonly string[]): string {
  const columns = toColumns(record, fields, { shape: 'flat', hasLists: false })
  const lines = records.map((json) => {
    const members = readMembers(json)
    return fields.flatMap((name) => toCells(record.shape[name] as z.ZodType, members.get(name) ?? 'null')).join(',')
  })
  return [columns.map(({ name }) => quote(name)).join(','), ...lines, ''].join('\n')
}
