import { afterEach, describe, expect, it, vi } from 'vitest'
import type { HttpSettings } from '../../workers/http/client.ts'
import { connectClient, inTurn, ok, refuse } from '../support/provider-client.ts'

const { signal } = new AbortController()

describe('HTTP client with an exhausted plan', () => {
  const MINUTE = 60_000
  const start = Date.UTC(2024, 4, 6, 12)
  const usedUpFor = (minutes: number): Partial<HttpSettings> => ({
    readError: () => ({ code: 'provider_exhausted', says: 'no credits', retryAfterMs: minutes * MINUTE }),
  })
  const fakeTime = () => vi.useFakeTimers({ toFake: ['Date', 'performance'], now: start })
  const at = (minutes: number) => vi.advanceTimersByTime(start + minutes * MINUTE - Date.now())
  afterEach(() => void vi.useRealTimers())

  it('rejects live and history requests unsent until the reset, except one per hour', async () => {
    fakeTime()
    const { server, http, fail, open, calls } = await connectClient(refuse(402), usedUpFor(90))
    const first = await fail()
    at(20)
    const second = await fail()
    expect(second).toMatchObject({ code: first.code, message: first.message, retryAfterMs: 70 * MINUTE })
    await expect(open(http.history).json({ path: '/others', signal })).rejects.toMatchObject({
      code: 'provider_exhausted',
      message: 'acme /others: status 402: no credits',
    })
    expect(server.requests).toHaveLength(1)
    expect(calls.map(({ outcome }) => outcome)).toEqual(['rejected', 'unsent', 'unsent'])
    for (const minutes of [60, 61, 119]) {
      at(minutes)
      await fail()
    }
    expect(server.requests).toHaveLength(2)
  })

  it('sends requests again after the reset', async () => {
    fakeTime()
    const { client, fail } = await connectClient(inTurn(refuse(402), ok), usedUpFor(5))
    await fail()
    at(4)
    await fail()
    // Setting the clock back has no effect.
    vi.setSystemTime(start)
    at(1)
    expect(await client.json({ path: '/things', signal })).toEqual({ ok: true })
  })

  it.each([
    ['a refusal for another reason', { code: 'provider_rejected', says: 'no', retryAfterMs: MINUTE }],
    ['one that does not say until when', { code: 'provider_exhausted', says: 'no credits' }],
  ] as const)('sends the next request after %s', async (_, reading) => {
    const { server, fail } = await connectClient(refuse(402), { readError: () => reading })
    await fail()
    await fail()
    expect(server.requests).toHaveLength(2)
  })
})
