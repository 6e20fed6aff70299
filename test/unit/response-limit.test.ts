import { EventEmitter } from 'node:events'
import type { ServerResponse } from 'node:http'
import { describe, expect, it } from 'vitest'
import { createResponseLimit } from '../../api/admission/admission.ts'

const toResponse = (destroyed = false) => Object.assign(new EventEmitter(), { destroyed }) as unknown as ServerResponse

/** Readers of which the test decides who is slow. Closed responses emit `close`. */
function createReaders() {
  const slow = new Set<unknown>()
  return {
    slow,
    closeSlowest: (among: Iterable<ServerResponse>) => {
      const closed = [...among].find((response) => slow.delete(response))
      closed?.emit('close')
      return closed
    },
  }
}

describe('createResponseLimit', () => {
  it('rejects a client at its limit with 429 and `Retry-After`, but no other client', () => {
    const limit = createResponseLimit(createReaders(), 4, 2)
    const [release] = [toResponse(), toResponse()].map((response) => limit.add(response, 'a'))
    expect(() => limit.add(toResponse(), 'a')).toThrow(
      expect.objectContaining({ code: 'rate_limited', particulars: { headers: { 'Retry-After': '10' } } }),
    )
    limit.add(toResponse(), 'b')
    release?.()
    expect(() => limit.add(toResponse(), 'a')).not.toThrow()
  })

  it('has one listener for a response that is added again', () => {
    const limit = createResponseLimit(createReaders(), 4)
    const response = toResponse()
    for (let attempt = 0; attempt < 20; attempt += 1) limit.add(response, 'a')()
    expect(response.listenerCount('close')).toBe(1)
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

  it('rejects an amount over the limit while no reader is slow, and counts it until the response closes', () => {
    const limit = createResponseLimit(createReaders(), 100)
    const first = toResponse()
    limit.add(first, 'a', 60)
    limit.add(toResponse(), 'a', 40)
    expect(() => limit.add(toResponse(), 'a', 1)).toThrow(expect.objectContaining({ code: 'unavailable' }))
    first.emit('close')
    expect(() => limit.add(toResponse(), 'a', 60)).not.toThrow()
  })

  it('closes slow readers for a new response until its amount fits, and counts theirs no longer', () => {
    const readers = createReaders()
    const limit = createResponseLimit(readers, 100)
    for (const response of [toResponse(), toResponse()]) {
      limit.add(response, 'a', 50)
      readers.slow.add(response)
    }
    limit.add(toResponse(), 'b', 100)
    expect(readers.slow.size).toBe(0)
    expect(() => limit.add(toResponse(), 'b', 1)).toThrow(expect.objectContaining({ code: 'unavailable' }))
  })

  it('does not count a response that was closed before', () => {
    const limit = createResponseLimit(createReaders(), 100)
    limit.add(toResponse(true), 'a', 100)
    expect(() => limit.add(toResponse(), 'a', 100)).not.toThrow()
  })
})
