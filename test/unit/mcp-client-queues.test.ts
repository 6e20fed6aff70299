import { describe, expect, it } from 'vitest'
import { createClientQueues } from '../../api/mcp/endpoint.ts'

/** Work that the test finishes. */
function createWork() {
  let end = () => {}
  const ended = new Promise<void>((resolve) => {
    end = resolve
  })
  return { work: () => ended, end: () => end() }
}

describe('createClientQueues', () => {
  it('runs the requests of one client one at a time, in order', async () => {
    const inTurn = createClientQueues()
    const first = createWork()
    const began: string[] = []
    const running = [
      inTurn('a', async () => {
        began.push('first')
        await first.work()
      }),
      inTurn('a', async () => void began.push('second')),
      inTurn('a', async () => void began.push('third')),
    ]
    await inTurn('b', async () => void began.push('of another client'))
    expect(began).toEqual(['first', 'of another client'])
    first.end()
    await Promise.all(running)
    expect(began.slice(2)).toEqual(['second', 'third'])
  })

  it('continues after a failed request', async () => {
    const inTurn = createClientQueues()
    const failed = inTurn('a', () => Promise.reject(new Error('no')))
    const next = inTurn('a', async () => 'done')
    await expect(failed).rejects.toThrow('no')
    expect(await next).toBe('done')
  })

  it('lets other work of the process run before each request', async () => {
    const inTurn = createClientQueues()
    const order: string[] = []
    setImmediate(() => order.push('other'))
    await inTurn('a', async () => void order.push('own'))
    expect(order).toEqual(['other', 'own'])
  })
})
