import type { ClientRequest, IncomingMessage } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ask, askForDays, begin, ERROR, type MarketApi, startMarketApi } from './market-api.ts'

/** The API's limit of concurrent downloads. */
const READERS = 64
const PACE = { bytes: 64 * 1024, ms: 6_000 }
const DAYS = 200

let api: MarketApi

/** Reads a kilobyte a second until it is closed. */
async function readSlowly(url: string) {
  let response: IncomingMessage | undefined
  let hasLeft = false
  let request: ClientRequest
  // A rejected client, because many start concurrently, retries. A client retries too if its connection ends before the
  // response.
  const ask = () => {
    request = begin(url, (begun) => {
      if (begun.statusCode === 503) begun.resume()
      else {
        response = begun
        begun.pause()
      }
    })
    request.once('close', () => response === undefined && !hasLeft && setTimeout(ask, 1000))
  }
  ask()
  const reading = (async () => {
    while (!hasLeft) {
      response?.read(1024)
      await wait(1000)
    }
  })()
  return {
    get status() {
      return response?.statusCode
    },
    leave: async () => {
      hasLeft = true
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
    const alone = await askForDays(api, counted(DAYS))
    const readers = await startReaders(READERS)
    await expect.poll(() => readers.every(({ status }) => status === 200), { timeout: 300_000 }).toBe(true)
    // The number of allowed readers. At first none of them counts as slow, so a new client is rejected and retries.
    await expect.poll(() => ask(String(api.downloads[1])), { timeout: 300_000 }).toBe(200)
    // A client that reads this slowly sees the end of its connection only after the system's buffered bytes.
    const countClosed = () => api.lines.reduce((sum, { closed = 0 }) => sum + closed, 0)
    const beside = await askForDays(api, () => countClosed() === READERS)
    console.log(
      `p95 of a miss: ${toP95(alone.times)} ms alone, ${toP95(beside.times)} ms beside ${READERS} slow readers`,
    )
    expect([...alone.statuses.keys(), ...beside.statuses.keys()]).toEqual([200, 200])
    await expect.poll(api.countStatements, { timeout: 60_000 }).toBe(0)
    await Promise.all(readers.map(({ leave }) => leave()))
    expect(api.lines.filter(({ level }) => level >= ERROR)).toEqual([])
  })
})

function counted(times: number): () => boolean {
  let left = times
  return () => {
    left -= 1
    return left < 0
  }
}

function toP95(times: readonly number[]): string {
  const sorted = times.toSorted((one, other) => one - other)
  return (sorted[Math.floor(sorted.length * 0.95)] ?? 0).toFixed(0)
}
