import { historicFinancialRoute } from '../../api/routes/tokens/historic-financial.ts'
import { unqueued } from '../../api/single-flight/single-flight.ts'
import type { OwnClickHouse } from '../support/own-clickhouse.ts'
import { surround } from './app-context.ts'
import { atMost, type BenchContext, type Benchmark, type BenchRow, type Findings } from './define-benchmark.ts'
import { withEngine } from './engine.ts'
import { compare, compareWithItself, timed } from './measure.ts'
import { measurePostgres } from './postgres.ts'
import { readResidentBytes } from './processes.ts'
import { type Range, type Table, toEnd, toRanges, toToken, withTables } from './scale-tables.ts'
import { measureTick } from './ticks.ts'

const TICKS = [50, 500, 5_000]

export const scale: Benchmark = {
  name: 'scale',
  about:
    'Cost of one token in tables of different size: its points through the route, complete and uncached; and the time to store a tick in the largest table.',
  run: (context) =>
    withEngine((engine) => {
      const sizes = [context.rows / 100, context.rows / 10, context.rows]
      return withTables(engine, context, sizes, (tables) => measure(engine, context, tables))
    }),
}

async function measure(engine: OwnClickHouse, context: BenchContext, tables: readonly Table[]): Promise<Findings> {
  const [small, middle, large] = tables
  if (!small || !middle || !large) throw new RangeError('three sizes are compared')
  const { day, year, all } = toRanges(small)
  const against = async (what: string, range: Range, rounds: number, times: number): Promise<BenchRow[]> => {
    const rows: BenchRow[] = []
    for (const table of [middle, large]) {
      context.say(`${what}, ${table.name}`)
      const [a, b] = [table, small].map((one) => timed(one.name, () => request(one, range), times))
      if (a && b) rows.push(await compare({ what: `${what} of one token`, unit: 'ms', a, b, rounds }))
    }
    return rows
  }
  const [dayOfMiddle, dayOfLarge] = await against('one day', day, 21, 20)
  const rows = [
    ...(dayOfMiddle ? [dayOfMiddle] : []),
    ...(dayOfLarge ? [{ ...dayOfLarge, target: atMost(1.1) }] : []),
    ...(await against('one year', year, 7, 1)),
    ...(await against('the whole history', all, 5, 1)),
  ]
  const first = timed(small.name, () => request(small, day), 20)
  rows.push(await compareWithItself(first, 'ms', 21))
  if (context.postgres) rows.push(...(await measurePostgres(toPeer(middle), { day, year }, context)))
  for (const tokens of TICKS) rows.push(await measureTick(large, tokens, context))
  const resident = readResidentBytes(engine.pid) / 2 ** 20
  return {
    rows,
    notes: [
      `A token has ${small.history.toLocaleString('en-US')} points, 5 minutes apart; larger tables have more tokens. All tables are fully merged and in one engine. Its process takes ${resident.toFixed(0)} MB at the end.`,
      'A tick passes the row check and HTTP, and reaches the raw table, the latest quotes and five roll-ups.',
    ],
  }
}

function toPeer(table: Table) {
  const { database, points } = table
  return { database, points, token: toToken(table)?.key ?? 0, request: (range: Range) => request(table, range) }
}

/** Requests the points in a range from the route and reads the response to its end. @returns its bytes. */
async function request(table: Table, range: Range): Promise<number> {
  const query = { id: toToken(table)?.id, interval: '5m', ...range, limit: undefined }
  const answer = await historicFinancialRoute
    .resolve(query, 'json', surround(table.database, toEnd(table)))
    .answer(unqueued(AbortSignal.timeout(60_000)))
  if ('body' in answer) return answer.body.length
  if ('assembled' in answer) return [...answer.assembled.write('identity')].reduce((sum, { length }) => sum + length, 0)
  let bytes = 0
  for await (const chunk of await answer.open(AbortSignal.timeout(60_000))) bytes += (chunk as Buffer).length
  return bytes
}
