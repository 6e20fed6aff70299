import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createDayLimit } from '../../workers/http/limits.ts'

const never = new AbortController().signal

describe('createDayLimit', () => {
  beforeEach(() => void vi.useFakeTimers({ now: Date.UTC(2026, 10, 22, 20) }))
  afterEach(() => void vi.useRealTimers())

  it('allows the requests of one day, and rejects further requests until midnight UTC', async () => {
    const limit = createDayLimit('provider', 3)
    await limit.take(never, 2)
    await limit.take(never)
    expect(await limit.take(never).catch((reason: unknown) => reason)).toMatchObject({
      code: 'provider_exhausted',
      message: 'provider: its 3 requests of a day are used up',
      retryAfterMs: 4 * 3_600_000,
    })
    vi.setSystemTime(Date.UTC(2026, 10, 23))
    await limit.take(never, 3)
    await expect(limit.take(never)).rejects.toMatchObject({ retryAfterMs: 24 * 3_600_000 })
  })
})
