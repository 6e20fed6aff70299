import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Registry } from '../../shared/registry/registry.ts'
import { explainCode, PROBLEM_CODE_NAMES, PROBLEM_CODES } from '../problem/codes.ts'
import { toMethodology } from './index-methodology.ts'

/** The guides, in reading order: name in the URL, and title. */
export const GUIDES = [
  { name: 'first-request', title: 'First request' },
  { name: 'formats', title: 'Formats, pandas and DuckDB' },
  { name: 'typescript', title: 'TypeScript' },
  { name: 'paging', title: 'Sorting, filtering, paging' },
  { name: 'caching', title: 'Caching' },
  { name: 'freshness', title: 'Freshness and gaps' },
  { name: 'embedding', title: 'Charts on other sites' },
  { name: 'assistants', title: 'Assistants (MCP)' },
  { name: 'index-methodology', title: 'Methodology of the Index' },
  { name: 'index-values', title: 'Computing the Index' },
  { name: 'errors', title: 'Errors' },
  { name: 'going-live', title: 'Going live' },
] as const

/** The table rows of all error codes. */
export const toCodeRows = () =>
  PROBLEM_CODE_NAMES.map((code) => `| \`${code}\` | ${PROBLEM_CODES[code].status} | ${explainCode(code)} |`).join('\n')

/** The list of guides as Markdown. */
export const toGuideList = (): string =>
  `# Guides\n\n${GUIDES.map(({ name, title }) => `- [${title}](/guides/${name})`).join('\n')}\n`

/** The guide that follows from the active registry. */
const METHODOLOGY = 'index-methodology'

/** The paths of guides that change with the registry. */
export const OF_REGISTRY: ReadonlySet<string> = new Set([`/guides/${METHODOLOGY}`, `/guides/${METHODOLOGY}.md`])

/** A guide as Markdown, with the service's own address in its examples. */
export function toGuide(name: string, base: string, registry: Registry): string {
  const text = readFileSync(join(import.meta.dirname, 'guides', `${name}.md`), 'utf8')
  if (name !== METHODOLOGY) return text.replaceAll('{base}', base).replace('{codes}', toCodeRows())
  const values = toMethodology(registry)
  return text.replaceAll(/\{(\w+)\}/g, (placeholder, key: string) => values[key] ?? placeholder)
}
