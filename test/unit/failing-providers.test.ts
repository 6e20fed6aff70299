import { describe, expect, it } from 'vitest'
import { DataError } from '../../shared/errors.ts'
import { FAILING_PROVIDERS, readFailingText } from '../../shared/store/failing-providers.ts'
import type { ProviderFailure } from '../../workers/run/collect.ts'
import { rememberFailing } from '../../workers/run/remember-failing.ts'

const SLOT = Date.parse('2026-05-06T07:00:00Z')
const HOUR = 3_600_000
const FIRST = '2026-05-06T07:00:00.000Z'
const SECOND = '2026-05-06T08:00:00.000Z'

const failure = (provider: string, says = 'status 503'): ProviderFailure => ({
  provider,
  reason: new DataError('provider_unavailable', says),
})
const told = (since: string, reason = 'status 503') => ({ since, reason })

/** What a job remembers, and how often it was stored. */
function createState() {
  const values = new Map<string, string>()
  let stored = 0
  const state = {
    get: async (name: string) => values.get(name),
    set: (name: string, value: string) => void values.set(name, value),
    save: async (name: string, value: string) => void values.set(name, value),
    store: async () => {
      stored += 1
    },
  }
  return { state, failing: () => readFailingText(values.get(FAILING_PROVIDERS)), stored: () => stored }
}

describe('providers that fail', () => {
  it('are told since when each does, whoever begins or ends to fail beside it', async () => {
    const { state, failing } = createState()
    await rememberFailing(state, [failure('a')], SLOT)
    await rememberFailing(state, [failure('a'), failure('b')], SLOT + HOUR)
    expect(failing()).toEqual({ a: told(FIRST), b: told(SECOND) })
    await rememberFailing(state, [failure('a')], SLOT + 2 * HOUR)
    expect(failing()).toEqual({ a: told(FIRST) })
    await rememberFailing(state, [], SLOT + 3 * HOUR)
    expect(failing()).toEqual({})
  })

  it('are stored only when that changes', async () => {
    const { state, stored } = createState()
    await rememberFailing(state, [], SLOT)
    expect(stored()).toBe(0)
    await rememberFailing(state, [failure('a')], SLOT)
    await rememberFailing(state, [failure('a')], SLOT + HOUR)
    expect(stored()).toBe(1)
  })

  it('are told why they fail now, since when they fail at all', async () => {
    const { state, failing } = createState()
    await rememberFailing(state, [failure('a')], SLOT)
    await rememberFailing(state, [failure('a', 'status 401')], SLOT + HOUR)
    expect(failing()).toEqual({ a: told(FIRST, 'status 401') })
  })
})
