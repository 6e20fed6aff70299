import { describe, expect, it } from 'vitest'
import { DataError } from '../../shared/errors.ts'
import { FAILING_PROVIDERS, readFailingText } from '../../shared/store/failing-providers.ts'
import { type ProviderFailure, type ProviderResults, toFailingTexts } from '../../shared/store/store.ts'

const SLOT = Date.parse('2026-05-06T07:00:00Z')
const HOUR = 3_600_000
const FIRST = '2026-05-06T07:00:00.000Z'
const SECOND = '2026-05-06T08:00:00.000Z'

const failure = (provider: string, says = 'status 503'): ProviderFailure => ({
  provider,
  reason: new DataError('provider_unavailable', says),
})
const fields = (since: string, reason = 'status 503') => ({ since, reason })

/** The state of a job and the number of its changes. */
function createState() {
  const texts = new Map<number, string>()
  let changes = 0
  const run = (slot: number, failures: readonly ProviderFailure[], more: Partial<ProviderResults> = {}) => {
    const fields = { slot, failures, batch: undefined, isComplete: true, answered: [], ...more }
    for (const [name, text] of toFailingTexts(texts, fields)) {
      texts.set(Number(name.slice(FAILING_PROVIDERS.length)), text)
      changes += 1
    }
  }
  return { run, texts, failing: (batch = 0) => readFailingText(texts.get(batch) ?? '{}'), changes: () => changes }
}

describe('toFailingTexts', () => {
  it("keeps the start of each provider's failure, independent of other providers", () => {
    const { run, failing } = createState()
    run(SLOT, [failure('a')])
    run(SLOT + HOUR, [failure('a'), failure('b')])
    expect(failing()).toEqual({ a: fields(FIRST), b: fields(SECOND) })
    run(SLOT + 2 * HOUR, [failure('a')])
    expect(failing()).toEqual({ a: fields(FIRST) })
    run(SLOT + 3 * HOUR, [])
    expect(failing()).toEqual({})
  })

  it('writes only changes', () => {
    const { run, changes } = createState()
    run(SLOT, [])
    expect(changes()).toBe(0)
    run(SLOT, [failure('a')])
    run(SLOT + HOUR, [failure('a')])
    expect(changes()).toBe(1)
  })

  it('updates the reason and keeps the start of a failure', () => {
    const { run, failing } = createState()
    run(SLOT, [failure('a')])
    run(SLOT + HOUR, [failure('a', 'status 401')])
    expect(failing()).toEqual({ a: fields(FIRST, 'status 401') })
  })

  it('ignores missing entities of a retry, and ends a failure only when the provider succeeds', () => {
    const { run, failing } = createState()
    run(SLOT, [failure('a')], { answered: ['b'] })
    run(SLOT, [failure('b')], { isComplete: false })
    expect(failing()).toEqual({ a: fields(FIRST) })
    run(SLOT, [], { isComplete: false, answered: ['a'] })
    expect(failing()).toEqual({})
  })

  it('records a provider that rejects all entities during a slot', () => {
    const { run, failing } = createState()
    run(SLOT, [], { answered: ['a'] })
    const refusal = new DataError('provider_exhausted', 'used up')
    run(SLOT, [{ provider: 'a', reason: refusal }], { isComplete: false })
    expect(failing()).toEqual({ a: fields(FIRST, 'used up') })
  })

  it.each(['', 'no JSON', '{"a":"2026-05-06T07:00:00.000Z"}', '[]'])(
    'replaces an invalid stored text in the next slot: %j',
    (text) => {
      const { run, failing, texts } = createState()
      texts.set(0, text)
      expect(failing()).toBeUndefined()
      run(SLOT, [])
      expect(failing()).toEqual({})
    },
  )

  it('removes the state of chunks that slots no longer have', () => {
    const { run, failing } = createState()
    const batches = [0, 1, 2].map((index) => ({ index, of: 3 }))
    for (const batch of batches) run(SLOT, [failure('a')], { batch })
    run(SLOT + HOUR, [failure('a')], { batch: { index: 0, of: 2 } })
    expect([0, 1, 2].map(failing)).toEqual([{ a: fields(FIRST) }, { a: fields(FIRST) }, {}])
    run(SLOT + 2 * HOUR, [])
    expect([0, 1, 2].map(failing)).toEqual([{}, {}, {}])
  })
})
