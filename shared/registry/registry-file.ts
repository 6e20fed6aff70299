import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { findJsonFault } from './json-fault.ts'

/** A record that passed its schema, with its position for messages. */
export interface Placed<T> {
  place: string
  record: T
}

/** A record of a list with its members as written, without the schema's defaults. */
interface Listed<T> extends Placed<T> {
  written: unknown
}

/**
 * The result of reading a list: its valid records, the label (slug or symbol) of valid and invalid ones, and whether
 * the list was readable. References to an unreadable list are not checked, because the list has its own mistake.
 */
export interface RegistryFile<T> {
  file: string
  readable: boolean
  records: Listed<T>[]
  names: ReadonlySet<string>
}

/** The schema of a list's records, and the field that names a record in messages. */
export interface RecordKind<T> {
  readonly record: z.ZodType<T>
  readonly label: string
}

/** Reads a list of records from `dir/file`. Adds every mistake to `mistakes` and throws none. */
export function readRegistryFile<T>(
  dir: string,
  file: string,
  kind: RecordKind<T>,
  mistakes: string[],
): RegistryFile<T> {
  const rows = readRows(dir, file, mistakes)
  const list = openList(file, kind, mistakes)
  for (const row of rows ?? []) list.add(row)
  return { ...list.file, readable: rows !== null }
}

/** A list to which records are added one by one. Adds every mistake to `mistakes`. */
export function openList<T>(file: string, { record: schema, label }: RecordKind<T>, mistakes: string[]) {
  const records: Listed<T>[] = []
  const names = new Set<string>()
  let count = 0
  return {
    file: { file, readable: true, records, names },
    add: (row: unknown): void => {
      const recordName = nameOf(row, label)
      if (recordName !== null) names.add(recordName)
      const place = `${file}[${count}] (${recordName ?? `no ${label}`})`
      count += 1
      const parsed = schema.safeParse(row)
      if (parsed.success) records.push({ place, record: parsed.data, written: row })
      else mistakes.push(...parsed.error.issues.map((issue) => `${place}: ${describe(issue)}`))
    },
  }
}

/** Reads `dir/file` with a single record. Returns null and adds mistakes if the schema rejects it. */
export function readRegistryRecord<T>(dir: string, file: string, schema: z.ZodType<T>, mistakes: string[]): T | null {
  const content = readContent(dir, file, mistakes)
  return content === null ? null : toRecord(file, content.value, schema, mistakes)
}

/** Parses a value as the single record of a file. Returns null and adds mistakes if the schema rejects it. */
export function toRecord<T>(file: string, value: unknown, schema: z.ZodType<T>, mistakes: string[]): T | null {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  mistakes.push(...parsed.error.issues.map((issue) => `${file}: ${describe(issue)}`))
  return null
}

function readRows(dir: string, file: string, mistakes: string[]): unknown[] | null {
  const content = readContent(dir, file, mistakes)
  if (content === null) return null
  const rows = z.array(z.unknown()).safeParse(content.value)
  if (rows.success) return rows.data
  mistakes.push(`${file}: must be a list of records`)
  return null
}

/** The parsed JSON of a file, null if unreadable. */
function readContent(dir: string, file: string, mistakes: string[]): { value: unknown } | null {
  const path = join(dir, file)
  let source: string
  try {
    // Some editors write a byte order mark at the start of a file, which is invalid JSON.
    source = readFileSync(path, 'utf8').replace(/^\uFEFF/, '')
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
    mistakes.push(code === 'ENOENT' ? `${file}: missing, expected at ${path}` : `${file}: cannot be read (${code})`)
    return null
  }
  try {
    return { value: JSON.parse(source) }
  } catch {
    const { line, column } = findJsonFault(source)
    mistakes.push(`${file}: not JSON, line ${line} column ${column}`)
    return null
  }
}

function nameOf(row: unknown, label: string): string | null {
  if (typeof row !== 'object' || row === null) return null
  const value = Object.entries(row).find(([key]) => key === label)?.[1]
  return typeof value === 'string' ? value : null
}

function describe(issue: z.core.$ZodIssue): string {
  if (issue.code === 'unrecognized_keys') {
    const parent = issue.path.length > 0 ? `${z.core.toDotPath(issue.path)}.` : ''
    return issue.keys.map((key) => `${parent}${key}: unknown field`).join('; ')
  }
  const field = issue.path.length > 0 ? z.core.toDotPath(issue.path) : 'record'
  return `${field}: ${issue.message}`
}
