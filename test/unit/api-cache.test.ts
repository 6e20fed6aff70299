import { setMaxListeners } from 'node:events'
import { describe, expect, it, vi } from 'vitest'
import { createFairQueue } from '../../api/admission/fair-queue.ts'
import { createResponseCache } from '../../api/cache/responses.ts'
import type { ReadyAnswer } from '../../api/serving/ready-answer.ts'
import { tokenPrices } from '../../shared/datasets/token-prices.ts'
import type { ChangeFeed } from '../../shared/store/store.ts'

const ready = (text: string, expiresAt = Number.POSITIVE_INFINITY): ReadyAnswer => ({
  body: Buffer.from(text),
  size: text.length,
  tag: text,
  head: { headers: [], staleAt: null, maxAge: 30, cacheControl: 'public, max-age=30', expiresAt },
  expiresAt,
  forms: new Map(),
})

const REGISTRY = 'the registry in force'
const of = (key: string, registryVersion = REGISTRY) => ({
  ...{ key, registryVersion, datasets: [tokenPrices] },
  client: 'a',
})

/** Signal of a client that never disconnects. */
const { signal } = new AbortController()
setMaxListeners(0, signal)
const neverDisconnects = () => signal

function setUp(maxBytes = 1_000_000) {
  const state = {
    version: 'v1' as string | undefined,
    registryVersion: REGISTRY,
    since: 0,
    now: 0,
    made: 0,
    refused: 0,
    lost: [] as unknown[],
  }
  let [changes, last] = [0, state.version]
  const changeFeed: ChangeFeed = {
    version: () => state.version,
    since: () => state.since,
    source: 'redis',
    get changes() {
      if (last !== state.version) changes++
      last = state.version
      return changes
    },
    follow: () => {},
    receive: () => {},
    renew: () => {},
    close: () => {},
  }
  const onRenewalFailed = (error: unknown) => void state.lost.push(error)
  const meters = { waiting: () => {}, waited: () => {}, rejected: () => void state.refused++ }
  const queue = createFairQueue({ slots: 64, maxWaiting: 0, clock: () => state.now }, meters)
  const cache = createResponseCache<ReadyAnswer, never>({
    maxBytes,
    changeFeed,
    registryVersion: () => state.registryVersion,
    queue,
    now: () => state.now,
    onRenewalFailed,
  })
  const get = (key: string, answer = ready(key)) =>
    cache.get(
      of(key),
      async () => {
        state.made++
        return answer
      },
      neverDisconnects,
    )
  return { state, cache, get }
}

describe('createResponseCache', () => {
  it('builds a response once per data version', async () => {
    const { state, get } = setUp()
    expect((await get('a')).from).toBe('made')
    expect((await get('a')).from).toBe('cache')
    state.version = 'v2'
    expect((await get('a')).from).toBe('made')
    expect(state.made).toBe(2)
  })

  it('drops responses when the clock is set back', async () => {
    const { state, get } = setUp()
    state.now = 7_200_000
    const answer = ready('a', state.now + 5_000)
    expect((await get('a', answer)).from).toBe('made')
    expect((await get('a', answer)).from).toBe('cache')
    state.now = 0
    expect((await get('a', ready('a', 5_000))).from).toBe('made')
    expect((await get('a')).from).toBe('cache')
  })

  it('does not serve responses of another registry, even without datasets', async () => {
    const { state, cache } = setUp()
    const query = { ...of('a'), datasets: [] }
    const make = async () => ready('a')
    expect((await cache.get(query, make, neverDisconnects)).from).toBe('made')
    for (let hit = 0; hit < 200; hit += 1) expect((await cache.get(query, make, neverDisconnects)).from).toBe('cache')
    state.registryVersion = 'another registry'
    state.version = 'v2'
    expect(cache.find('a', [], state.now)).toBeUndefined()
    // A request that was parsed with the previous registry.
    expect((await cache.get(query, make, neverDisconnects)).from).toBe('made')
    expect(cache.find('a', [], state.now)).toBeUndefined()
    expect((await cache.get({ ...query, registryVersion: state.registryVersion }, make, neverDisconnects)).from).toBe(
      'made',
    )
    expect(cache.find('a', [], state.now)?.tag).toBe('a')
  })

  it('shares one build among concurrent requests', async () => {
    const { state, get } = setUp()
    const answers = await Promise.all(Array.from({ length: 50 }, () => get('a')))
    expect(state.made).toBe(1)
    expect(answers.filter(({ from }) => from === 'flight')).toHaveLength(49)
  })

  it('does not cache a response if a change event arrives during its build', async () => {
    const { state, cache, get } = setUp()
    const slow = cache.get(
      of('a'),
      async () => {
        state.version = 'v2'
        return ready('old')
      },
      neverDisconnects,
    )
    await slow
    expect(cache.find('a', [tokenPrices], state.now)).toBeUndefined()
    expect((await get('a')).from).toBe('made')
  })

  it('serves a response for one second while the change stream is unavailable, and not afterwards', async () => {
    const { state, cache, get } = setUp()
    state.version = undefined
    await get('a')
    state.now = 999
    expect(cache.find('a', [tokenPrices], state.now)).toBeDefined()
    state.now = 1000
    expect(cache.find('a', [tokenPrices], state.now)).toBeUndefined()
    await get('a')
    state.version = 'v1'
    expect(cache.find('a', [tokenPrices], state.now)).toBeUndefined()
  })

  it('drops a response when it expires', async () => {
    const { state, cache, get } = setUp()
    await get('a', ready('a', 5))
    state.now = 5
    expect(cache.find('a', [tokenPrices], state.now)).toBeUndefined()
  })

  it('serves the old response of a popular key for a second while the new one is built', async () => {
    const { state, cache, get } = setUp()
    const old = await get('a')
    for (let hit = 0; hit < 100; hit++) await get('a')
    Object.assign(state, { version: 'v2', since: 5000, now: 5999 })
    const { answer, from } = await get('a', ready('new'))
    expect([answer, from]).toEqual([old.answer, 'stale'])
    await vi.waitFor(() => expect(cache.find('a', [tokenPrices], state.now)?.tag).toBe('new'))
    expect(state.made).toBe(2)
    expect((await get('a')).from).toBe('cache')
  })

  it('does not serve a response cached without a change stream after its second, even for a popular key', async () => {
    const { state, get } = setUp()
    state.version = undefined
    await get('a')
    for (let hit = 0; hit < 100; hit++) await get('a')
    state.now = 3_600_000
    expect((await get('a')).from).toBe('made')
  })

  it('waits for the new response if the change is over a second old or the key is not popular', async () => {
    const { state, get } = setUp()
    await get('a')
    for (let hit = 0; hit < 99; hit++) await get('a')
    Object.assign(state, { version: 'v2', since: 5000, now: 5001 })
    expect((await get('a')).from).toBe('made')
    for (let hit = 0; hit < 100; hit++) await get('a')
    Object.assign(state, { version: 'v3', since: 6000, now: 7000 })
    expect((await get('a')).from).toBe('made')
  })

  it('reports a failed rebuild and retries it', async () => {
    const { state, cache, get } = setUp()
    await get('a')
    for (let hit = 0; hit < 100; hit++) await get('a')
    state.version = 'v2'
    const fail = async () => Promise.reject(new Error('no'))
    expect((await cache.get(of('a'), fail, neverDisconnects)).from).toBe('stale')
    await vi.waitFor(() => expect(state.lost).toHaveLength(1), { timeout: 60_000 })
    expect((await get('a')).from).toBe('stale')
    await vi.waitFor(() => expect(cache.find('a', [tokenPrices], state.now)).toBeDefined(), { timeout: 60_000 })
  })

  it('caches nothing with a budget of 0', async () => {
    const { get } = setUp(0)
    expect((await get('a')).from).toBe('made')
    expect((await get('a')).from).toBe('made')
  })

  it('does not cache failures', async () => {
    const { cache, get } = setUp()
    const failing = cache.get(of('a'), async () => Promise.reject(new Error('no')), neverDisconnects)
    await expect(failing).rejects.toThrow('no')
    expect((await get('a')).from).toBe('made')
  })

  it('stays within its byte limit', async () => {
    const { cache, get } = setUp(10_000)
    for (const key of ['a', 'b', 'c', 'd']) await get(key, ready('x'.repeat(1500)))
    expect(cache.find('a', [tokenPrices], 0)).toBeUndefined()
    expect(cache.find('d', [tokenPrices], 0)).toBeDefined()
  })

  it('continues for the remaining clients, and aborts when the last one disconnects', async () => {
    const { cache } = setUp()
    const [one, another] = [new AbortController(), new AbortController()]
    const seen: AbortSignal[] = []
    const make = (abandoned: AbortSignal) => {
      seen.push(abandoned)
      return new Promise<never>((_, reject) => abandoned.addEventListener('abort', () => reject(abandoned.reason)))
    }
    const first = cache.get(of('a'), make, () => one.signal)
    const second = cache.get(of('a'), make, () => another.signal)
    await vi.waitFor(() => expect(seen).toHaveLength(1))
    one.abort(new Error('one left'))
    await expect(first).rejects.toThrow('one left')
    expect(seen.map(({ aborted }) => aborted)).toEqual([false])
    another.abort(new Error('other left'))
    await expect(second).rejects.toThrow('other left')
    expect(seen.map(({ aborted }) => aborted)).toEqual([true])
    void cache.get(of('a'), make, neverDisconnects)
    await vi.waitFor(() => expect(seen.map(({ aborted }) => aborted)).toEqual([true, false]))
  })

  it('does not start for a disconnected client, and keeps a response built before the disconnect', async () => {
    const { state, cache, get } = setUp()
    await expect(
      cache.get(
        of('a'),
        async () => ready('a'),
        () => AbortSignal.abort(new Error('left')),
      ),
    ).rejects.toThrow('left')
    const leaves = new AbortController()
    await cache.get(
      of('a'),
      async () => ready('a'),
      () => leaves.signal,
    )
    leaves.abort()
    expect((await get('a')).from).toBe('cache')
    expect(state.made).toBe(0)
  })

  it('finishes the rebuild of an old response after its client disconnects', async () => {
    const { state, cache, get } = setUp()
    await get('a')
    for (let hit = 0; hit < 100; hit++) await get('a')
    state.version = 'v2'
    const leaves = new AbortController()
    let resolve: (answer: ReadyAnswer) => void = () => {}
    const promise = new Promise<ReadyAnswer>((fulfil) => {
      resolve = fulfil
    })
    let abandoned: AbortSignal | undefined
    const renew = (signal: AbortSignal) => {
      abandoned = signal
      return promise
    }
    expect((await cache.get(of('a'), renew, () => leaves.signal)).from).toBe('stale')
    leaves.abort()
    expect(abandoned?.aborted).toBe(false)
    resolve(ready('new'))
    await vi.waitFor(() => expect(cache.find('a', [tokenPrices], state.now)?.tag).toBe('new'))
  })

  it('rejects uncached requests over the queue limit, except urgent ones', async () => {
    const { state, cache } = setUp()
    const never = () => new Promise<never>(() => {})
    for (let i = 0; i < 64; i++) void cache.get(of(`k${i}`), never, neverDisconnects)
    await expect(cache.get(of('one more'), never, neverDisconnects)).rejects.toMatchObject({ code: 'unavailable' })
    expect(state.refused).toBe(1)
    const urgent = { ...of('urgent'), client: undefined }
    expect((await cache.get(urgent, async () => ready('urgent'), neverDisconnects)).from).toBe('made')
  })
})
