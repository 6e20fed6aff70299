import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { z } from 'zod'
import { toChildEnvironment } from '../../shared/config/config.ts'
import { DAY_MS, HISTORY_START, INTERVAL_SECONDS } from '../../shared/intervals.ts'
import type { Token } from '../../shared/registry/entities.ts'
import { toProgram } from '../../tools/children.ts'
import { type Catalog, readCatalog } from '../../workers/publish/catalog.ts'
import { openFolder } from '../../workers/publish/target.ts'
import { toStoreSettings } from '../support/store-settings.ts'
import { toNoiseKey, unit } from '../upstream/noise.ts'
import { withApi } from './api-process.ts'
import { atMost, type BenchContext, type Benchmark, type Findings } from './define-benchmark.ts'
import { openDuckdb } from './duckdb-file.ts'
import { type BenchDatabase, withDatabase, withEngine } from './engine.ts'
import { readResidentBytes, readTreeCpuSeconds } from './processes.ts'
import { storePrices } from './scale-tables.ts'

const TOKENS = 100
const STEP_MS = INTERVAL_SECONDS['5m'] * 1000
const DAY_POINTS = DAY_MS / STEP_MS
const SAMPLE_MS = 250
/** Rows of all intervals for each stored point. */
const ROWS_PER_POINT = Object.values(INTERVAL_SECONDS).reduce((sum, seconds) => sum + 300 / seconds, 0)
/** 100 million rows in ten minutes on two cores. */
const MOST_CPU_SECONDS = 1_200
const MOST_ROWS = 1e8
const COMPARED_PARTITIONS = 5

export const publication: Benchmark = {
  name: 'publish',
  about:
    'Prices as Parquet files by npm run publish: the first publication, one without changes, and one after a changed month.',
  run: (context) =>
    withEngine((engine) => withDatabase(engine, 'publish', (database) => measure(database, engine.pid, context))),
}

/** A finished run of the command. */
interface Run {
  readonly seconds: number
  readonly cpuSeconds: { readonly node: number; readonly clickhouse: number }
  /** Peak resident MB in each quarter of the run. */
  readonly memory: { readonly node: readonly number[]; readonly clickhouse: readonly number[] }
  readonly outcome: z.infer<typeof outcome>
}

const outcome = z.object({ written: z.array(z.string()), unchanged: z.int(), rows: z.int(), bytes: z.int() })

async function measure(database: BenchDatabase, enginePid: number, context: BenchContext): Promise<Findings> {
  const { rows, say } = context
  const tokens = database.registry.tokens.filter(({ live }) => live).slice(0, TOKENS)
  const days = Math.max(70, Math.round(rows / ROWS_PER_POINT / tokens.length / DAY_POINTS))
  const start = Math.floor(Date.now() / DAY_MS) * DAY_MS - days * DAY_MS
  await storePrices(database.db, { keys: tokens.map(({ key }) => key), start, points: days * DAY_POINTS }, say)
  const folder = await mkdtemp(join(tmpdir(), 'bench-published-'))
  try {
    say('publishing all rows')
    const first = await publishTo(folder, database, enginePid)
    say('publishing again')
    const second = await publishTo(folder, database, enginePid)
    // Another price of the same time replaces the first.
    const changedAt = start + 35 * DAY_MS
    await storePrices(database.db, { keys: [tokens[0]?.key ?? 0], start: changedAt, points: 1 }, () => {})
    say('publishing a changed month')
    const changed = await publishTo(folder, database, enginePid)
    const [year, month] = new Date(changedAt).toISOString().split('-')
    const ofChange = new RegExp(`/year=${year}/(?:month=${month}/)?part-`)
    const others = changed.outcome.written.filter((path) => !ofChange.test(path))
    if (changed.outcome.written.length === 0 || others.length > 0)
      throw new Error(`a changed month wrote ${changed.outcome.written}`)
    say('comparing partitions with the API')
    const compared = await compareWithApi(folder, database, tokens)
    return toFindings({ first, second, changed }, compared, { days, tokens: tokens.length })
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Runs the command, and reads the memory of its process and of ClickHouse meanwhile. */
async function publishTo(folder: string, { config }: BenchDatabase, enginePid: number): Promise<Run> {
  const args = [...toProgram(join(import.meta.dirname, '../../workers/publish/main.ts')), '--to', folder]
  const before = readTreeCpuSeconds(enginePid)
  const startedAt = performance.now()
  const child = spawn(process.execPath, [...args, '--only', 'prices', '--json'], {
    env: toChildEnvironment(toStoreSettings(config)),
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const samples: { node: number; clickhouse: number }[] = []
  let nodeCpu = 0
  const sample = () => {
    const [node, clickhouse] = [Number(child.pid), enginePid].map(readResidentBytes) as [number, number]
    if (!(node > 0)) return
    samples.push({ node, clickhouse })
    nodeCpu = readTreeCpuSeconds(Number(child.pid))
  }
  const timer = setInterval(sample, SAMPLE_MS)
  try {
    const [output, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')])
    if (code !== 0) throw new Error(`npm run publish ended with code ${code}: ${output}`)
    const seconds = (performance.now() - startedAt) / 1000
    return {
      seconds,
      cpuSeconds: { node: nodeCpu, clickhouse: readTreeCpuSeconds(enginePid) - before },
      memory: {
        node: toQuarters(samples.map(({ node }) => node)),
        clickhouse: toQuarters(samples.map((one) => one.clickhouse)),
      },
      outcome: outcome.parse(JSON.parse(output)),
    }
  } finally {
    clearInterval(timer)
    child.kill()
  }
}

function toQuarters(bytes: readonly number[]): number[] {
  const size = Math.ceil(bytes.length / 4)
  return [0, 1, 2, 3].map((quarter) => Math.max(...bytes.slice(quarter * size, (quarter + 1) * size)) / 2 ** 20)
}

/** The rows of a file as the API has them; the hash does not depend on their order. */
const HASH = `count(*) AS points, bit_xor(hash(id, epoch_ms(bucket), epoch_ms(observed_at), price, volume_24h, market_cap, total_supply, circulating_supply)) AS hash`
const VALUES = ['price', 'volume_24h', 'market_cap', 'total_supply', 'circulating_supply']
const OF_API = [
  'id',
  'timestamp AS bucket',
  'quote_USD_timestamp AS observed_at',
  ...VALUES.map((name) => `quote_USD_${name} AS ${name}`),
]
const OF_FILE = ['token_id AS id', 'timestamp AS bucket', 'observed_at', ...VALUES]

/** Compares random partitions with one answer of the API for all tokens and the same range. @returns the rows. */
async function compareWithApi(
  folder: string,
  database: BenchDatabase,
  tokens: readonly Token[],
): Promise<{ partitions: number; rows: number }> {
  const catalog = (await readCatalog(openFolder(undefined, folder))) as Catalog
  const published = catalog.datasets.find(({ name }) => name === 'prices')?.partitions ?? []
  // Files of months. The API has no earlier history.
  const all = published.filter(
    ({ keys }) => Date.UTC(Number(keys.year), Number(keys.month) - 1) >= Date.parse(HISTORY_START),
  )
  const key = toNoiseKey(1, 'partitions')
  const selected = Array.from(
    { length: COMPARED_PARTITIONS },
    (_, draw) => all[Math.floor(unit(key, draw) * all.length)],
  )
  const id = tokens.map((token) => token.id).join(',')
  const { connection, close } = await openDuckdb(':memory:')
  const readHash = async (columns: readonly string[], file: string) => {
    const statement = await connection.prepare(
      `SELECT ${HASH} FROM (SELECT ${columns.join(', ')} FROM read_parquet('${file}'))`,
    )
    return (await statement.runAndReadAll()).getRows()[0] ?? []
  }
  let rows = 0
  try {
    await withApi(database, {}, async ({ url }) => {
      for (const partition of selected) {
        if (partition === undefined) throw new Error('no partition was published')
        const { keys, path } = partition
        const [from, to] = [0, 1].map((next) =>
          new Date(Date.UTC(Number(keys.year), Number(keys.month) - 1 + next)).toISOString(),
        )
        const response = await fetch(
          `${url}/data/tokens/historic-financial?id=${id}&interval=${keys.interval}&start=${from}&end=${to}&limit=1000000&format=parquet`,
        )
        if (!response.ok) throw new Error(`${path}: the API answered ${response.status}: ${await response.text()}`)
        const answer = join(folder, '.answer.parquet')
        await writeFile(answer, Buffer.from(await response.arrayBuffer()))
        const [one, two] = [await readHash(OF_API, answer), await readHash(OF_FILE, join(folder, path))]
        if (String(one) !== String(two)) throw new Error(`${path}: has ${two}, the API ${one}`)
        rows += Number(two[0])
      }
    })
  } finally {
    close()
  }
  return { partitions: selected.length, rows }
}

function toFindings(
  { first, second, changed }: Readonly<Record<'first' | 'second' | 'changed', Run>>,
  compared: { partitions: number; rows: number },
  { days, tokens }: { days: number; tokens: number },
): Findings {
  const { rows, bytes, written } = first.outcome
  const cpuSeconds = first.cpuSeconds.node + first.cpuSeconds.clickhouse
  const toCells = (name: string, run: Run) => [
    name,
    ...[
      run.outcome.written.length,
      run.seconds.toFixed(1),
      run.cpuSeconds.node.toFixed(1),
      run.cpuSeconds.clickhouse.toFixed(1),
    ].map(String),
  ]
  const toMemory = (name: string, peaks: readonly number[]) => [name, ...peaks.map((peak) => peak.toFixed(0))]
  return {
    rows: [
      {
        what: 'processor time of the first publication, for 100 million rows',
        a: { name: 'npm run publish with ClickHouse', value: (cpuSeconds * MOST_ROWS) / rows, unit: 's CPU' },
        target: atMost(MOST_CPU_SECONDS, ' s CPU'),
      },
    ],
    tables: [
      {
        title: 'Publications',
        head: ['publication', 'files written', 's', 'Node, s CPU', 'ClickHouse, s CPU'],
        body: [toCells('first', first), toCells('without changes', second), toCells('a changed month', changed)],
      },
      {
        title: 'Peak resident memory in each quarter of the first publication, MB',
        head: ['process', '1', '2', '3', '4'],
        body: [toMemory('npm run publish', first.memory.node), toMemory('ClickHouse', first.memory.clickhouse)],
      },
    ],
    notes: [
      `${rows.toLocaleString('en-US')} rows of ${tokens} tokens over ${days} days in ${written.length} files, ${(bytes / rows).toFixed(1)} bytes a row. Ten minutes on two cores are ${MOST_CPU_SECONDS} s of processor time.`,
      `${compared.partitions} random files have the same rows, by count and hash, as the API's answer for their range: ${compared.rows.toLocaleString('en-US')} rows.`,
    ],
  }
}
