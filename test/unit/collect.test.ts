import { describe, expect, it } from 'vitest'
import { DataError } from '../../shared/errors.ts'
import type { CheckedRows, Collector, Entity, Range } from '../../workers/job/define-job.ts'
import { type Collected, collect } from '../../workers/run/collect.ts'
import { silent } from '../support/silent.ts'

const entity = (key: number): Entity => ({ id: String(key), key, name: `entity ${key}` })
const entities = [1, 2, 3, 4].map(entity)
const range: Range = { from: 0, to: 3_600_000, interval: '5m' }
const state = { get: async () => undefined, set: () => {}, save: async () => {} }
const check = (_provider: string, rows: readonly object[]): CheckedRows => ({ rows, rejected: 0, refused: new Map() })
const expected = {
  check,
  state,
  entities,
  peers: { all: entities, own: entities },
  entityColumn: 'token',
  resumes: false,
  slot: 0,
  range: undefined,
  signal: new AbortController().signal,
  redact: (text: string) => text,
}

/** A provider that returns rows for some entities and records the requested ones. */
function provider(name: string, options: { covers?: number[]; answers?: number[]; fails?: DataError }) {
  const requests: number[][] = []
  const collector: Collector = {
    provider: name,
    covers: ({ key }) => options.covers?.includes(key) ?? true,
    collect: async (run) => {
      requests.push(run.entities.map(({ key }) => key))
      if (options.fails) throw options.fails
      return run.entities.filter(({ key }) => options.answers?.includes(key) ?? true).map(({ key }) => ({ token: key }))
    },
  }
  return { collector, asked: requests }
}

const unavailable = new DataError('provider_unavailable', 'first: 503')
const rejected = new DataError('provider_rejected', 'second: 401')
const rejection = new DataError('provider_malformed', 'first: price: less than 0')

const rowsOf = ({ results: input }: Collected) =>
  input.flatMap(({ rows }) => rows).map((row) => Reflect.get(row, 'token'))
const providersOf = ({ results: input }: Collected) => input.map(({ provider }) => provider)
const statesOf = ({ answers }: Collected) => answers.all().map(({ state }) => state)
const reasonsOf = ({ answers }: Collected) => [...new Set(answers.all().map(({ reason }) => reason))]

describe('collect', () => {
  it('keeps the valid rows of an entity if other rows of it are rejected', async () => {
    const rows = [{ token: 1 }, { token: 1 }]
    const { collector } = provider('first', {})
    const refused = new Map([[1, rejection]])
    const selected = { ...expected, entities: [entity(1)], range, check: () => ({ rows, rejected: 1, refused }) }
    const collected = await collect([collector], selected, silent)
    expect(rowsOf(collected)).toEqual([1, 1])
    expect(statesOf(collected)).toEqual(['failed'])
  })

  it('calls only the first provider if it returns all entities', async () => {
    const [first, second] = [provider('first', {}), provider('second', {})]
    const collected = await collect([first.collector, second.collector], expected, silent)
    expect(rowsOf(collected)).toEqual([1, 2, 3, 4])
    expect(second.asked).toEqual([])
    expect(providersOf(collected)).toEqual(['first'])
  })

  it('calls the next provider for entities that the first does not cover or know', async () => {
    const [first, second] = [
      provider('first', { covers: [1, 2, 3], answers: [1, 2] }),
      provider('second', { answers: [3] }),
    ]
    const collected = await collect([first.collector, second.collector], expected, silent)
    expect(first.asked).toEqual([[1, 2, 3]])
    expect(second.asked).toEqual([[3, 4]])
    expect(rowsOf(collected)).toEqual([1, 2, 3])
    expect(statesOf(collected)).toEqual(['rows', 'rows', 'rows', 'unserved'])
    expect(collected.failures).toEqual([])
  })

  it('falls back to the next provider if the first fails, and records the failure', async () => {
    const [first, second] = [provider('first', { fails: unavailable }), provider('second', {})]
    const collected = await collect([first.collector, second.collector], expected, silent)
    expect(rowsOf(collected)).toEqual([1, 2, 3, 4])
    expect(new Set(statesOf(collected))).toEqual(new Set(['rows']))
    expect(collected.failures).toEqual([{ provider: 'first', reason: unavailable }])
    expect(reasonsOf(collected)).toEqual(['first: 503'])
  })

  it('reports the errors of the first and the last provider if all fail', async () => {
    const all = [
      provider('first', { fails: unavailable }),
      provider('middle', { fails: rejected }),
      provider('second', { fails: rejected }),
    ]
    const collected = await collect(
      all.map(({ collector }) => collector),
      expected,
      silent,
    )
    expect(new Set(statesOf(collected))).toEqual(new Set(['failed']))
    expect(reasonsOf(collected)).toEqual(['first: 503; second: 401'])
    expect(collected.answers.all()[0]).toMatchObject({ provider: 'first', failure: unavailable })
  })

  it.each([
    ['has no Retry-After', undefined],
    ['has a shorter Retry-After', 1_000],
  ])('fails with the error that ends first if the plan is used up and the next one %s', async (_, retryAfterMs) => {
    const failures = [
      new DataError('provider_exhausted', 'first: used up', { retryAfterMs: 25 * 86_400_000 }),
      new DataError('provider_unavailable', 'second: 503', { retryAfterMs }),
      // Does not resolve without a change of the configuration.
      new DataError('provider_unconfigured', 'third: no key'),
    ]
    const collectors = failures.map(
      (fails, at) => provider(['first', 'second', 'third'][at] ?? '', { fails }).collector,
    )
    const collected = await collect(collectors, expected, silent)
    expect(collected.answers.all()[0]).toMatchObject({
      state: 'failed',
      provider: 'first',
      reason: 'first: used up; third: no key',
      failure: failures[1],
    })
  })

  it('treats a response without rows as final in a range, where a token may have no history', async () => {
    const [first, second] = [provider('first', { answers: [1] }), provider('second', {})]
    const collected = await collect([first.collector, second.collector], { ...expected, range }, silent)
    expect(second.asked).toEqual([])
    expect(statesOf(collected)).toEqual(['rows', 'nothing', 'nothing', 'nothing'])
  })

  it.each([
    ['a truncated answer', 'provider_malformed', 'failed'],
    ['status 403', 'provider_rejected', 'failed'],
    ['a plan that is used up', 'provider_exhausted', 'failed'],
    ['a missing key', 'provider_unconfigured', 'nothing'],
    ['an unknown id', 'provider_unknown', 'nothing'],
  ] as const)('after %s (%s), a range without rows of the next provider is %s', async (_, code, state) => {
    const first = provider('first', { fails: new DataError(code, 'first: no') })
    const second = provider('second', { answers: [] })
    const collected = await collect([first.collector, second.collector], { ...expected, range }, silent)
    expect(second.asked).toEqual([[1, 2, 3, 4]])
    expect(new Set(statesOf(collected))).toEqual(new Set([state]))
  })

  it.each([
    ['provider_unconfigured', 'first: FIRST_API_KEY is not set'],
    ['provider_unknown', 'first: it knows no such thing'],
  ] as const)('marks entities unserved, without failing providers, if the only error is %s', async (code, says) => {
    const collected = await collect(
      [provider('first', { fails: new DataError(code, says) }).collector],
      { ...expected, range },
      silent,
    )
    expect(new Set(statesOf(collected))).toEqual(new Set(['unserved']))
    expect(collected.failures).toEqual([])
    expect(reasonsOf(collected)).toEqual([says])
  })

  it('marks entities of a range as failed if their provider is unavailable', async () => {
    const [first, second] = [provider('first', { covers: [1, 2] }), provider('second', { fails: unavailable })]
    const collected = await collect([first.collector, second.collector], { ...expected, range }, silent)
    expect(rowsOf(collected)).toEqual([1, 2])
    expect(statesOf(collected)).toEqual(['rows', 'rows', 'failed', 'failed'])
  })

  it('calls the next provider for rejected entities, and keeps the other rows of the first', async () => {
    const refusing: Collector = {
      provider: 'first',
      covers: () => true,
      collect: async ({ entities: requested, refuse }) => {
        for (const one of requested) if (one.key > 2) refuse(one, one.key === 3 ? rejection : unavailable)
        return [{ token: 1 }, { token: 2 }]
      },
    }
    const second = provider('second', { answers: [3] })
    const collected = await collect([refusing, second.collector], { ...expected, range }, silent)
    expect(second.asked).toEqual([[3, 4]])
    expect(rowsOf(collected)).toEqual([1, 2, 3])
    expect(statesOf(collected)).toEqual(['rows', 'rows', 'rows', 'failed'])
    expect(collected.failures).toEqual([])
  })

  it('calls the next provider for invalid rows, and for all entities of an untrusted response', async () => {
    const [first, second] = [provider('first', {}), provider('second', {})]
    const collected = await collect([first.collector, second.collector], { ...expected, check: picky }, silent)
    expect(second.asked).toEqual([[2]])
    expect(collected.rejected).toBe(1)
    expect(new Set(statesOf(collected))).toEqual(new Set(['rows']))
    const distrusting: typeof check = (name, rows) => {
      if (name === 'first') throw new DataError('rows_rejected', 'first: all wrong')
      return check(name, rows)
    }
    const fallenBack = await collect([first.collector, second.collector], { ...expected, check: distrusting }, silent)
    expect(providersOf(fallenBack)).toEqual(['second'])
    expect(rowsOf(fallenBack)).toEqual([1, 2, 3, 4])
  })

  it('calls the next provider for values older than the slot, and keeps those too', async () => {
    const at = (time: string) => ({
      covers: () => true,
      collect: async () => [
        { token: 1, at: time },
        { token: 2, at: NEW },
      ],
    })
    const second = provider('second', { answers: [1] })
    const first: Collector = { provider: 'first', ...at('2024-05-03T00:00:00.000Z') }
    const slot = { ...expected, entities: [entity(1), entity(2)], timeColumn: 'at', answersFrom: Date.parse(NEW) }
    const collected = await collect([first, withTime(second.collector)], slot, silent)
    expect(second.asked).toEqual([[1]])
    expect(rowsOf(collected)).toEqual([1, 2, 1])
    expect(statesOf(collected)).toEqual(['rows', 'rows'])
    const alone = await collect([first], slot, silent)
    expect(alone.answers.all()).toMatchObject([
      { state: 'unserved', reason: 'first: its newest value is of 2024-05-03T00:00:00.000Z' },
      { state: 'rows' },
    ])
  })

  it('mentions unreadable parts of a response in the reason of entities without rows', async () => {
    const unreadable: typeof check = (_, rows) => ({ rows, rejected: 1, refused: new Map(), unreadable: 'no id' })
    const collected = await collect(
      [provider('first', { answers: [1] }).collector],
      { ...expected, check: unreadable },
      silent,
    )
    expect(statesOf(collected)).toEqual(['rows', 'unserved', 'unserved', 'unserved'])
    expect(collected.answers.all()[1]?.reason).toMatch(/^first: nothing of it, and .+: no id$/)
  })

  it('retries an invalid historical value after a day', async () => {
    const { collector } = provider('first', {})
    const refused = new Map([[1, rejection]])
    const selected = { ...expected, entities: [entity(1)], range, check: () => ({ rows: [], rejected: 1, refused }) }
    const { failure } = (await collect([collector], selected, silent)).answers.all()[0] ?? {}
    expect(failure).toMatchObject({ code: 'provider_malformed', retryAfterMs: 86_400_000 })
  })

  it('marks an entity as failed with the reason if no provider has a valid row', async () => {
    const collected = await collect([provider('first', {}).collector], { ...expected, check: picky }, silent)
    expect(statesOf(collected)).toEqual(['rows', 'failed', 'rows', 'rows'])
    expect(collected.answers.all()[1]?.reason).toBe('first: price: less than 0')
  })

  it('marks the entity of a rejected row in a range as failed, but not for events or slots', async () => {
    const twice: Collector = {
      provider: 'first',
      covers: () => true,
      collect: async () => entities.flatMap(({ key }) => [{ token: key }, { token: key, bad: key === 2 }]),
    }
    const good = ({ bad }: { bad?: boolean }) => bad !== true
    const checkTwice: typeof check = (_, rows) => ({
      rows: rows.filter(good),
      rejected: 1,
      refused: new Map([[2, rejection]]),
    })
    const stateOf = async (input: object) =>
      statesOf(await collect([twice], { ...expected, check: checkTwice, ...input }, silent))[1]
    expect(await stateOf({ range })).toBe('failed')
    expect(await stateOf({ range, resumes: true })).toBe('rows')
    expect(await stateOf({})).toBe('rows')
  })

  it('saves no state of a rejected response', async () => {
    const notes: string[] = []
    const noting = (name: string): Collector => ({
      ...provider(name, {}).collector,
      collect: async (run) => {
        run.state.set(name, 'read')
        expect(await run.state.get(name)).toBe('read')
        return run.entities.map(({ key }) => ({ token: key }))
      },
    })
    const distrusting: typeof check = (name, rows) => {
      if (name === 'first') throw new DataError('rows_rejected', 'first: all wrong')
      return check(name, rows)
    }
    const noted = { ...state, set: (name: string) => void notes.push(name) }
    await collect([noting('first'), noting('second')], { ...expected, state: noted, check: distrusting }, silent)
    expect(notes).toEqual(['second'])
  })

  it('keeps the received rows when the job times out', async () => {
    const controller = new AbortController()
    const slow: Collector = {
      provider: 'slow',
      covers: () => true,
      collect: () => {
        controller.abort()
        return Promise.reject(controller.signal.reason)
      },
    }
    const [first, third] = [provider('first', { answers: [1] }), provider('third', {})]
    const all = [first.collector, slow, third.collector]
    const collected = await collect(all, { ...expected, signal: controller.signal }, silent)
    expect(rowsOf(collected)).toEqual([1])
    expect(third.asked).toEqual([])
    expect(statesOf(collected)).toEqual(['rows', 'failed', 'failed', 'failed'])
    const alone = collect([slow], { ...expected, signal: new AbortController().signal }, silent)
    await expect(alone).rejects.toThrow()
  })

  it('returns a temporary failure if the job times out before the first request', async () => {
    const first = provider('first', {})
    const late = await collect([first.collector], { ...expected, signal: AbortSignal.abort() }, silent)
    expect(new Set(late.answers.all().map(({ failure }) => failure?.code))).toEqual(new Set(['provider_unavailable']))
    expect(first.asked).toEqual([])
  })

  it('rethrows a programming error', async () => {
    const broken: Collector = {
      provider: 'broken',
      covers: () => true,
      collect: () => Promise.reject(new TypeError('x')),
    }
    await expect(collect([broken, provider('second', {}).collector], expected, silent)).rejects.toThrow(TypeError)
  })

  it('returns the completely read entities of accepted responses', async () => {
    const noting = (fails?: DataError): Collector => ({
      provider: 'noting',
      covers: ({ key }) => (fails === undefined ? key > 2 : key <= 2),
      collect: async ({ entities: requested, noteRead }) => {
        noteRead(requested, { from: 100, to: 200 })
        if (fails) throw fails
        return []
      },
    })
    const collected = await collect([noting(unavailable), noting()], expected, silent)
    expect(collected.results).toMatchObject([
      {
        rows: [],
        read: [
          { entity: 3, from: 100, to: 200 },
          { entity: 4, from: 100, to: 200 },
        ],
      },
    ])
    expect(statesOf(collected)).toEqual(['failed', 'failed', 'rows', 'rows'])
  })

  it('marks deferred entities, and returns the step of the stored values of a provider', async () => {
    const limited: Collector = {
      provider: 'limited',
      covers: () => true,
      collect: async ({ entities: requested, putOff, noteStep }) => {
        putOff(requested.slice(1))
        noteStep(range, 3600)
        return [{ token: 1 }]
      },
    }
    const collected = await collect([limited], expected, silent)
    expect(statesOf(collected)).toEqual(['rows', 'put-off', 'put-off', 'put-off'])
    expect(collected.results[0]?.steps).toEqual([{ from: 0, to: 3_600_000, seconds: 3600 }])
    // A failed entity is retried before its turn. An entity without a result is not.
    const failing = provider('failing', { covers: [1, 2], fails: unavailable })
    const ignorant = provider('ignorant', { covers: [3], answers: [] })
    const after = await collect([failing.collector, ignorant.collector, limited], expected, silent)
    expect(statesOf(after)).toEqual(['rows', 'failed', 'put-off', 'put-off'])
  })
})

const NEW = '2024-05-06T00:00:00.000Z'
const withTime = (collector: Collector): Collector => ({
  ...collector,
  collect: async (run) => (await collector.collect(run)).map((row) => ({ ...row, at: NEW })),
})

/** Rejects the second entity's row, except from the provider `second`. */
const picky: typeof check = (name, rows) => {
  const good = rows.filter((row) => name === 'second' || Reflect.get(row, 'token') !== 2)
  const refused = new Map(good.length < rows.length ? [[2, rejection]] : [])
  return { rows: good, rejected: rows.length - good.length, refused }
}
