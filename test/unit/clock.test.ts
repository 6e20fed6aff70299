import type { Redis } from 'ioredis'
import { describe, expect, it } from 'vitest'
import { createClock } from '../../shared/ops/clock.ts'
import type { Database } from '../../shared/store/store.ts'
import { createLog } from '../../shared/telemetry/log.ts'

const TRUE = Date.parse('2026-11-26T10:00:00Z')
const HOUR = 3_600_000

/** A clock over two fake stores. `ahead` sets the offset of each clock from the true time. */
function open(ahead: { local?: number; clickhouse?: number; redis?: number }) {
  const state = { local: 0, clickhouse: 0, redis: 0, passed: 0, asked: 0, isAway: false, ...ahead }
  const at = (by: number) => TRUE + state.passed + by
  const db = {
    rows: async () => {
      state.asked += 1
      if (state.isAway) throw new Error('away')
      return [{ now: at(state.clickhouse) }]
    },
  } as unknown as Database
  const redis = {
    time: async () => [Math.floor(at(state.redis) / 1000), (at(state.redis) % 1000) * 1000],
  } as unknown as Redis
  const lines: string[] = []
  const log = createLog('test', 'silent')
  log.warn = (...line: unknown[]) => void lines.push(String(line.at(-1)))
  const clock = createClock({ db, redis, log, local: () => at(state.local), passed: () => state.passed })
  const error = () => clock.now() - TRUE - state.passed
  return { clock, state, lines, error }
}

describe('createClock', () => {
  it.each([
    ['local', { local: 2 * HOUR }],
    ['local', { local: -2 * HOUR }],
    ['clickhouse', { clickhouse: 2 * HOUR }],
    ['clickhouse', { clickhouse: -2 * HOUR }],
    ['redis', { redis: 2 * HOUR }],
    ['redis', { redis: -2 * HOUR }],
  ] as const)('outvotes a wrong clock: %s, %j', async (_, ahead) => {
    const { clock, error } = open(ahead)
    await clock.sync()
    expect(error()).toBe(0)
  })

  it('ignores differences of up to a second', async () => {
    const { clock, error, lines } = open({ clickhouse: 900, redis: 900 })
    await clock.sync()
    expect(error()).toBe(0)
    expect(lines).toEqual([])
  })

  it('logs the offset of the machine once, and its end once', async () => {
    const { clock, state, lines } = open({ local: 2 * HOUR })
    await clock.sync()
    state.passed += 60_000
    await clock.sync()
    expect(lines).toEqual([expect.stringContaining('7200 s ahead of')])
    state.local = 0
    await clock.sync()
    expect(lines).toHaveLength(2)
    expect(lines[1]).toContain('agrees')
  })

  it("reads the stores once a minute, and immediately after the machine's time is changed", async () => {
    const { clock, state, error } = open({})
    await clock.sync()
    await clock.sync()
    expect(state.asked).toBe(1)
    state.passed += 60_000
    await clock.sync()
    expect(state.asked).toBe(2)
    state.local = HOUR
    await clock.sync()
    expect(state.asked).toBe(3)
    expect(error()).toBe(0)
  })

  it("does not go back if the machine's time is set back before the next comparison", async () => {
    const { clock, state, error } = open({})
    await clock.sync()
    state.passed += 1_000
    state.local = -HOUR
    expect(error()).toBe(0)
  })

  it('rejects while a store is unavailable, and keeps its offset', async () => {
    const { clock, state, error } = open({ local: HOUR })
    await clock.sync()
    state.isAway = true
    state.passed += 60_000
    await expect(clock.sync()).rejects.toThrow('away')
    expect(error()).toBe(0)
  })
})
