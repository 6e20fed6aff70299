import { type ClickHouseClient, ClickHouseLogLevel, createClient } from '@clickhouse/client'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type EmbeddedProcess, startEmbeddedClickHouse } from '../support/embedded-clickhouse.ts'

let embedded: EmbeddedProcess
let writer: ClickHouseClient
let reader: ClickHouseClient

beforeAll(async () => {
  embedded = await startEmbeddedClickHouse()
  const common = { url: embedded.url, password: '', log: { level: ClickHouseLogLevel.OFF } }
  writer = createClient({ ...common, username: 'writer' })
  reader = createClient({ ...common, username: 'reader' })
})
afterAll(async () => {
  await Promise.all([writer.close(), reader.close()])
  await embedded.stop()
})

/** More requests than there are connections, so that each connection would be met again. */
const MANY = 12

async function settingsSeen(): Promise<unknown[]> {
  const query = `SELECT getSetting('max_block_size') AS block, getSetting('readonly') AS readonly,
    getSetting('insert_deduplication_token') AS token, currentDatabase() AS db`
  const results = Array.from({ length: MANY }, async () =>
    (await writer.query({ query, format: 'JSONEachRow' })).json(),
  )
  return (await Promise.all(results)).flat()
}

describe('nothing of a request reaches the next', () => {
  it('neither settings, nor parameters, nor database, nor read-only mode, nor after errors', async () => {
    const before = await settingsSeen()
    await writer.command({ query: 'CREATE DATABASE IF NOT EXISTS other' })
    const noise = Array.from({ length: MANY }, async (_, index) => {
      const params = { database: 'other', max_block_size: '1234', param_leak: 'x', insert_deduplication_token: 'x' }
      const search = new URLSearchParams({ ...params, query: index % 2 ? 'SELECT nope' : 'SELECT {leak:String}' })
      await (await fetch(`${embedded.url}/?${search}`, { headers: { 'X-ClickHouse-User': 'writer' } })).text()
      await writer.command({ query: 'SET max_block_size = 4321' })
      await reader.query({ query: 'SELECT 1' }).then((result) => result.text())
    })
    await Promise.all(noise)
    expect(await settingsSeen()).toEqual(before)
    const leaked = Array.from({ length: MANY }, () => writer.query({ query: 'SELECT {leak:String}' }))
    for (const result of await Promise.allSettled(leaked)) {
      expect(result).toMatchObject({ status: 'rejected', reason: { code: '456' } })
    }
  })

  it('a deduplication token drops its own replay and no other insert', async () => {
    await writer.command({
      query: `CREATE TABLE dedup (a UInt32) ENGINE = MergeTree ORDER BY a
        SETTINGS non_replicated_deduplication_window = 100`,
    })
    const insert = (a: number, token?: string) =>
      writer.insert({
        table: 'dedup',
        values: [{ a }],
        format: 'JSONEachRow',
        clickhouse_settings: { async_insert: 0, ...(token ? { insert_deduplication_token: token } : {}) },
      })
    await insert(1, 'one')
    await insert(1, 'one')
    for (let a = 2; a < 2 + MANY; a += 1) await insert(a)
    const result = await writer.query({ query: 'SELECT count() AS n FROM dedup', format: 'JSONEachRow' })
    expect(Number((await result.json<{ n: string }>())[0]?.n)).toBe(1 + MANY)
  })
})

describe('the reader', () => {
  it('reads, with settings that only shape the answer', async () => {
    const result = await reader.query({
      query: 'SELECT toUInt64(1) AS a, {p:String} AS p',
      query_params: { p: "x'" },
      format: 'JSONEachRow',
      clickhouse_settings: { output_format_json_quote_64bit_integers: 0, max_threads: 1, max_execution_time: 5 },
    })
    expect(await result.json()).toEqual([{ a: 1, p: "x'" }])
  })

  it.each([
    'CREATE TABLE x (a UInt8) ENGINE = Memory',
    'INSERT INTO dedup VALUES (1)',
    'INSERT INTO dedup SELECT 1',
    'ALTER TABLE dedup DELETE WHERE 1',
    'DROP TABLE dedup',
    'TRUNCATE TABLE dedup',
    'SYSTEM DROP MARK CACHE',
    'SET max_execution_time = 0',
    'KILL QUERY WHERE 1',
    'SELECT 1 SETTINGS max_execution_time = 0',
    'SELECT 1 SETTINGS readonly = 0',
    "SELECT file('/etc/passwd')",
    "SELECT * FROM file('/etc/passwd', LineAsString)",
    "DESCRIBE TABLE file('/etc/passwd')",
    "SELECT * FROM url('http://127.0.0.1:1/', LineAsString)",
    "SELECT * FROM s3('http://127.0.0.1:1/bucket/key', CSV)",
    "SELECT * FROM executable('id', LineAsString, 'x String')",
    "SELECT * FROM remote('127.0.0.1', system.one)",
    "SELECT * FROM mysql('127.0.0.1:1', 'a', 'b', 'c', 'd')",
  ])('is refused %s', async (query) => {
    await expect(reader.command({ query })).rejects.toMatchObject({ code: '164', type: 'READONLY' })
  })

  it.each([
    { max_execution_time: 100_000 },
    { max_result_rows: '0' },
    { max_memory_usage: '99999999999999' },
    { readonly: '0' },
    { profile: 'default' },
    { result_overflow_mode: 'break' as const },
  ])('is refused the setting %j', async (clickhouse_settings) => {
    await expect(reader.query({ query: 'SELECT 1', clickhouse_settings })).rejects.toMatchObject({ code: '164' })
  })

  it('is stopped at its limits', async () => {
    const tooMany = reader.query({
      query: 'SELECT number FROM numbers(100)',
      clickhouse_settings: { max_result_rows: '10' },
    })
    await expect(tooMany).rejects.toMatchObject({ code: '396' })
    const tooLong = reader.query({
      query: 'SELECT sum(sipHash64(number)) FROM numbers(100000000000)',
      clickhouse_settings: { max_execution_time: 1 },
    })
    await expect(tooLong).rejects.toMatchObject({ code: '159' })
  })
})
