import { get, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { parquetMetadata } from 'hyparquet'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findFreePort } from '../../shared/free-port.ts'
import { startChild, untilReady } from '../../tools/children.ts'
import { createApiDatabase } from '../support/api.ts'
import { createTestConfig } from '../support/database.ts'
import { storeMarket } from '../support/market.ts'
import { toStoreSettings } from '../support/store-settings.ts'

const MIB = 1024 * 1024
const TOKENS = 5
const POINTS_EACH = 200_000
const POINTS = TOKENS * POINTS_EACH
const LAST = Date.parse('2023-12-29T00:00:00Z')
const MEASURE_EVERY = 8 * MIB

const config = createTestConfig()
let database: Awaited<ReturnType<typeof createApiDatabase>>
let child: ReturnType<typeof startChild>
let facts: { url: string; opsPort: number }
let query: string

const open = (url: string) => new Promise<IncomingMessage>((resolve, reject) => get(url, resolve).on('error', reject))

/** Memory of the API's process, from its metrics. */
async function readResident(): Promise<number> {
  const metrics = await (await fetch(`http://127.0.0.1:${facts.opsPort}/metrics`)).text()
  return Number(/^process_resident_memory_bytes\S* (\S+)$/m.exec(metrics)?.[1])
}

/** Downloads a table no faster than its memory is measured; returns the process's largest growth. */
async function download(format: string, eat: (chunk: Buffer) => void): Promise<{ bytes: number; growth: number }> {
  const before = await readResident()
  const response = await open(`${facts.url}/data/tokens/historic-financial?${query}&format=${format}`)
  expect([response.statusCode, response.headers['x-series-points']]).toEqual([200, String(POINTS)])
  let [bytes, growth] = [0, 0]
  for await (const chunk of response as AsyncIterable<Buffer>) {
    const measured = Math.floor(bytes / MEASURE_EVERY)
    bytes += chunk.length
    eat(chunk)
    if (Math.floor(bytes / MEASURE_EVERY) > measured) growth = Math.max(growth, (await readResident()) - before)
  }
  return { bytes, growth: Math.max(growth, (await readResident()) - before) }
}

beforeAll(async () => {
  database = await createApiDatabase(config)
  const tokens = database.registry.tokens.slice(0, TOKENS)
  const keys = tokens.map(({ key }) => key)
  await storeMarket(database.writer, { keys, until: LAST - 60_000, points: POINTS_EACH, stepMs: 300_000 })
  query = `id=${tokens.map(({ id }) => id)}&interval=5m&start=2022-02-01&end=2024-01-01`
  child = startChild('api', join(import.meta.dirname, '../../api/main.ts'), {
    ...toStoreSettings(config),
    API_PORT: '0',
    API_OPS_PORT: String(await findFreePort()),
    LOG_LEVEL: 'silent',
  })
  facts = (await untilReady(child)) as typeof facts
  // Code that runs for the first time allocates memory.
  for (const format of ['csv', 'parquet']) {
    await (
      await fetch(`${facts.url}/data/tokens/historic-financial?${query}&limit=20000&format=${format}`)
    ).arrayBuffer()
  }
})
afterAll(async () => {
  await child?.stop()
  await database?.drop()
})

describe('download of a table with a million points', () => {
  it('has a constant memory use as CSV', async () => {
    let lines = 0
    const { bytes, growth } = await download('csv', (chunk) => {
      for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, at + 1)) lines += 1
    })
    expect(lines).toBe(POINTS + 1)
    expect(bytes).toBeGreaterThan(100 * MIB)
    expect(growth).toBeLessThan(64 * MIB)
  })

  it('has a constant memory use as Parquet', async () => {
    const chunks: Buffer[] = []
    const { growth } = await download('parquet', (chunk) => chunks.push(chunk))
    const file = new Uint8Array(Buffer.concat(chunks)).buffer
    expect(Number(parquetMetadata(file).num_rows)).toBe(POINTS)
    expect(growth).toBeLessThan(64 * MIB)
  })
})
