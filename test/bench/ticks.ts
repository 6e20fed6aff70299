import pricesJob from '../../workers/jobs/prices.ts'
import { checkRows } from '../../workers/run/runner.ts'
import { silent } from '../support/silent.ts'
import { atMost, type BenchContext, type BenchRow } from './define-benchmark.ts'
import { toMedian } from './measure.ts'
import { type Table, toEnd } from './scale-tables.ts'

const TICK_MS = 300_000
/** A tick of 500 tokens may take a thousandth of its cadence. */
const MOST_MS = TICK_MS / 1000

/**
 * Ticks of `tokens` tokens after the end of the history, one after the other, validated and stored like by a worker.
 */
export async function measureTick(table: Table, tokens: number, { quick, say }: BenchContext): Promise<BenchRow> {
  const { dataset } = pricesJob
  const times: number[] = []
  for (let tick = -1; tick < (quick ? 3 : 21); tick += 1) {
    const observedAt = new Date(toEnd(table) + (tick + 1) * TICK_MS).toISOString()
    const candidates = Array.from({ length: tokens }, (_, at) => toQuote((at + 1) * 7_777_777_777, observedAt, tick))
    const startedAt = performance.now()
    const { rows } = checkRows(dataset, 'bench', candidates, { now: Date.now(), log: silent })
    await table.database.db.insert({ table: dataset.table, rows })
    if (tick >= 0) times.push(performance.now() - startedAt)
  }
  say(`ticks of ${tokens} tokens done`)
  const what = `a tick of ${tokens.toLocaleString('en-US')} tokens with all roll-ups, into ${table.name}`
  const row = { what, a: { name: 'median', value: toMedian(times), unit: 'ms' } }
  return tokens === 500 ? { ...row, target: atMost(MOST_MS, ' ms') } : row
}

function toQuote(token: number, observedAt: string, tick: number) {
  const price = (1 + (token % 97)) * (1 + Math.sin(tick + token) / 100)
  const supply = 760_000_000 + (token % 1_000_000)
  return {
    token,
    observed_at: observedAt,
    is_latest: true,
    price,
    volume_24h: price * supply * 0.05123,
    market_cap: price * supply,
    total_supply: 1.3e9,
    circulating_supply: supply,
    max_supply: null,
    fully_diluted_market_cap: price * 1.3e9,
    volume_change_24h: -1.234567,
    percent_change_1h: 0.123456789,
    percent_change_24h: -2.3456789,
    percent_change_7d: 3.456789,
    percent_change_30d: -4.56789,
    percent_change_60d: 5.6789,
    percent_change_90d: -6.789,
    tvl: null,
  }
}
