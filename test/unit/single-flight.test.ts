import { describe, expect, it, vi } from 'vitest'
import { createFairQueue } from '../../api/admission/fair-queue.ts'
import { createSingleFlight, inTurn, type ReadScope, withQueue } from '../../api/single-flight/single-flight.ts'
import type { Database } from '../../shared/store/store.ts'

function setUp() {
  const waiting = vi.fn()
  const queue = createFairQueue({ slots: 1, maxWaiting: 10 }, { waiting, waited: () => {}, rejected: () => {} })
  return { flights: createSingleFlight<string>(queue), countWaiting: () => waiting.mock.lastCall?.[0] }
}

/** A promise that the test resolves. */
function createGate() {
  let open = () => {}
  const passed = new Promise<void>((resolve) => {
    open = resolve
  })
  return { open, passed }
}

describe('createSingleFlight', () => {
  it('runs work that reads nothing without a slot, while another request has the only one', async () => {
    const { flights } = setUp()
    const { open, passed } = createGate()
    const slow = flights.share(
      'slow',
      inTurn(() => passed.then(() => 'slow')),
      { client: 'a' },
    )
    expect(await flights.share('quick', async () => 'quick', { client: 'a' }).result).toBe('quick')
    open()
    expect(await slow.result).toBe('slow')
  })

  it('gives a request one slot for all its reads, until the last of them has ended', async () => {
    const { flights, countWaiting } = setUp()
    const { open, passed } = createGate()
    let reading: Promise<void> | undefined
    const read = async ({ queue }: ReadScope, work: Promise<void>) => {
      const release = await queue()
      await work
      release()
    }
    const first = flights.share(
      'first',
      async (scope) => {
        await read(scope, Promise.resolve())
        await read(scope, Promise.resolve())
        // Another request shares this read, so it does not end with the request that started it.
        reading = read(scope, passed)
        return 'first'
      },
      { client: 'a' },
    )
    const begin = vi.fn(async () => 'second')
    const second = flights.share('second', inTurn(begin), { client: 'b' })
    expect(await first.result).toBe('first')
    expect([begin.mock.calls.length, countWaiting()]).toEqual([0, 1])
    open()
    await reading
    expect(await second.result).toBe('second')
  })

  it('runs a statement after the end of the work without the queue', async () => {
    const { flights } = setUp()
    const { open, passed } = createGate()
    const rows = vi.fn(async () => ['row'])
    let later: Database | undefined
    const work = async (scope: ReadScope) => {
      later = withQueue({ rows, stream: rows } as unknown as Database, scope)
      return 'done'
    }
    await flights.share('ended', work, { client: 'a' }).result
    const slow = flights.share(
      'slow',
      inTurn(() => passed.then(() => 'slow')),
      { client: 'a' },
    )
    expect(await later?.rows({} as never)).toEqual(['row'])
    open()
    await slow.result
  })

  it('charges a client before its work reads, and only then', async () => {
    const { flights } = setUp()
    const charge = vi.fn(() => Promise.reject(new Error('limit')))
    expect(await flights.share('quick', async () => 'quick', { client: 'a', charge }).result).toBe('quick')
    expect(charge).not.toHaveBeenCalled()
    const work = vi.fn(async () => 'read')
    await expect(flights.share('read', inTurn(work), { client: 'a', charge }).result).rejects.toThrow('limit')
    expect(work).not.toHaveBeenCalled()
  })

  it('rejects only the clients that cannot be charged, and continues for the others', async () => {
    const { flights } = setUp()
    const { open, passed } = createGate()
    const overLimit = async () => {
      await passed
      throw new Error('limit')
    }
    const work = vi.fn(async () => 'read')
    const all = [overLimit, async () => {}, overLimit].map(
      (charge) => flights.share('read', inTurn(work), { client: 'a', charge }).result,
    )
    open()
    const results = await Promise.allSettled(all)
    expect(results.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'rejected'])
    expect(work).toHaveBeenCalledTimes(1)
  })

  it('shares work with requests that arrive while it runs, and reports success to callbacks once', async () => {
    const { flights } = setUp()
    const { open, passed } = createGate()
    const [succeeded, failed] = [vi.fn(), vi.fn()]
    const share = () =>
      flights.share('one', async ({ onSuccess }) => {
        onSuccess(succeeded)
        await passed
        return 'one'
      })
    const [first, second] = [share(), share()]
    expect([first.isNew, second.isNew]).toEqual([true, false])
    open()
    expect(await Promise.all([first.result, second.result])).toEqual(['one', 'one'])
    expect([first.isOnly(), succeeded.mock.calls.length]).toEqual([false, 1])
    const fails = async ({ onSuccess }: ReadScope) => {
      onSuccess(failed)
      return Promise.reject(new Error('no'))
    }
    await expect(flights.share('two', fails).result).rejects.toThrow('no')
    expect(failed).not.toHaveBeenCalled()
  })
})
