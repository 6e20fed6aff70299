import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Credentials } from '../../shared/config/own-stores.ts'
import { findFreePort } from '../../shared/free-port.ts'
import { type OwnClickHouse, startOwnClickHouse, TEST_DATABASES } from '../support/own-clickhouse.ts'

const OWN = `${TEST_DATABASES}users`

let server: OwnClickHouse
let tcpPort: number

beforeAll(async () => {
  tcpPort = await findFreePort()
  server = await startOwnClickHouse({ tcpPort })
  for (const database of [OWN, 'foreign']) {
    await request(server.users.writer, `CREATE DATABASE ${database}`)
    await request(server.users.writer, `CREATE TABLE ${database}.t (a UInt32) ENGINE = MergeTree ORDER BY a`)
  }
})
afterAll(() => server.stop())

/** The response text, or `error` and ClickHouse's code, of a statement by a user, with settings in the URL. */
async function request(
  user: Credentials | undefined,
  sql: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<string> {
  const headers = user === undefined ? {} : { 'X-ClickHouse-User': user.name, 'X-ClickHouse-Key': user.password }
  const response = await fetch(`${server.url}/?${new URLSearchParams(settings)}`, {
    method: 'POST',
    body: sql,
    headers,
  })
  const text = (await response.text()).trim()
  return response.ok ? text : `error ${response.headers.get('x-clickhouse-exception-code')}`
}

const asReader = (sql: string, settings?: Readonly<Record<string, string>>) =>
  request(server.users.reader, sql, settings)

const READONLY = 'error 164'
const TOO_BIG_AST = 'error 168'
const QUOTA_EXCEEDED = 'error 201'
const CONSTRAINT = 'error 452'
const ACCESS_DENIED = 'error 497'
const AUTHENTICATION_FAILED = 'error 516'

describe('reader account', () => {
  it('reads its databases, with settings that only format the response', async () => {
    const settings = { output_format_json_quote_64bit_integers: '0', max_threads: '1', max_execution_time: '5' }
    const sql = `SELECT count() AS n, {p:String} AS p FROM ${OWN}.t FORMAT JSONEachRow`
    expect(await asReader(sql, { ...settings, param_p: "x'" })).toBe(`{"n":0,"p":"x'"}`)
  })

  it.each([
    'SELECT * FROM foreign.t',
    'SELECT * FROM system.users',
    'SELECT * FROM system.processes',
    'SHOW PROCESSLIST',
    'SHOW CREATE USER writer',
    `CREATE TABLE ${OWN}.x (a UInt8) ENGINE = Memory`,
    'CREATE TEMPORARY TABLE x (a UInt8)',
    `INSERT INTO ${OWN}.t VALUES (1)`,
    `INSERT INTO ${OWN}.t SELECT 1`,
    `ALTER TABLE ${OWN}.t DELETE WHERE 1`,
    `TRUNCATE TABLE ${OWN}.t`,
    `DROP TABLE ${OWN}.t`,
    `BACKUP DATABASE ${OWN} TO File('/tmp/backup')`,
    'CREATE USER another',
    'GRANT ALL ON *.* TO reader',
    'KILL QUERY WHERE 1',
    'SYSTEM DROP MARK CACHE',
    'SYSTEM STOP LISTEN HTTP',
    "SELECT * FROM file('/etc/passwd', LineAsString)",
    "SELECT * FROM `f\\x69le`('/etc/passwd', LineAsString)",
    "SELECT * FROM // why\n file('/etc/passwd', LineAsString)",
    "SELECT * FROM /* why /* and why */ */ file('/etc/passwd', LineAsString)",
    "DESCRIBE TABLE file('/etc/passwd', LineAsString)",
    "INSERT INTO FUNCTION file('/tmp/written', LineAsString, 'x String') SELECT 'a'",
    "SELECT * FROM url('http://127.0.0.1:1/', LineAsString)",
    "SELECT * FROM s3('http://127.0.0.1:1/bucket/key', CSV)",
    "SELECT * FROM executable('id', LineAsString, 'x String')",
    "SELECT * FROM remote('127.0.0.1', system.one)",
    "SELECT * FROM mysql('127.0.0.1:1', 'a', 'b', 'c', 'd')",
  ])('has no right to %s', async (sql) => {
    expect(await asReader(sql)).toBe(ACCESS_DENIED)
  })

  it.each([
    ['max_execution_time', '61', CONSTRAINT],
    ['max_execution_time', '0', CONSTRAINT],
    ['max_result_rows', '50000001', CONSTRAINT],
    ['max_result_rows', '0', CONSTRAINT],
    ['max_memory_usage', '1073741825', CONSTRAINT],
    ['max_memory_usage', '0', CONSTRAINT],
    ['max_memory_usage_for_user', '0', CONSTRAINT],
    ['max_concurrent_queries_for_user', '0', CONSTRAINT],
    ['profile', "'writer'", CONSTRAINT],
    ['readonly', '0', READONLY],
  ])('cannot set %s to %s, in any part of the request', async (name, value, error) => {
    const inUrl = await asReader('SELECT 1', { [name]: value.replaceAll("'", '') })
    expect([
      await asReader(`SET ${name} = ${value}`),
      await asReader(`SELECT 1 SETTINGS ${name} = ${value}`),
      inUrl,
    ]).toEqual([error, error, error])
  })

  it('is limited in rows, time and memory', async () => {
    expect(await asReader('SELECT number FROM numbers(50000001) FORMAT Null')).toBe('error 396')
    const tooLong = 'SELECT sum(sipHash64(number)) FROM numbers(100000000000)'
    expect(await asReader(tooLong, { max_execution_time: '1' })).toBe('error 159')
    expect(await asReader('SELECT groupArray(number) FROM numbers(1000000)', { max_memory_usage: '1000000' })).toBe(
      'error 241',
    )
  })
})

describe('password of the embedded server', () => {
  // The engine's local mode permits every user with SELECT to read any file through the scalar function file().
  const sql = "SELECT length(file('/proc/self/comm')) > 0"

  it("is the only protection of this machine's files from clients", async () => {
    const { writer, reader } = server.users
    expect([await request(writer, sql), await request(reader, sql)]).toEqual(['1', '1'])
  })

  it.each(['writer', 'reader'] as const)('is required for the %s', async (role) => {
    const { name } = server.users[role]
    for (const password of ['', 'wrong', server.users[role === 'writer' ? 'reader' : 'writer'].password]) {
      expect(await request({ name, password }, sql)).toBe(AUTHENTICATION_FAILED)
      expect(await request(undefined, sql, { user: name, password })).toBe(AUTHENTICATION_FAILED)
    }
  })
})

describe("the engine's default user without a password", () => {
  it.each([
    ['SELECT 1', TOO_BIG_AST],
    ["SELECT file('/etc/hostname')", TOO_BIG_AST],
    ["INSERT INTO FUNCTION file('written', LineAsString, 'x String') SELECT 'a'", TOO_BIG_AST],
    ['SHOW PROCESSLIST', TOO_BIG_AST],
    ['USE system', TOO_BIG_AST],
    ['SYSTEM STOP LISTEN HTTP', QUOTA_EXCEEDED],
    ['SET max_ast_elements = 100', QUOTA_EXCEEDED],
  ])('cannot run %s', async (sql, error) => {
    for (const user of [undefined, { name: 'default', password: '' }]) {
      expect(await request(user, sql)).toBe(error)
      expect(await request(user, sql, { max_ast_elements: '100' })).toBe(CONSTRAINT)
      expect(await request(user, sql, { profile: 'writer' })).toBe(error)
    }
    expect(existsSync(join(server.dataDir, 'user_files/written'))).toBe(false)
    expect(await asReader('SELECT 1')).toBe('1')
  })

  it('cannot run statements over the native protocol', async () => {
    const { writer } = server.users
    const remote = (user: string) =>
      request(writer, `SELECT * FROM remote('127.0.0.1:${tcpPort}', system.one, ${user})`)
    expect(await remote(`'${writer.name}', '${writer.password}'`)).toBe('0')
    expect(await remote("'default', ''")).toBe(TOO_BIG_AST)
  })
})
