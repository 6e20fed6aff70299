import { describe, expect, it } from 'vitest'
import { toRetryAfterMs } from '../../workers/http/attempt.ts'
import { toBackoffMs } from '../../workers/http/call.ts'
import { sleep } from '../../workers/http/limits.ts'

describe('toRetryAfterMs', () => {
  const now = Date.UTC(2024, 0, 1)

  it('parses seconds and HTTP dates', () => {
    expect(toRetryAfterMs('7', now)).toBe(7000)
    expect(toRetryAfterMs('Mon, 01 Jan 2024 00:00:30 GMT', now)).toBe(30_000)
  })

  it.each([null, '', '0', '-1', '1.5', 'soon', 'Mon, 01 Jan 2023 00:00:00 GMT', 'Mon, nonsense'])(
    'returns undefined for %j',
    (header) => {
      expect(toRetryAfterMs(header, now)).toBeUndefined()
    },
  )
})

describe('toBackoffMs', () => {
  it('doubles with each retry up to a maximum, with jitter', () => {
    expect([0, 1, 2].map((retry) => toBackoffMs(500, retry, 0.5))).toEqual([250, 500, 1000])
    expect(toBackoffMs(500, 3, 0)).toBe(0)
    expect(toBackoffMs(500, 30, 0.5)).toBe(15_000)
  })
})

describe('sleep', () => {
  it('rejects with the reason of its signal, aborted before or during the sleep', async () => {
    const reason = new Error('stop')
    await expect(sleep(60_000, AbortSignal.abort(reason))).rejects.toBe(reason)
    const controller = new AbortController()
    const sleeping = sleep(60_000, controller.signal)
    controller.abort(reason)
    await expect(sleeping).rejects.toBe(reason)
  })
})
