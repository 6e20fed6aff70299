import { describe, expect, it } from 'vitest'
import { DataError } from '../../shared/errors.ts'
import type { Range } from '../../workers/job/define-job.ts'
import { requestEach } from '../../workers/providers/requests.ts'
import { createState, toRun } from '../support/run.ts'

const entities = Array.from({ length: 20 }, (_, key) => ({ id: String(key), key, name: `entity ${key}` }))
const unavailable = new DataError('provider_unavailable', 'status 503')
const rejected = new DataError('provider_rejected', 'status 401')
const unknown = new DataError('provider_unknown', 'status 404')
const range: Range = { from: 0, to: 3_600_000, interval: '1h' }
const keys = entities.map(({ key }) => key)

/** Runs requestEach over all entities. `fails` returns the error of an entity; without one the result is its key. */
async function request(
  fails: (key: number) => Error | undefined,
  options: { concurrency?: number; range?: Range } = {},
) {
  const requests: number[] = []
  const { run, refused } = toRun()
  const outcome = requestEach(
    entities,
    async ({ key }) => {
      requests.push(key)
      const error = fails(key)
      if (error) throw error
      return key
    },
    { ...run, concurrency: 1, ...options },
  )
  return { requests, outcome: await outcome.catch((error: unknown) => error), refused }
}

describe('requestEach', () => {
  it('rejects a failed entity and returns all others', async () => {
    const { outcome, refused } = await request((key) => (key % 3 === 0 ? unavailable : undefined))
    expect(outcome).toEqual(keys.filter((key) => key % 3 !== 0))
    expect([...refused.keys()]).toEqual(keys.filter((key) => key % 3 === 0))
  })

  it('stops after three failures in a row, returns the answers and rejects all other entities', async () => {
    const { requests, outcome, refused } = await request((key) => (key >= 5 ? unavailable : undefined))
    expect(outcome).toEqual([0, 1, 2, 3, 4])
    expect(requests).toHaveLength(8)
    expect([...refused.keys()]).toEqual(keys.slice(5))
    const reasons = [...refused.values()]
    expect(reasons.slice(0, 3)).toEqual([unavailable, unavailable, unavailable])
    for (const reason of reasons.slice(3))
      expect(reason).toMatchObject({
        code: unavailable.code,
        message: `not asked after another request failed: ${unavailable.message}`,
      })
  })

  it.each(['provider_rejected', 'provider_exhausted', 'provider_unconfigured'] as const)(
    'sends no further request after %s',
    async (code) => {
      const refusal = new DataError(code, 'no')
      const { requests, outcome, refused } = await request((key) => (key === 2 ? refusal : undefined))
      expect(outcome).toEqual([0, 1])
      expect(requests).toEqual([0, 1, 2])
      expect([...refused.keys()]).toEqual(keys.slice(2))
      const [first, ...rest] = refused.values()
      expect(first).toBe(refusal)
      for (const second of rest)
        expect(second).toMatchObject({ code, message: 'not asked after another request failed: no' })
    },
  )

  it('continues after any number of entities unknown to the provider', async () => {
    const { requests, outcome, refused } = await request((key) => (key < 10 ? unknown : undefined))
    expect(requests).toEqual(keys)
    expect(outcome).toEqual(keys.slice(10))
    expect([...refused]).toEqual(keys.slice(0, 10).map((key) => [key, unknown]))
  })

  it('rejects all entities if all requests fail', async () => {
    expect((await request(() => unavailable)).refused.size).toBe(entities.length)
    expect(await request(() => rejected)).toMatchObject({ requests: [0], outcome: [] })
  })

  it('treats empty responses for all entities as a failure, and for some entities as a result', async () => {
    const all = toRun()
    expect(await requestEach(entities, async () => undefined, { ...all.run, concurrency: 2 })).toEqual([])
    expect(new Set([...all.refused.values()].map(({ code }) => code))).toEqual(new Set(['provider_unavailable']))
    expect(all.refused.size).toBe(entities.length)
    const selected = toRun()
    const answers = await requestEach(entities, async ({ key }) => (key < 3 ? key : undefined), {
      ...selected.run,
      concurrency: 2,
    })
    expect(answers).toEqual([0, 1, 2])
    expect(selected.refused.size).toBe(0)
    expect(await requestEach([], async () => undefined, { ...selected.run, concurrency: 2 })).toEqual([])
  })

  it('accepts provider_unknown for all of a few remaining entities', async () => {
    const { run, refused } = toRun()
    await requestEach(entities.slice(0, 9), () => Promise.reject(unknown), { ...run, concurrency: 1 })
    expect(new Set(refused.values())).toEqual(new Set([unknown]))
  })

  it('accepts provider_unknown for all entities of a range, but not of the current slot', async () => {
    const { refused } = await request(() => unknown, { range })
    expect(new Set(refused.values())).toEqual(new Set([unknown]))
    expect((await request(() => unknown)).refused.get(0)).toMatchObject({ code: 'provider_unavailable' })
  })

  it('accepts provider_unknown for all remaining entities of a slot', async () => {
    const { run, refused } = toRun()
    await requestEach(entities.slice(0, 12), () => Promise.reject(unknown), {
      ...run,
      concurrency: 1,
      expected: entities,
    })
    expect(new Set(refused.values())).toEqual(new Set([unknown]))
  })

  it('requests recently failed entities last, the least recently requested first, and forgets resolved failures', async () => {
    const state = createState()
    const requests: number[] = []
    const down = new Set([0, 1, 2, 3])
    const round = async () => {
      requests.length = 0
      const request = async ({ key }: { key: number }) => {
        requests.push(key)
        if (down.has(key)) throw unavailable
        return key
      }
      const { run } = toRun({ state })
      return (await requestEach(entities.slice(0, 8), request, { ...run, concurrency: 1 })).length
    }
    expect([await round(), requests]).toEqual([0, [0, 1, 2]])
    expect([await round(), requests]).toEqual([4, [3, 4, 5, 6, 7, 0, 1, 2]])
    expect([await round(), requests]).toEqual([4, [4, 5, 6, 7, 3, 0, 1]])
    down.clear()
    expect([await round(), requests]).toEqual([8, [4, 5, 6, 7, 2, 3, 0, 1]])
    expect([await round(), requests]).toEqual([8, [0, 1, 2, 3, 4, 5, 6, 7]])
  })

  it('runs at most `concurrency` requests at a time', async () => {
    let open = 0
    let most = 0
    const answers = await requestEach(
      entities,
      async ({ key }) => {
        open += 1
        most = Math.max(most, open)
        await new Promise(setImmediate)
        open -= 1
        return key
      },
      { ...toRun().run, concurrency: 4 },
    )
    expect(answers).toHaveLength(entities.length)
    expect(most).toBe(4)
  })

  it('rethrows a programming error', async () => {
    const { requests, outcome } = await request((key) => (key === 1 ? new TypeError('x') : undefined))
    expect(outcome).toBeInstanceOf(TypeError)
    expect(requests).toEqual([0, 1])
  })
})
