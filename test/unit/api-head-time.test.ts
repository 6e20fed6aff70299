import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { noteHead } from '../../api/serving/observe.ts'

describe('noteHead', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }))
  afterEach(() => void vi.useRealTimers())

  it.each([
    ['with its head', (response: ServerResponse) => response.writeHead(200, { 'content-type': 'text/plain' })],
    ['with its first bytes', (response: ServerResponse) => response.write('x')],
  ])("returns the time when the response began %s, independent of the client's speed", (_how, begin) => {
    const response = new ServerResponse(new IncomingMessage(new Socket()))
    const headTime = noteHead(response)
    const startedAt = performance.now()
    vi.advanceTimersByTime(50)
    expect(headTime() - startedAt).toBe(50)
    begin(response)
    vi.advanceTimersByTime(60_000)
    response.end()
    expect(headTime() - startedAt).toBe(50)
  })
})
