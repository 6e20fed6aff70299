import { EventEmitter } from 'node:events'
import type { ServerResponse } from 'node:http'
import { describe, expect, it } from 'vitest'
import { createByteBudget, createResponseLimit } from '../../api/admission/open-responses.ts'

const toResponse = (destroyed = false) => Object.assign(new EventEmitter(), { destroyed }) as unknown as ServerResponse

/** Readers of which the test decides who is slow. Closed responses emit `close`. */
function createReaders() {
  const slow = new Set<unknown>()
  return {
    slow,
    closeSlowest: <R>(among: Iterable<R>): R | undefined => {
      const closed = [...among].find((response) => slow.delete(response))
      if (closed instanceof EventEmitter) closed.emit('close')
      return closed
    },
  }
}

describe('createResponseLimit', () => {
  it('rejects a client at its limit with 429 and `Retry-After`, but no other client', () => {
    const limit = createResponseLimit(createReaders(), 4, 2)
    const responses = [toResponse(), toResponse()]
    for (const response of responses) limit.add(response, 'a')
    expect(() => limit.add(toResponse(), 'a')).toThrow(
      expect.objectContaining({ code: 'rate_limited', particulars: { headers: { 'Retry-After': '10' } } }),
    )
    limit.add(toResponse(), 'b')
    limit.remove(responses[0] as ServerResponse)
    expect(() => limit.add(toResponse(), 'a')).not.toThrow()
  })

  it('rejects any client at the total limit with 503 and `Retry-After`', () => {
    const limit = createResponseLimit(createReaders(), 2)
    limit.add(toResponse(), 'a')
    limit.add(toResponse(), 'b')
    expect(() => limit.add(toResponse(), 'c')).toThrow(
      expect.objectContaining({ code: 'unavailable', particulars: { headers: { 'Retry-After': '5' } } }),
    )
  })

  it('closes a slow reader of the same client for a new response, and of any client at the total limit', () => {
    const readers = createReaders()
    const limit = createResponseLimit(readers, 3, 2)
    const [own, another] = [toResponse(), toResponse()]
    limit.add(own, 'a')
    limit.add(toResponse(), 'a')
    limit.add(another, 'b')
    readers.slow.add(another)
    expect(() => limit.add(toResponse(), 'a')).toThrow(expect.objectContaining({ code: 'rate_limited' }))
    readers.slow.add(own)
    limit.add(toResponse(), 'a')
    expect(readers.slow).toEqual(new Set([another]))
    limit.add(toResponse(), 'c')
    expect(readers.slow.size).toBe(0)
  })
})

describe('createByteBudget', () => {
  it('rejects an answer over the budget while no reader is slow, and counts bytes until a response closes', () => {
    const budget = createByteBudget(createReaders(), 100)
    const first = toResponse()
    budget.add(first, Buffer.alloc(60))
    budget.add(toResponse(), Buffer.alloc(40))
    expect(() => budget.add(toResponse(), Buffer.alloc(1))).toThrow(expect.objectContaining({ code: 'unavailable' }))
    first.emit('close')
    expect(() => budget.add(toResponse(), Buffer.alloc(60))).not.toThrow()
  })

  it('counts the bytes of a body that several clients read once, until the last of them closes', () => {
    const budget = createByteBudget(createReaders(), 100)
    const body = Buffer.alloc(60)
    const [first, second] = [toResponse(), toResponse()]
    budget.add(first, body)
    budget.add(second, body)
    budget.add(toResponse(), Buffer.alloc(40))
    first.emit('close')
    expect(() => budget.add(toResponse(), Buffer.alloc(1))).toThrow(expect.objectContaining({ code: 'unavailable' }))
    second.emit('close')
    expect(() => budget.add(toResponse(), Buffer.alloc(60))).not.toThrow()
  })

  it('closes slow readers for a new answer, and counts their bytes no longer', () => {
    const readers = createReaders()
    const budget = createByteBudget(readers, 100)
    const slow = [toResponse(), toResponse()]
    for (const response of slow) budget.add(response, Buffer.alloc(50))
    for (const response of slow) readers.slow.add(response)
    budget.add(toResponse(), Buffer.alloc(100))
    expect(readers.slow.size).toBe(0)
    expect(() => budget.add(toResponse(), Buffer.alloc(1))).toThrow(expect.objectContaining({ code: 'unavailable' }))
  })

  it('does not count a response that was closed before', () => {
    const budget = createByteBudget(createReaders(), 100)
    budget.add(toResponse(true), Buffer.alloc(100))
    expect(() => budget.add(toResponse(), Buffer.alloc(100))).not.toThrow()
  })
})
