import { describe, expect, it } from 'vitest'
import { DataError } from '../../shared/errors.ts'
import type { Queued } from '../../shared/queue/job-notes.ts'
import { isPostponed, toLastTry, toPauseMs } from '../../workers/run/retries.ts'
import { PartialFailureError } from '../../workers/run/runner.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const SLOT = Date.parse('2024-05-06T00:00:00Z')

/** The times of the attempts of a job that always fails, in milliseconds from its first failure on. */
function toTries(cadence: '5m' | '1h' | '1d', until: number, random: number): number[] {
  const tries: number[] = []
  for (let at = 0, failures = 1; ; failures += 1) {
    at += toPauseMs(failures, { cadence, random })
    if (at >= until) return tries
    tries.push(at)
  }
}

describe('toPauseMs', () => {
  it('starts with a second and doubles up to a tenth of the cadence and at most half an hour', () => {
    const longest = (cadence: '5m' | '1h' | '1d') =>
      [1, 2, 3, 4, 5, 6, 100].map((failures) => toPauseMs(failures, { cadence, random: 1 }) / 1000)
    expect(longest('5m')).toEqual([1, 2, 4, 8, 16, 30, 30])
    expect(longest('1h')).toEqual([1, 2, 4, 8, 16, 32, 360])
    expect(longest('1d')).toEqual([1, 2, 4, 8, 16, 32, 1800])
  })

  it('adds a jitter of up to half', () => {
    expect(toPauseMs(4, { cadence: '1h', random: 0 })).toBe(4_000)
    expect(toPauseMs(4, { cadence: '1h', random: 0.5 })).toBe(6_000)
  })

  it('is at least the Retry-After of the provider', () => {
    expect(toPauseMs(1, { cadence: '5m', retryAfterMs: 90_000, random: 0 })).toBe(90_000)
    expect(toPauseMs(9, { cadence: '1d', retryAfterMs: 1, random: 1 })).toBe(256_000)
  })
})

describe('toLastTry', () => {
  it.each([
    ['5m', 5 * MINUTE],
    ['1h', HOUR],
    ['1d', 20 * HOUR],
  ] as const)('returns for a slot of %s the time until which it is useful', (cadence, worth) => {
    expect(toLastTry({ kind: 'slot', slot: SLOT }, cadence, SLOT)).toBe(SLOT + worth)
    const tries = toTries(cadence, worth, 0.5)
    // Almost every outage that ends before the slot is covered by a retry.
    expect(tries.at(-1)).toBeGreaterThan(worth - Math.max(worth / 10, 30 * MINUTE))
    expect(tries.length).toBeLessThan(70)
  })

  it.each([3, 20.5, 23.9])(
    'returns for a daily slot that first failed after %d hours at most the end of its day',
    (hours) => {
      expect(toLastTry({ kind: 'slot', slot: SLOT }, '1d', SLOT + hours * HOUR)).toBe(
        SLOT + Math.min(24, hours + 20) * HOUR,
      )
    },
  )

  it('returns for a range half an hour after its first failure', () => {
    const range = { kind: 'range', from: 0, to: SLOT, interval: '5m' } as const
    expect(toLastTry(range, '5m', SLOT)).toBe(SLOT + 30 * MINUTE)
  })
})

describe('isPostponed', () => {
  const range = { kind: 'range', from: SLOT, to: SLOT + HOUR, interval: '5m' }
  const pending = (code: 'provider_malformed' | 'provider_unavailable', retryAfterMs?: number) => {
    const report = { rows: 0, rejected: 1, uncovered: 1, providers: [] }
    const cause = new DataError(code, 'a reason', { retryAfterMs })
    return new PartialFailureError(cause, { entities: ['one'], report, hasProgressed: false })
  }
  const judge = (data: object, error: unknown) => isPostponed({ data } as unknown as Queued, error)

  it('returns true for a range with an invalid value, so that it is not requested again immediately', () => {
    expect(judge(range, pending('provider_malformed', 24 * HOUR))).toBe(true)
  })

  it('returns false for a possibly truncated response, an outage, or a slot', () => {
    expect(judge(range, pending('provider_malformed'))).toBe(false)
    expect(judge(range, pending('provider_unavailable', HOUR))).toBe(false)
    expect(judge({ kind: 'slot', slot: SLOT }, pending('provider_malformed', HOUR))).toBe(false)
  })
})
