import { parseArgs } from 'node:util'
import type { Route } from '../../api/define.ts'
import { createFragments } from '../../api/fragments.ts'
import { dexDataRoute } from '../../api/routes/tokens/dex-data.ts'
import { historicDexTradesRoute } from '../../api/routes/tokens/historic-dex-trades.ts'
import { migrate } from '../../clickhouse/migrate.ts'
import { storeRegistry } from '../../clickhouse/registry.ts'
import { createDatabase } from '../../shared/clickhouse.ts'
import { parseConfig } from '../../shared/config.ts'
import { dexTrades } from '../../shared/datasets/dex-trades.ts'
import { loadRegistry, type Token } from '../../shared/registry/registry.ts'
import { startEmbeddedClickHouse } from '../support/embedded-clickhouse.ts'
import { silent } from '../support/silent.ts'

/**
 * Whether dex-data takes as long for tokens with many trades as for tokens with few: the answer about ten tokens, not cached,
 * with a hundred times the trades. Run it with `npx tsx test/bench/dex-data.ts [--trades 1000000] [--rounds 200]`.
 */
const { values } = parseArgs({
  options: { trades: { type: 'string', default: '1000000' }, rounds: { type: 'string', default: '200' } },
})
const MANY = Number(values.trades)
const ROUNDS = Number(values.rounds)
const FEW = 10_000
const TOKENS = 10
const END = Date.parse('2024-06-30T00:00:00Z')

/** Trades of the year before the end, made inside the engine. */
const TRADES = `
INSERT INTO dex_trades
SELECT {token: UInt64}, fromUnixTimestamp64Milli({end: Int64} - toInt64(number + 1) * intDiv(31536000000, {trades: UInt64}), 'UTC'),
  concat('0x', lower(hex(SHA256(toString((number, {token: UInt64})))))), number % 300, 'ethereum', 20000000 - number,
  concat('0x', repeat(toString(number % 7), 40)), if(number % 7 < 3, 'uniswap-v2', 'uniswap-v3'),
  concat('0x', lower(hex(substring(SHA256(toString(cityHash64(number) % 40000)), 1, 20)))),
  if(cityHash64(number) % 2 = 0, 'BUY', 'SELL'), 1 + number % 1000, (1 + number % 1000) * 3.1, 3.1
FROM numbers({trades: UInt64})`

const embedded = await startEmbeddedClickHouse()
const registry = loadRegistry()
const tokens = registry.tokens.filter(({ live }) => live).slice(0, TOKENS)
try {
  const few = await measure('few', FEW)
  const many = await measure('many', MANY)
  const ratio = many.dexData / few.dexData
  console.log(
    `dex-data of ${TOKENS} tokens: ${ratio.toFixed(2)}x for ${MANY / FEW} times the trades (target: 3x at most)`,
  )
  console.log(`100 newest trades: ${(many.trades / few.trades).toFixed(2)}x`)
  if (ratio > 3) process.exitCode = 1
} finally {
  await embedded.stop()
}

/** A database of its own with so many trades a token; medians in milliseconds. */
async function measure(name: string, trades: number): Promise<{ dexData: number; trades: number }> {
  const config = parseConfig({ CLICKHOUSE_URL: embedded.url, CLICKHOUSE_DATABASE: `bench_${name}` })
  const server = createDatabase(config.clickhouse, 'write', { database: 'default' })
  const db = createDatabase(config.clickhouse, 'write')
  const reader = createDatabase(config.clickhouse, 'read')
  await migrate(server, db, config.clickhouse.database, silent)
  await storeRegistry(db, registry, silent)
  for (const { key } of tokens) {
    await db.command({ name: 'trades', sql: TRADES, params: { token: key, end: END, trades } })
  }
  const startedAt = performance.now()
  for (const { name: statement, sql } of dexTrades.derive ?? []) {
    const entities = tokens.map(({ key }) => key)
    const params = { entities, read: entities, slot: new Date(END).toISOString().slice(0, -1) }
    await db.command({ name: statement, sql, params })
  }
  const derived = performance.now() - startedAt
  const commits = {
    version: () => undefined,
    since: () => 0,
    source: 'nobody' as const,
    changes: 0,
    follow: () => {},
    close: () => {},
  }
  const fragments = createFragments({ maxBytes: 0, commits })
  const surroundings = { db: reader, registry, config, commits, fragments, now: () => END }
  const ask = (route: Route, query: Record<string, unknown>) => () => route.settle(query, surroundings).answer()
  const dexData = await toMedian(ask(dexDataRoute, { id: tokens.map(({ id }) => id), limit: TOKENS }))
  const [first] = tokens as [Token]
  const newest = await toMedian(ask(historicDexTradesRoute, { id: first.id, limit: 100 }))
  await Promise.all([server.close(), db.close(), reader.close()])
  console.log(
    `${trades} trades a token: dex-data ${dexData.toFixed(2)} ms, 100 newest trades ${newest.toFixed(2)} ms (medians of ${ROUNDS}); aggregates of ${TOKENS} tokens computed in ${derived.toFixed(0)} ms`,
  )
  return { dexData, trades: newest }
}

async function toMedian(work: () => Promise<unknown>): Promise<number> {
  for (let warm = 0; warm < 10; warm += 1) await work()
  const times: number[] = []
  for (let round = 0; round < ROUNDS; round += 1) {
    const startedAt = performance.now()
    await work()
    times.push(performance.now() - startedAt)
  }
  return times.sort((a, b) => a - b)[ROUNDS >> 1] ?? Number.NaN
}
