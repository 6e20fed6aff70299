import { describe, expect, it } from 'vitest'
import { createBatcher } from '../../shared/batcher.ts'

interface Reading {
  readonly all: readonly number[]
  readonly abandoned: AbortSignal
  end(): void
  fail(error: Error): void
}

/** Reads numbers as texts; the test completes each read. The weight of a number is its value. */
function gather(options: { concurrency?: number; most?: number } = {}) {
  const readings: Reading[] = []
  const read = (all: readonly number[], abandoned: AbortSignal) =>
    new Promise<string[]>((resolve, reject) => {
      abandoned.addEventListener('abort', () => reject(abandoned.reason))
      readings.push({ all, abandoned, end: () => resolve(all.map(String)), fail: reject })
    })
  const request = createBatcher({ read, concurrency: 1, most: 10, weigh: (one: number) => one, ...options })
  return { readings, request, connected: (one: number) => request(one, new AbortController().signal) }
}

const untilSettled = () => new Promise((resolve) => setImmediate(resolve))

describe('createBatcher', () => {
  it('reads all values requested during a read in one batch', async () => {
    const { readings, connected } = gather()
    const queries = [1, 2, 3, 4].map(connected)
    expect(readings.map(({ all }) => all)).toEqual([[1]])
    readings[0]?.end()
    expect(await queries[0]).toBe('1')
    expect(readings.map(({ all }) => all)).toEqual([[1], [2, 3, 4]])
    readings[1]?.end()
    expect(await Promise.all(queries)).toEqual(['1', '2', '3', '4'])
  })

  it('does not batch while fewer than `concurrency` reads are running', () => {
    const { readings, connected } = gather({ concurrency: 3 })
    for (const one of [1, 2, 3, 4]) connected(one)
    expect(readings.map(({ all }) => all)).toEqual([[1], [2], [3]])
  })

  it('limits a batch by weight and keeps the order of requests', async () => {
    const { readings, connected } = gather()
    for (const one of [1, 4, 5, 2, 20, 3]) connected(one)
    for (let at = 0; at < 5; at += 1) {
      readings[at]?.end()
      await untilSettled()
    }
    expect(readings.map(({ all }) => all)).toEqual([[1], [4, 5], [2], [20], [3]])
  })

  it('retries each value of a failed batch in a separate read', async () => {
    const { readings, connected } = gather()
    const [first, ...rest] = [1, 2, 3].map(connected)
    readings[0]?.fail(new Error('away'))
    await expect(first).rejects.toThrow('away')
    readings[1]?.fail(new Error('torn'))
    await untilSettled()
    // A value requested now is not batched with the retries either.
    const later = connected(4)
    expect(readings.map(({ all }) => all)).toEqual([[1], [2, 3], [2]])
    readings[2]?.fail(new Error('torn for good'))
    await expect(rest[0]).rejects.toThrow('torn for good')
    expect(readings.map(({ all }) => all)).toEqual([[1], [2, 3], [2], [3]])
    readings[3]?.end()
    expect(await rest[1]).toBe('3')
    readings[4]?.end()
    expect(await later).toBe('4')
  })
})

describe('createBatcher with disconnected clients', () => {
  it('does not read a value if its client disconnects before the read', async () => {
    const { readings, request, connected } = gather()
    const leaver = new AbortController()
    connected(1)
    const disconnected = request(2, leaver.signal)
    const stayed = connected(3)
    leaver.abort(new Error('left'))
    await expect(disconnected).rejects.toThrow('left')
    readings[0]?.end()
    await untilSettled()
    expect(readings.map(({ all }) => all)).toEqual([[1], [3]])
    readings[1]?.end()
    expect(await stayed).toBe('3')
  })

  it('starts no read for a client that is already disconnected', async () => {
    const { readings, request } = gather()
    await expect(request(1, AbortSignal.abort(new Error('left')))).rejects.toThrow('left')
    expect(readings).toEqual([])
  })

  it('continues a batch for the remaining clients, and aborts it when the last one disconnects', async () => {
    const { readings, request, connected } = gather()
    const leavers = [new AbortController(), new AbortController()] as const
    const first = connected(1)
    const disconnected = leavers.map(({ signal }, at) => request(2 + at, signal))
    readings[0]?.end()
    await first
    const [reading] = readings.slice(1)
    leavers[0].abort(new Error('left'))
    await expect(disconnected[0]).rejects.toThrow('left')
    expect(reading?.abandoned.aborted).toBe(false)
    leavers[1].abort(new Error('left too'))
    await expect(disconnected[1]).rejects.toThrow('left too')
    expect(reading?.abandoned.aborted).toBe(true)
    const next = connected(4)
    await untilSettled()
    readings[2]?.end()
    expect(await next).toBe('4')
  })
})
