import { z } from 'zod'
import { historicFinancialRoute } from '../../api/routes/tokens/historic-financial.ts'
import { INTERVALS } from '../../shared/intervals.ts'
import type { Token } from '../../shared/registry/entities.ts'
import type { Database } from '../../shared/store/store.ts'
import type { Range } from '../../workers/job/define-job.ts'
import prices from '../../workers/jobs/prices.ts'
import { rebuild } from '../../workers/rebuild/rebuild.ts'
import { findRollUps } from '../../workers/rebuild/roll-ups.ts'
import { planChunks } from '../../workers/schedule/chunks.ts'
import { silent } from '../support/silent.ts'
import { surround } from './app-context.ts'
import { atMost, type BenchContext, type Benchmark, type BenchRow, type Findings } from './define-benchmark.ts'
import { collect, type Stack, withStack } from './stack.ts'

const STEP = 300_000
const DAY_POINTS = 288
const FROM = Date.parse('2024-01-01T00:00:00Z')
const TOKENS = 5
/** The tables with the columns that a replay must not change; the time of collection always changes. */
const TABLES: Readonly<Record<string, string>> = {
  token_prices: '* EXCEPT version',
  token_price_rollups: '* EXCEPT rank, observed_at',
}

export const replay: Benchmark = {
  name: 'replay',
  about:
    'Changes after history is collected again, in other ranges or from the stored series: rows of all tables, bytes of all answers.',
  run: (context) => withStack('replay', (stack) => measure(stack, context)),
}

async function measure(stack: Stack, { quick, say }: BenchContext): Promise<Findings> {
  const { database } = stack
  const tokens = database.registry.tokens
    .filter(({ live, livePrice, cmcId }) => live && livePrice && cmcId !== null)
    .slice(0, TOKENS)
  const days = quick ? 10 : 60
  const full = toRange(0, days)
  const worker = await stack.start('worker', 'workers/programs/worker.ts', { WORKER_QUEUES: 'prices' })
  const repeat = (ranges: readonly Range[]) =>
    collect(
      stack,
      ranges.flatMap((range) => planChunks(prices, tokens, range)),
    )
  const total = await repeat([full])
  const before = await observe(stack, tokens, full)
  await keepRows(database.db)
  const replays: readonly (readonly [string, () => Promise<unknown>])[] = [
    ['all of it again', () => repeat([full])],
    ['a window in the middle again', () => repeat([toRange(days / 3, days / 2)])],
    [
      'in other ranges, the newest first',
      () => repeat([toRange(days * 0.7, days), toRange(0.3, days * 0.8), toRange(0, 0.4)]),
    ],
    ['roll-ups rebuilt', () => rebuildAll(stack)],
  ]
  const rows: BenchRow[] = []
  for (const [what, run] of replays) {
    await run()
    const after = await observe(stack, tokens, full)
    rows.push(toRow(`${what}: rows that differ`, await countChangedRows(database.db), 'rows'))
    rows.push(toRow(`${what}: bytes of answers that differ`, countChangedBytes(before, after), 'bytes'))
    say(`${what}: compared`)
  }
  await worker.stop()
  const bytes = before.reduce((sum, { length }) => sum + length, 0)
  return {
    rows,
    notes: [
      `${total.toLocaleString('en-US')} points of ${TOKENS} tokens in ${days} days; ${Object.keys(TABLES).length} tables are compared row by row, and ${before.length} answers (each token, each interval) of ${bytes.toLocaleString('en-US')} bytes.`,
    ],
  }
}

const toRow = (what: string, value: number, unit: string): BenchRow => ({
  what,
  a: { name: 'changed', value, unit },
  target: atMost(0, ` ${unit}`),
})

/** Days of the history, on the grid of points. */
function toRange(fromDay: number, toDay: number): Range {
  const at = (day: number) => FROM + Math.round(day * DAY_POINTS) * STEP
  return { from: at(fromDay), to: at(toDay), interval: '5m' }
}

/** The serialized responses for each token in each interval. */
async function observe({ database }: Stack, tokens: readonly Token[], { from, to }: Range): Promise<Buffer[]> {
  const answers: Buffer[] = []
  for (const { id } of tokens) {
    for (const interval of INTERVALS) {
      const query = { id, interval, start: from, end: to, limit: undefined }
      const answer = await historicFinancialRoute
        .resolve(query, 'json', surround(database, to))
        .answer(AbortSignal.timeout(60_000))
      if ('body' in answer) answers.push(answer.body)
      else if ('assembled' in answer) answers.push(answer.assembled.toText())
      else answers.push(await readAll(await answer.open(AbortSignal.timeout(60_000))))
    }
  }
  return answers
}

async function readAll(stream: AsyncIterable<unknown>): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

function countChangedBytes(before: readonly Buffer[], after: readonly Buffer[]): number {
  return before.reduce((sum, bytes, index) => {
    const second = after[index] ?? Buffer.alloc(0)
    let changed = Math.abs(bytes.length - second.length)
    for (let at = 0; at < Math.min(bytes.length, second.length); at += 1) if (bytes[at] !== second[at]) changed += 1
    return sum + changed
  }, 0)
}

async function keepRows(db: Database): Promise<void> {
  for (const [table, columns] of Object.entries(TABLES)) {
    const sql = `CREATE TABLE ${table}_before ENGINE = MergeTree ORDER BY tuple() AS SELECT ${columns} FROM ${table} FINAL`
    await db.command({ name: 'keep', sql })
  }
}

/** Counts added and removed rows. */
async function countChangedRows(db: Database): Promise<number> {
  const both = ([table, columns]: readonly [string, string]) =>
    `SELECT '${table}' AS of_table, sipHash64(tuple(*)) AS row, 1 AS count FROM ${table}_before
    UNION ALL SELECT '${table}', sipHash64(tuple(*)), -1 FROM (SELECT ${columns} FROM ${table} FINAL)`
  const [found] = await db.rows({
    name: 'changed',
    sql: `SELECT sum(abs(balance)) AS changed FROM
      (SELECT sum(count) AS balance FROM (${Object.entries(TABLES).map(both).join(' UNION ALL ')}) GROUP BY of_table, row)`,
    schema: z.object({ changed: z.number() }),
  })
  return found?.changed ?? Number.NaN
}

async function rebuildAll({ database: { db, config } }: Stack): Promise<void> {
  const rollUps = await findRollUps(db, config.clickhouse.database, [prices.dataset])
  for (const rollUp of rollUps.filter(({ table }) => table in TABLES)) {
    await rebuild(db, rollUp, { log: silent, now: Date.now, force: false, onPlan: () => {}, onStep: () => {} })
  }
}
