import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { type ClickHouseClient, ClickHouseLogLevel, createClient, TupleParam } from '@clickhouse/client'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type EmbeddedProcess, startEmbeddedClickHouse } from '../support/embedded-clickhouse.ts'

let embedded: EmbeddedProcess
const clients: ClickHouseClient[] = []

function connect(options: Parameters<typeof createClient>[0] = {}): ClickHouseClient {
  const client = createClient({
    url: embedded.url,
    username: 'writer',
    password: '',
    log: { level: ClickHouseLogLevel.OFF },
    ...options,
  })
  clients.push(client)
  return client
}

async function rows<T>(client: ClickHouseClient, query: string, query_params?: Record<string, unknown>): Promise<T[]> {
  const result = await client.query({ query, format: 'JSONEachRow', ...(query_params ? { query_params } : {}) })
  return result.json<T>()
}

beforeAll(async () => {
  embedded = await startEmbeddedClickHouse()
})
afterAll(async () => {
  await Promise.all(clients.map((client) => client.close()))
  await embedded.stop()
})

describe('queries', () => {
  it('answers both kinds of ping', async () => {
    expect(await connect().ping()).toEqual({ success: true })
    expect(await connect().ping({ select: true })).toEqual({ success: true })
  })

  it('binds parameters of every kind exactly', async () => {
    const hard = 'a\'b\\c\nd\te\rfé😀\\N"`{x:String}'
    const [row] = await rows<Record<string, unknown>>(
      connect(),
      `SELECT {s:String} AS s, {n:Nullable(String)} AS n, {a:Array(Nullable(String))} AS a, {i:Int64} + 1 AS i,
        {f:Float64} AS f, {b:Bool} AS b, {t:Tuple(Int32, String)} AS t, {m:Map(String, UInt8)} AS m,
        toString({d:DateTime64(3)}) AS d, (SELECT count() FROM system.{table:Identifier}) AS one`,
      {
        s: hard,
        n: null,
        a: [hard, null, ''],
        i: -42,
        f: 0.1,
        b: true,
        t: new TupleParam([7, hard]),
        m: { k: 1 },
        d: new Date('2024-05-06T07:08:09.123Z'),
        table: 'one',
      },
    )
    expect(row).toMatchObject({ s: hard, n: null, a: [hard, null, ''], f: 0.1, b: true, t: [7, hard], m: { k: 1 } })
    expect(row).toMatchObject({ i: expect.toSatisfy((i) => Number(i) === -41), d: '2024-05-06 07:08:09.123' })
    expect(Number(row?.one)).toBe(1)
  })

  it('takes long parameters in a multipart body', async () => {
    const values = Array.from({ length: 3_000 }, (_, index) => `it's ${index}`)
    const client = connect()
    const result = await client.query({
      query: 'SELECT length({values:Array(String)}) AS n, {values:Array(String)}[2] AS second',
      query_params: { values },
      format: 'JSONEachRow',
      use_multipart_params: true,
    })
    expect(await result.json()).toEqual([{ n: expect.toSatisfy((n) => Number(n) === 3_000), second: "it's 1" }])
  })

  it('gives every format whole, compressed or not', async () => {
    const query = 'SELECT number AS n FROM numbers(200000)'
    for (const client of [connect(), connect({ compression: { response: true } })]) {
      const json = await (await client.query({ query, format: 'JSON' })).json<{ n: string }>()
      expect(json.data).toHaveLength(200_000)
      const csv = await (await client.query({ query, format: 'CSVWithNames' })).text()
      expect(csv.match(/"n"/g)).toHaveLength(1)
      const array = await client.query({
        query,
        format: 'JSONEachRow',
        clickhouse_settings: { output_format_json_array_of_rows: 1 },
      })
      expect(JSON.parse(await array.text())).toHaveLength(200_000)
    }
  })

  it('honours FORMAT in the text, comments and a closing semicolon', async () => {
    const { stream } = await connect().exec({ query: '-- why\nSELECT 1 AS a, 2 AS b FORMAT CSVWithNames; -- end\n' })
    expect(await new Response(Readable.toWeb(stream as Readable) as ReadableStream).text()).toBe('"a","b"\n1,2\n')
  })

  it('holds the whole result back with wait_end_of_query', async () => {
    const query = 'SELECT throwIf(number = 2900000) FROM numbers(3000000)'
    const failed = connect().query({ query, format: 'CSV', clickhouse_settings: { wait_end_of_query: 1 } })
    await expect(failed).rejects.toMatchObject({ code: '395' })
  })
})

describe('errors', () => {
  it.each([
    ['SELECT * FROM nowhere', '60', 'UNKNOWN_TABLE'],
    ['SELEC 1', '62', 'SYNTAX_ERROR'],
    ['SELECT 1; SELECT 2', '62', 'SYNTAX_ERROR'],
    ['SELECT {x:String}', '456', 'UNKNOWN_QUERY_PARAMETER'],
  ])('%s gives code %s', async (query, code, type) => {
    await expect(connect().query({ query })).rejects.toMatchObject({ code, type })
  })

  it('uses the status of a ClickHouse server', async () => {
    const statusOf = async (search: string, init: RequestInit = {}) => {
      const response = await fetch(`${embedded.url}/?${search}`, {
        headers: { 'X-ClickHouse-User': 'writer' },
        ...init,
      })
      return [response.status, response.headers.get('x-clickhouse-exception-code')]
    }
    expect(await statusOf('query=SELECT+1')).toEqual([200, null])
    expect(await statusOf('query=SELECT+nope')).toEqual([404, '47'])
    expect(await statusOf('query=SELEC')).toEqual([400, '62'])
    expect(await statusOf('query=SELECT+1&nonsense=1')).toEqual([404, '115'])
    expect(await statusOf('query=SELECT+1&session_id=s')).toEqual([501, '48'])
    expect(await statusOf('query=SELECT+1&user=writer&password=wrong', { headers: {} })).toEqual([403, '516'])
    expect(await statusOf('query=CREATE+TABLE+g(a+UInt8)ENGINE=Memory')).toEqual([500, '164'])
  })

  it('breaks a response off when the statement fails half-way', async () => {
    const query = 'SELECT throwIf(number = 3000000) AS x FROM numbers(10000000)'
    const whole = await connect().query({ query, format: 'JSONEachRow' })
    await expect(whole.text()).rejects.toThrow()
    const parsed = await connect().query({ query, format: 'JSONEachRow' })
    await expect(once(parsed.stream().resume(), 'end')).rejects.toMatchObject({ code: '395' })
    const compressed = await connect({ compression: { response: true } }).query({ query, format: 'JSONEachRow' })
    await expect(compressed.text()).rejects.toThrow()
  })
})

describe('one folder, one process', () => {
  it('names the folder to the second process', async () => {
    const file = join(import.meta.dirname, '../../clickhouse/embedded.ts')
    const second = spawn(process.execPath, ['--import', 'tsx', file, '--serve'], {
      env: { ...process.env, DATA_DIR: embedded.dataDir, CLICKHOUSE_EMBEDDED_PORT: '0' },
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    let errors = ''
    second.stderr.setEncoding('utf8').on('data', (text) => {
      errors += text
    })
    const [code] = await once(second, 'close')
    expect(code).toBe(1)
    expect(errors).toContain(`The ClickHouse data directory ${join(embedded.dataDir, 'clickhouse')} cannot be opened`)
  })
})
