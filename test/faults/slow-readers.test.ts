import type { ClientRequest, IncomingMessage } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { begin, ERROR, type MarketApi, request, requestDays, startMarketApi } from './market-api.ts'

/** The API's limit of concurrent downloads. */
const READERS = 64
const PACE = { bytes: 64 * 1024, ms: 6_000 }
const DAYS = 200

let api: MarketApi

/** Reads a kilobyte a second until it is closed. */
async function readSlowly(url: string) {
  let response: IncomingMessage | undefined
  let hasDisconnected = false
  let request: ClientRequest
  // A rejected client, because many start concurrently, retries. A client retries too if its connection ends before the
  // response.
  const sendRequest = () => {
    request = begin(url, (started) => {
      if (started.statusCode === 503) started.resume()
      else {
        response = started
        started.pause()
      }
    })
    request.once('close', () => response === undefined && !hasDisconnected && setTimeout(sendRequest, 1000))
  }
  sendRequest()
  const reading = (async () => {
    while (!hasDisconnected) {
      response?.read(1024)
      await wait(1000)
    }
  })()
  return {
    get status() {
      return response?.statusCode
    },
    disconnect: async () => {
      hasDisconnected = true
      await reading
      request.destroy()
    },
  }
}

const startReaders = (count: number) =>
  Promise.all(
    Array.from({ length: count }, (_, index) => readSlowly(api.downloads[index % api.downloads.length] as string)),
  )

beforeAll(async () => {
  api = await startMarketApi(PACE)
})
afterAll(() => api?.stop())

describe('API with clients that read a kilobyte a second', { timeout: 900_000 }, () => {
  it('serves other clients, frees room for faster readers, and closes the slow connections', async () => {
    const alone = await requestDays(api, counted(DAYS))
    const readers = await startReaders(READERS)
    await expect.poll(() => readers.every(({ status }) => status === 200), { timeout: 300_000 }).toBe(true)
    // The number of allowed readers. At first none of them counts as slow, so a new client is rejected and retries.
    await expect.poll(() => request(String(api.downloads[1])), { timeout: 300_000 }).toBe(200)
    // A client that reads this slowly sees the end of its connection only after the system's buffered bytes.
    const countClosed = () => api.lines.reduce((sum, { closed = 0 }) => sum + closed, 0)
    const concurrent = await requestDays(api, () => countClosed() === READERS)
    console.log(
      `p95 of a miss: ${toP95(alone.times)} ms alone, ${toP95(concurrent.times)} ms beside ${READERS} slow readers`,
    )
    expect([...alone.statuses.keys(), ...concurrent.statuses.keys()]).toEqual([200, 200])
    await expect.poll(api.countStatements, { timeout: 60_000 }).toBe(0)
    await Promise.all(readers.map(({ disconnect }) => disconnect()))
    expect(api.lines.filter(({ level }) => level >= ERROR)).toEqual([])
  })
})

function counted(times: number): () => boolean {
  let remaining = times
  return () => {
    remaining -= 1
    return remaining < 0
  }
}

function toP95(times: readonly number[]): string {
  const sorted = times.toSorted((a, b) => a - b)
  return (sorted[Math.floor(sorted.length * 0.95)] ?? 0).toFixed(0)
}
