import type { Benchmark, BenchRow, BenchTable, Findings } from './define-benchmark.ts'

const HEAD = ['what', 'a', 'b', 'a / b', 'rounds: lowest to highest', 'target', ''] as const

/** A number with three significant digits and thousands separators. */
export function toNumberText(value: number): string {
  if (!Number.isFinite(value)) return String(value)
  const digits = value === 0 ? 0 : Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))))
  const rounded = Number(value.toFixed(Math.min(digits, 6)))
  return rounded.toLocaleString('en-US', { maximumFractionDigits: Math.min(digits, 6) })
}

function toFigureText(figure: BenchRow['a'] | undefined): string {
  return figure === undefined ? '' : `${figure.name}: ${toNumberText(figure.value)} ${figure.unit}`.trim()
}

const toRatioText = (ratio: number) => `${ratio.toFixed(ratio < 0.1 ? 4 : 2)}x`

/** Whether a row meets its target; undefined without one. */
export function isMet({ target, ratio, a }: BenchRow): boolean | undefined {
  return target?.isMet(ratio ?? a.value)
}

function toCells(row: BenchRow): string[] {
  const { what, a, b, ratio, spread, rounds, target, reason } = row
  const met = isMet(row)
  const verdict = met === undefined ? '' : met ? 'met' : 'not met'
  return [
    what,
    toFigureText(a),
    toFigureText(b),
    ratio === undefined ? '' : toRatioText(ratio),
    spread === undefined ? '' : `${rounds}: ${spread.map(toRatioText).join(' to ')}`,
    target?.text ?? '',
    [verdict, met === true ? '' : (reason ?? '')].filter((text) => text !== '').join(': '),
  ]
}

/** A Markdown table padded to the widest cell of each column, so that it is readable in a terminal too. */
export function toMarkdownTable(head: readonly string[], body: readonly (readonly string[])[]): string {
  const lines = [head, ...body].map((cells) => cells.map((cell) => cell.replaceAll('|', '\\|')))
  const widths = head.map((_, column) => Math.max(3, ...lines.map((cells) => cells[column]?.length ?? 0)))
  const toLine = (cells: readonly string[]) =>
    `| ${widths.map((width, column) => (cells[column] ?? '').padEnd(width)).join(' | ')} |`
  const [first = [], ...rest] = lines
  return [toLine(first), `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |`, ...rest.map(toLine)].join('\n')
}

const toTableText = ({ title, head, body }: BenchTable) => `${title}:\n\n${toMarkdownTable(head, body)}`

type Described = Pick<Benchmark, 'name' | 'about'>

const toHead = ({ name, about }: Described, { rows }: Findings): string[] => [
  `## ${name}`,
  about,
  ...(rows.length === 0 ? [] : [toMarkdownTable(HEAD, rows.map(toCells))]),
]
const toMachineText = (machine: string) => `Measured on ${machine}.`

/** The compared figures of a benchmark as a section of the page, with machine and date. */
export const toSection = (benchmark: Described, found: Findings, machine: string): string =>
  [...toHead(benchmark, found), toMachineText(machine)].join('\n\n')

/** The same with all figures, sizes and the work of each side. */
export const toReport = (benchmark: Described, found: Findings, machine: string): string =>
  [
    ...toHead(benchmark, found),
    ...(found.tables ?? []).map(toTableText),
    ...(found.notes === undefined ? [] : [found.notes.map((note) => `- ${note}`).join('\n')]),
    toMachineText(machine),
  ].join('\n\n')

const toMarker = (name: string) => `<!-- benchmark: ${name} -->`
const SECTIONS = /^<!-- benchmark: (.+) -->$/m

/**
 * Replaces the measured sections of the page. Keeps the introduction and the sections of other benchmarks. `order`
 * lists the existing benchmarks; other sections are removed.
 */
export function toPage(page: string, measured: ReadonlyMap<string, string>, order: readonly string[]): string {
  const [intro = '', ...parts] = page.split(SECTIONS)
  const sections = new Map<string, string>()
  for (let at = 0; at < parts.length; at += 2) sections.set(parts[at] ?? '', (parts[at + 1] ?? '').trim())
  for (const [name, section] of measured) sections.set(name, section)
  const cached = order.flatMap((name) => {
    const section = sections.get(name)
    return section === undefined ? [] : [`${toMarker(name)}\n\n${section}`]
  })
  return `${[intro.trim(), ...cached].join('\n\n')}\n`
}
