import { once } from 'node:events'
import { setTimeout as wait } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { toNoiseKey, unit } from '../upstream/noise.ts'
import { begin, ERROR, type MarketApi, requestDays, startMarketApi } from './market-api.ts'

const DOWNLOADS = 1_000
const CONNECTIONS = 16
/** Within this time a download has run its first statements and has started its stream. */
const LEAVES_WITHIN_MS = 200
/** One in this many clients waits for its response before it disconnects. */
const READS_EVERY = 25
const MIB = 1024 * 1024

const seed = Number(process.env.FAULTS_SEED ?? 1)
const key = toNoiseKey(seed, 'clients leave')

let api: MarketApi

/**
 * Starts a download and disconnects after its own delay; some clients always wait until the response has started. Returns
 * whether it had started.
 */
async function disconnect(index: number): Promise<boolean> {
  const isReader = index % READS_EVERY === 0
  const downloads = isReader ? api.downloads.slice(1) : api.downloads
  const url = downloads[Math.floor(unit(key, 2 * index) * downloads.length)] as string
  let hasStarted = false
  const request = begin(url, (response) => {
    hasStarted = true
    response.resume()
  })
  if (isReader) await once(request, 'response')
  await wait(unit(key, 2 * index + 1) * LEAVES_WITHIN_MS)
  request.destroy()
  return hasStarted
}

/**
 * Runs clients that disconnect one after the other, on this many connections. Returns how many of them received the start of
 * their response.
 */
async function disconnectAll(from: number, count: number): Promise<number> {
  let [next, started] = [from, 0]
  const one = async () => {
    while (next < from + count) {
      next += 1
      if (await disconnect(next)) started += 1
    }
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, one))
  return started
}

beforeAll(async () => {
  api = await startMarketApi({ bytes: 64 * 1024, ms: 30_000 })
  // Warm-up: code that runs for the first time and keep-alive connections allocate memory.
  await disconnectAll(DOWNLOADS, 100)
})
afterAll(() => api?.stop())

it(`API releases sockets, statements and memory of a thousand clients that disconnect (seed ${seed})`, {
  timeout: 300_000,
}, async () => {
  await expect.poll(api.countStatements, { timeout: 60_000 }).toBe(0)
  const before = { sockets: api.countSockets(), resident: await api.readResident() }
  let isOver = false
  const days = Promise.all(Array.from({ length: 2 }, () => requestDays(api, () => isOver)))
  const started = await disconnectAll(0, DOWNLOADS)
  isOver = true
  const statuses = (await days).flatMap((requested) => [...requested.statuses.keys()])
  expect(new Set(statuses)).toEqual(new Set([200]))
  // A part of the clients disconnected during the response and some before it.
  expect(started).toBeGreaterThanOrEqual(DOWNLOADS / READS_EVERY)
  expect(started).toBeLessThan(DOWNLOADS)
  await expect.poll(api.countStatements, { timeout: 60_000 }).toBe(0)
  await expect.poll(api.countSockets, { timeout: 60_000 }).toBeLessThanOrEqual(before.sockets)
  expect((await api.readResident()) - before.resident).toBeLessThan(128 * MIB)
  expect(api.lines.filter(({ level, msg }) => level >= ERROR || msg === 'refused')).toEqual([])
})
