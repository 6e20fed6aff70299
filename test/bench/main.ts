import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { readCommandLine } from '../../shared/command-line.ts'
import { DataError } from '../../shared/errors.ts'
import { isMain, onStopSignal, runProgram } from '../../shared/process.ts'
import { buildIfNeeded } from '../../tools/build.ts'
import { runCompiledIn } from '../../tools/children.ts'
import { benchmarks } from './benchmarks.ts'
import type { BenchContext, Benchmark, Findings } from './define-benchmark.ts'
import { describeMachine } from './machine.ts'
import { isMet, toPage, toReport, toSection } from './report.ts'

const root = join(import.meta.dirname, '../..')
const PAGE = join(root, 'docs/benchmarks.md')
const REPORTS = join(root, '.data/benchmarks')

const HELP = `npm run bench -- [names] [options]

Measures both sides of each comparison in turn, prints the ratios and writes them to ${relative(root, PAGE)}; sections of
benchmarks that did not run are unchanged. ${relative(root, REPORTS)}/<name>.md has all figures, sizes and the work of each
side. Without names, all of them run.

  --list      prints the names of the benchmarks
  --quick     small sizes, to try the benchmarks themselves; prints and does not write
  --rows      points of the largest generated table (default: 100000000)
  --postgres  also measures PostgreSQL, if its server is installed
  --json      prints the results as JSON
  --help`

function readWords() {
  const { values, positionals } = readCommandLine({
    allowPositionals: true,
    options: {
      list: { type: 'boolean', default: false },
      quick: { type: 'boolean', default: false },
      rows: { type: 'string', default: '100000000' },
      postgres: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  const rows = Number(values.rows)
  if (!Number.isSafeInteger(rows) || rows < 1)
    throw new DataError('payload', `--rows ${values.rows}: not a whole number above 0`)
  const unknown = positionals.filter((name) => !benchmarks.some((one) => one.name === name))
  const available = benchmarks.map(({ name }) => name).join(', ')
  if (unknown.length > 0) throw new DataError('payload', `no benchmark ${unknown.join(', ')}; there are ${available}`)
  return { ...values, rows, names: positionals }
}

const say = (line: string) => process.stderr.write(`${line}\n`)

/** Runs a benchmark; undefined if it cannot run here. */
async function run(benchmark: Benchmark, context: BenchContext): Promise<Findings | undefined> {
  say(`${benchmark.name} ...`)
  const startedAt = performance.now()
  const found = await benchmark.run({ ...context, say: (line) => say(`${benchmark.name}: ${line}`) })
  if ('skipped' in found) {
    say(`${benchmark.name}: skipped, ${found.skipped}`)
    return undefined
  }
  say(`${benchmark.name}: done in ${((performance.now() - startedAt) / 1000).toFixed(0)} s`)
  return found
}

function writeResults({ name }: Benchmark, section: string, report: string): void {
  const page = existsSync(PAGE) ? readFileSync(PAGE, 'utf8') : '# Benchmarks'
  const order = benchmarks.map((one) => one.name)
  for (const folder of [dirname(PAGE), REPORTS]) mkdirSync(folder, { recursive: true })
  writeFileSync(PAGE, toPage(page, new Map([[name, section]]), order))
  writeFileSync(join(REPORTS, `${name}.md`), `${report}\n`)
}

async function main(): Promise<void> {
  const options = readWords()
  if (options.help) return console.log(HELP)
  if (options.list) return console.log(benchmarks.map(({ name, about }) => `${name.padEnd(12)}${about}`).join('\n'))
  const dataDir = process.env.UPSTREAM_DATA_DIR || join(root, '../shared/data')
  const { quick, rows, postgres } = options
  const context = { quick, rows: quick ? Math.min(rows, 1_000_000) : rows, postgres, dataDir, say }
  const machine = describeMachine(new Date())
  const selected = benchmarks.filter(({ name }) => options.names.length === 0 || options.names.includes(name))
  const results: Record<string, Findings> = {}
  runCompiledIn(buildIfNeeded())
  // A signal would otherwise end this process and leave its Redis running.
  onStopSignal(async () => {
    process.exitCode = 130
  })
  for (const benchmark of selected) {
    const found = await run(benchmark, context)
    if (found === undefined) continue
    results[benchmark.name] = found
    const report = toReport(benchmark, found, machine)
    if (!options.json) console.log(`\n${report}\n`)
    // Written one by one, so that a failure of a later benchmark does not lose earlier results.
    if (!quick) writeResults(benchmark, toSection(benchmark, found, machine), report)
  }
  if (options.json) console.log(JSON.stringify({ machine, results: toJudged(results) }, null, 2))
}

function toJudged(results: Readonly<Record<string, Findings>>) {
  return Object.fromEntries(
    Object.entries(results).map(([name, found]) => [
      name,
      { ...found, rows: found.rows.map((row) => ({ ...row, target: row.target?.text, met: isMet(row) })) },
    ]),
  )
}

if (isMain(import.meta.url)) runProgram(main)
