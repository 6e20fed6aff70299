import { afterEach, describe, expect, it } from 'vitest'
import { createMissing } from '../../clickhouse/migrations.ts'
import { parseConfig } from '../../shared/config/config.ts'
import { whenClickHouseAnswers } from '../../shared/ops/waiting.ts'
import { createDatabase } from '../../shared/store/store.ts'
import { untilDone } from '../../workers/backfill/until-done.ts'
import { silent } from '../support/silent.ts'
import { type StubService, startStubService, type Turn } from '../support/stub-service.ts'

let server: StubService
afterEach(() => server.close())

const refuse =
  (code: number, type: string): Turn =>
  (response) =>
    response.writeHead(500).end(`Code: ${code}. DB::Exception: it refuses. (${type})`)
const TOO_MANY = refuse(202, 'TOO_MANY_SIMULTANEOUS_QUERIES')
const WRONG_PASSWORD = refuse(516, 'AUTHENTICATION_FAILED')
const answer: Turn = (response) => response.end('')

async function open(...turns: Turn[]) {
  server = await startStubService(...turns)
  const config = parseConfig({ CLICKHOUSE_URL: server.url })
  return { db: createDatabase(config.clickhouse, 'write'), url: server.url }
}

describe('whenClickHouseAnswers', () => {
  it('waits while ClickHouse is overloaded, before and during its first statements', async () => {
    const { db, url } = await open(TOO_MANY, answer, TOO_MANY, answer)
    const step = () => db.command({ name: 'step', sql: 'SELECT 1' })
    await whenClickHouseAnswers(db, url, step, { log: silent })
    // A ping precedes each attempt of the step.
    expect(server.requests).toHaveLength(5)
  })

  it('throws for a permanent rejection', async () => {
    const { db, url } = await open(WRONG_PASSWORD)
    const step = () => db.command({ name: 'step', sql: 'SELECT 1' })
    await expect(whenClickHouseAnswers(db, url, step, { log: silent })).rejects.toThrow('code 516')
  })
})

describe('storage error', () => {
  const READ_ONLY = 'Poco::Exception. Code: 1000, e.code() = 30, Read-only file system: /data/store'

  it('contains the text of a response without a code', async () => {
    const { db } = await open((response) => response.writeHead(500).end(READ_ONLY))
    const failing = db.command({ name: 'step', sql: 'SELECT 1' })
    await expect(failing).rejects.toThrow(`ClickHouse, step: ${new URL(server.url).host}: ${READ_ONLY}`)
  })

  it('names the host of an unreachable server', async () => {
    const { db, url } = await open()
    await server.close()
    const failing = db.command({ name: 'step', sql: 'SELECT 1' })
    await expect(failing).rejects.toThrow(`ClickHouse, step: no answer from ${new URL(url).host}`)
  })
})

describe('createMissing with a server of the cluster down', () => {
  const openCluster = async (...turns: Turn[]) => {
    server = await startStubService(...turns)
    const { clickhouse } = parseConfig({ CLICKHOUSE_URL: server.url, CLICKHOUSE_CLUSTER: 'main' })
    return createDatabase(clickhouse, 'write')
  }
  const found =
    (servers: number, found: number): Turn =>
    (response) =>
      response.end(`${JSON.stringify({ servers, found })}\n`)

  it('does not create a database that the other servers have', async () => {
    await createMissing(await openCluster(found(3, 3), WRONG_PASSWORD), 'dao_data')
    expect(server.requests).toHaveLength(1)
  })

  it('reports the unavailable server if another one lacks the database', async () => {
    const db = await openCluster(found(3, 2), refuse(159, 'TIMEOUT_EXCEEDED'))
    await expect(createMissing(db, 'dao_data')).rejects.toMatchObject({
      code: 'storage',
      message: expect.stringContaining('not every server of the cluster main answers'),
    })
  })
})

describe('untilDone', () => {
  it.each([
    ['waits while ClickHouse is overloaded', TOO_MANY, 'waiting for the stores: '],
    ['ends after a permanent rejection', WRONG_PASSWORD, 'code 516'],
  ])('%s', async (_what, turn, observed) => {
    const { db } = await open(turn)
    const stop = new AbortController()
    const said: string[] = []
    const say = (line: string) => {
      said.push(line)
      stop.abort()
    }
    const request = { title: 'prices 5m' } as Parameters<typeof untilDone>[0]['request']
    const isDone = () => db.command({ name: 'look', sql: 'SELECT 1' }).then(() => true)
    await untilDone({ request: request, signal: stop.signal, say }, isDone).catch((error: Error) =>
      said.push(error.message),
    )
    expect(said).toEqual([expect.stringContaining(observed)])
  })
})
