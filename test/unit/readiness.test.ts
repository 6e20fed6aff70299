import { Readable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { DataError } from '../../shared/errors.ts'
import { createReadiness, type Database } from '../../shared/store/store.ts'
import { createLog } from '../../shared/telemetry/log.ts'

const TRUE = Date.parse('2026-11-26T10:00:00Z')
const HOUR = 3_600_000

function open(ahead: number) {
  const state = { ahead, passed: 0, isAway: false }
  const db = {
    stream: async () => {
      if (state.isAway) throw new DataError('storage', 'away')
      return Readable.from([`{"now":${TRUE + state.passed}}\n`])
    },
  } as unknown as Database
  const lines: string[] = []
  const log = createLog('test', 'silent')
  for (const level of ['error', 'info'] as const)
    log[level] = (...line: unknown[]) => void lines.push(String(line.at(-1)))
  const local = () => TRUE + state.passed + state.ahead
  return { state, lines, ...createReadiness(db, { passed: () => state.passed, local, log }) }
}

describe('createReadiness', () => {
  it.each([
    ['behind by hours', -2 * HOUR],
    ['ahead by five minutes', 300_000],
  ])('accepts a clock that is %s', async (_, ahead) => {
    const { readiness, now, lines } = open(ahead)
    expect(await readiness()).toBe(0)
    expect([now() - TRUE, lines]).toEqual([ahead, []])
  })

  it('reports a clock that is far ahead, logs it once, and uses the time of the database for ages', async () => {
    const { readiness, now, lines, state } = open(2 * HOUR)
    expect(await readiness()).toBe(2 * HOUR)
    state.passed += 10_000
    expect(await readiness()).toBe(2 * HOUR)
    expect(now()).toBe(TRUE + 10_000)
    expect(lines).toEqual(["this machine's clock is 7200 s ahead of ClickHouse's: check its time service"])
  })

  it('uses the local clock after it is corrected', async () => {
    const { readiness, now, lines, state } = open(2 * HOUR)
    await readiness()
    state.ahead = 0
    state.passed += 10_000
    expect(await readiness()).toBe(0)
    expect(now()).toBe(TRUE + 10_000)
    expect(lines.at(-1)).toContain('agrees')
  })

  it('rejects while the database is unavailable', async () => {
    const { readiness, state } = open(0)
    state.isAway = true
    await expect(readiness()).rejects.toThrow('away')
  })
})
