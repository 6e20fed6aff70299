import type { AppContext } from '../../api/route/define-route.ts'
import { dexDataRoute } from '../../api/routes/tokens/dex-data.ts'
import { historicDexTradesRoute } from '../../api/routes/tokens/historic-dex-trades.ts'
import { type ReadScope, unqueued } from '../../api/single-flight/single-flight.ts'
import { toDeriveParams } from '../../shared/datasets/define-dataset.ts'
import { dexTrades } from '../../shared/datasets/dex-trades.ts'
import { HOUR_MS } from '../../shared/intervals.ts'
import type { Token } from '../../shared/registry/entities.ts'
import { surround } from './app-context.ts'
import { atMost, type BenchContext, type Benchmark, type Findings } from './define-benchmark.ts'
import { type BenchDatabase, withDatabase, withEngine } from './engine.ts'
import { compare, compareWithItself, timed } from './measure.ts'

const FEW = 10_000
const TOKENS = 10
const ROUNDS = 21
const TIMES = 10
const END = Date.parse('2024-06-30T00:00:00Z')
const LAST_HOUR = { from: END - HOUR_MS, to: END - 1 }

/** Trades of the year before the end, generated inside the engine. */
const TRADES = `
INSERT INTO dex_trades
(token, traded_at, transaction_hash, log_index, chain, block_number, pool, exchange, taker, side, amount, amount_usd, price)
SELECT {token: UInt64}, fromUnixTimestamp64Milli({end: Int64} - toInt64(number + 1) * intDiv(31536000000, {trades: UInt64}), 'UTC'),
  concat('0x', lower(hex(SHA256(toString((number, {token: UInt64})))))), number % 300, 'ethereum', 20000000 - number,
  concat('0x', repeat(toString(number % 7), 40)), if(number % 7 < 3, 'uniswap-v2', 'uniswap-v3'),
  concat('0x', lower(hex(substring(SHA256(toString(cityHash64(number) % 40000)), 1, 20)))),
  if(cityHash64(number) % 2 = 0, 'BUY', 'SELL'), 1 + number % 1000, (1 + number % 1000) * 3.1, 3.1
FROM numbers({trades: UInt64})`

export const dexData: Benchmark = {
  name: 'dex-data',
  about:
    'Time to serve sums of trades, and to compute them after an hour, for tokens with many and with few trades; nothing is cached.',
  run: (context) =>
    withEngine((engine) =>
      withDatabase(engine, 'few', (few) => withDatabase(engine, 'many', (many) => measure(context, few, many))),
    ),
}

async function measure({ quick, say }: BenchContext, few: BenchDatabase, many: BenchDatabase): Promise<Findings> {
  const size = quick ? 100_000 : 1_000_000
  const tokens = few.registry.tokens.filter(({ live }) => live).slice(0, TOKENS)
  await fill(few, tokens, FEW)
  say(`storing ${TOKENS} x ${size} trades`)
  const derived = await fill(many, tokens, size)
  const keys = tokens.map(({ key }) => key)
  const ids = tokens.map(({ id }) => id)
  const sums = (of: BenchDatabase) => () =>
    request(of, (appContext) => dexDataRoute.resolve({ id: ids, limit: TOKENS }, 'json', appContext))
  const newest = (of: BenchDatabase) => () =>
    request(of, (appContext) => historicDexTradesRoute.resolve({ id: ids[0], limit: 100 }, 'json', appContext))
  const name = (trades: number) => `${trades.toLocaleString('en-US')} trades a token`
  const against = (work: (of: BenchDatabase) => () => Promise<unknown>) => ({
    unit: 'ms',
    a: timed(name(size), work(many), TIMES),
    b: timed(name(FEW), work(few), TIMES),
    rounds: ROUNDS,
  })
  return {
    rows: [
      await compare({ what: `dex-data of ${TOKENS} tokens`, ...against(sums), target: atMost(3) }),
      await compare({ what: '100 newest trades of one token', ...against(newest) }),
      await compare({
        what: `computing them after an hour's trades of ${TOKENS} tokens`,
        unit: 'ms',
        a: timed(name(size), () => derive(many, keys, LAST_HOUR)),
        b: timed(name(FEW), () => derive(few, keys, LAST_HOUR)),
        rounds: ROUNDS,
      }),
      await compareWithItself(timed(name(FEW), sums(few), TIMES), 'ms', ROUNDS),
    ],
    notes: [
      `The sums of ${TOKENS} tokens with ${size.toLocaleString('en-US')} trades each are computed for the first time in ${derived.toFixed(0)} ms.`,
    ],
  }
}

/**
 * Stores `trades` trades of each token and computes their sums. @returns the duration of the computation, in
 * milliseconds.
 */
async function fill(database: BenchDatabase, tokens: readonly Token[], trades: number): Promise<number> {
  for (const { key } of tokens) {
    await database.db.command({ name: 'trades', sql: TRADES, params: { token: key, end: END, trades } })
  }
  const startedAt = performance.now()
  await derive(
    database,
    tokens.map(({ key }) => key),
  )
  return performance.now() - startedAt
}

/** The statements of a run after it has stored trades of these times. */
async function derive({ db }: BenchDatabase, keys: readonly number[], times = {}): Promise<void> {
  const params = toDeriveParams({ entities: keys, read: keys, slot: END, ...times })
  for (const { name, sql } of dexTrades.derive ?? []) await db.command({ name, sql, params })
}

function request(
  database: BenchDatabase,
  resolve: (appContext: AppContext) => { answer(scope: ReadScope): Promise<unknown> },
) {
  return resolve(surround(database, END)).answer(unqueued(AbortSignal.timeout(60_000)))
}
