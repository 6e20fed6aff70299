import { FORMATS, type Format } from '../answers/formats.ts'

/** A larger number of entities is counted instead of named. */
const MAX_NAMES = 3

const toSlug = (text: string) =>
  text
    .normalize('NFKD')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-|-$/g, '')

/** A day, or a time without the characters that file systems reject. */
function toDay(value: unknown): string[] {
  if (typeof value !== 'number') return []
  const text = new Date(value).toISOString()
  return [text.endsWith('T00:00:00.000Z') ? text.slice(0, 10) : text.slice(0, 16).replace(':', '')]
}

/** A descriptive file name: `uniswap-5m-2024-01-01.csv`, `tokens-holders.parquet`. */
export function toFileName(facts: {
  path: string
  query: Readonly<Record<string, unknown>>
  names: readonly string[]
  format: Format
}): string {
  const { path, query, names, format } = facts
  const words = path.split('/').slice(2)
  const who = names.length > MAX_NAMES ? [`${names.length}-${words[0]}`] : names.map(toSlug)
  const what = names.length === 0 ? words : words.slice(-1)
  const parts = [...who, ...(query.interval === undefined ? what : [String(query.interval)])]
  return `${[...parts, ...toDay(query.start), ...toDay(query.end)].join('-')}.${FORMATS[format].extension}`
}
