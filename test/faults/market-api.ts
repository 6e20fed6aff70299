import { readdirSync, readlinkSync } from 'node:fs'
import { Agent, type ClientRequest, get, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { z } from 'zod'
import type { AdmissionOptions } from '../../api/admission/admission.ts'
import { findFreePort } from '../../shared/free-port.ts'
import { DAY_MS } from '../../shared/intervals.ts'
import { startChild, untilReady } from '../../tools/children.ts'
import { createApiDatabase } from '../support/api.ts'
import { createTestConfig } from '../support/database.ts'
import { storeMarket } from '../support/market.ts'
import { toStoreSettings } from '../support/store-settings.ts'

const STEP_MS = 300_000
const TOKENS = 5
const POINTS_EACH = 100_000
const END = Date.parse('2024-01-01T00:00:00Z')
const DAYS = Math.floor((POINTS_EACH * STEP_MS) / DAY_MS)

/** Facts from the API's log that tests use. */
interface LogLine {
  readonly level: number
  readonly msg: string
  /** How many connections of slow readers were closed. */
  readonly closed?: number
}

/** Level `error`. */
export const ERROR = 50

/**
 * An API process over half a million points, with the requests that clients send and the API's resource use as seen from
 * outside.
 */
export async function startMarketApi(pace: NonNullable<AdmissionOptions['minimumRate']>) {
  const config = createTestConfig()
  const database = await createApiDatabase(config)
  const tokens = database.registry.tokens.slice(0, TOKENS)
  const keys = tokens.map(({ key }) => key)
  await storeMarket(database.writer, { keys, until: END - STEP_MS, points: POINTS_EACH, stepMs: STEP_MS })
  const settings = {
    ...toStoreSettings(config),
    API_PORT: '0',
    API_OPS_PORT: String(await findFreePort()),
    API_DRAIN_SECONDS: '0',
  }
  const child = startChild('api', join(import.meta.dirname, 'paced-api.ts'), settings, [`${pace.bytes}`, `${pace.ms}`])
  const lines: LogLine[] = []
  child.process.on('message', ({ line }: { line: string }) => lines.push(JSON.parse(line) as LogLine))
  const { url, opsPort } = (await untilReady(child)) as { url: string; opsPort: number }
  const series = `${url}/data/tokens/historic-financial?interval=5m`
  const full = 'start=2022-02-01&end=2024-01-01'
  let days = 0
  const readMetrics = async () => (await fetch(`http://127.0.0.1:${opsPort}/metrics`)).text()
  return {
    /** Log lines of the API. */
    lines,
    /** Long responses: a table of all points, and the series of each token. */
    downloads: [
      `${series}&${full}&format=csv&id=${tokens.map(({ id }) => id)}`,
      ...tokens.map(({ id }) => `${series}&${full}&id=${id}`),
    ],
    /** A day of a token that no request has used yet. */
    nextDay: () => {
      const from = END - (1 + (days % DAYS)) * DAY_MS
      const token = tokens[Math.floor(days / DAYS) % TOKENS]
      days += 1
      return `${series}&id=${token?.id}&start=${from}&end=${from + DAY_MS}`
    },
    /** Statements of the API that are running now. */
    countStatements: async () => {
      const [row] = await database.writer.rows({
        name: 'statements',
        sql: 'SELECT count() AS running FROM system.processes WHERE user = {user: String} AND current_database = {database: String}',
        params: { user: config.clickhouse.readUser, database: config.clickhouse.database },
        schema: z.object({ running: z.int() }),
      })
      return row?.running
    },
    /** Open sockets of the API's process. */
    countSockets: () => {
      const folder = `/proc/${child.process.pid}/fd`
      return readdirSync(folder).filter((file) => toTarget(join(folder, file)).startsWith('socket:')).length
    },
    /** Resident memory of the API's process, in bytes. */
    readResident: async () => Number(/^process_resident_memory_bytes\S* (\S+)$/m.exec(await readMetrics())?.[1]),
    stop: async () => {
      await child.stop()
      await database.drop()
    },
  }
}

export type MarketApi = Awaited<ReturnType<typeof startMarketApi>>

/** Target of a file descriptor, if it still exists. */
function toTarget(path: string): string {
  try {
    return readlinkSync(path)
  } catch {
    return ''
  }
}

/** Each request uses a new connection, so that none stays open. */
const agent = new Agent({ keepAlive: false })

/** Sends a request, reads the response to its end and returns its status. */
export async function request(url: string): Promise<number> {
  const response = await new Promise<IncomingMessage>((resolve, reject) =>
    get(url, { agent }, resolve).once('error', reject),
  )
  for await (const _ of response);
  return Number(response.statusCode)
}

/** Sends a request and never reads the response. The test ignores how the connection ends. */
export function begin(url: string, onResponse: (response: IncomingMessage) => void): ClientRequest {
  return get(url, { agent }, (response) => {
    response.on('error', () => {})
    onResponse(response)
  }).on('error', () => {})
}

/** Requests one new day after the other until `isOver`; returns the count of each status and the times in milliseconds. */
export async function requestDays(api: MarketApi, isOver: () => boolean) {
  const statuses = new Map<number, number>()
  const times: number[] = []
  while (!isOver()) {
    const startedAt = performance.now()
    const status = await request(api.nextDay())
    times.push(performance.now() - startedAt)
    statuses.set(status, (statuses.get(status) ?? 0) + 1)
  }
  return { statuses, times }
}
