import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { makePythonClient } from '../../tools/build-python-client.ts'
import { findPython, runPython } from '../support/python.ts'
import { startStubService, type Turn } from '../support/stub-service.ts'

const python = findPython('import sys; assert sys.version_info >= (3, 9)')
if (python === undefined) console.log('connection of the Python client: skipped, there is no Python 3.9 or newer')

const json =
  (body: unknown, headers: Readonly<Record<string, string>> = {}): Turn =>
  (response) =>
    response.writeHead(200, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))

const problem =
  (status: number, more: object = {}, headers: Readonly<Record<string, string>> = {}): Turn =>
  (response) =>
    response
      .writeHead(status, { 'content-type': 'application/problem+json', 'x-request-id': 'r-1', ...headers })
      .end(JSON.stringify({ status, code: 'rate_limited', title: 'Too many', detail: 'Later.', ...more }))

let folder: string
beforeAll(() => {
  makePythonClient()
  folder = mkdtempSync(join(tmpdir(), 'dao-data-python-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

/** Runs a program against a service with these turns: what it prints, and the requests. */
async function run(code: string, turns: readonly Turn[], options = '') {
  const service = await startStubService(...turns)
  try {
    const program = `import json, time
from datetime import date, datetime, timedelta, timezone
from dao_data_client import DaoData, NoAnswerError, ProblemError, UnexpectedAnswerError
api = DaoData(${JSON.stringify(service.url)}${options})
def show(value): print(json.dumps(value, default=str))
${code}`
    const output = await runPython(String(python), program)
    const printed = output
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as unknown)
    return { printed, requests: service.requests }
  } finally {
    await service.close()
  }
}

const GET = 'api.registry.list_chains().get()'

describe.skipIf(python === undefined)('connection of the Python client', () => {
  it('retries transient errors after Retry-After, and broken connections', async () => {
    const { printed, requests } = await run(`start = time.monotonic()\nshow(${GET})\nshow(time.monotonic() - start)`, [
      problem(503, {}, { 'retry-after': '1' }),
      (response) => response.destroy(),
      json([{ _id: 'a' }]),
    ])
    expect(printed[0]).toEqual([{ _id: 'a' }])
    expect(printed[1]).toBeGreaterThanOrEqual(1)
    expect(requests.length).toBe(3)
  })

  it('raises a problem with its members, at once if the wait is too long or the error is permanent', async () => {
    const code = `
for _ in range(2):
    try:
        ${GET}
    except ProblemError as error:
        show([error.status, error.code, error.detail, error.param, error.allowed, error.request_id, error.retry_after])`
    const { printed, requests } = await run(code, [
      problem(429, {}, { 'retry-after': '3600' }),
      problem(400, { code: 'invalid_parameter', param: 'limit', allowed: ['1'] }),
    ])
    expect(printed).toEqual([
      [429, 'rate_limited', 'Later.', null, [], 'r-1', 3600],
      [400, 'invalid_parameter', 'Later.', 'limit', ['1'], 'r-1', null],
    ])
    expect(requests.length).toBe(2)
  })

  it('raises NoAnswerError for a silent service, an incomplete body and damaged JSON', async () => {
    const code = `
for _ in range(3):
    try:
        show(${GET})
    except NoAnswerError as error:
        show(str(error))`
    const { printed } = await run(
      code,
      [
        () => undefined,
        (response) => {
          response.writeHead(200, { 'content-type': 'application/json', 'content-length': '100' })
          response.write('[', () => response.destroy())
        },
        (response) => response.writeHead(200, { 'content-type': 'application/json' }).end('[{'),
      ],
      ', timeout=0.5, retries=0',
    )
    expect(printed.length).toBe(3)
    expect(printed[0]).toContain('timed out')
    expect(printed[1]).toContain('No complete answer')
    expect(printed[2]).toContain('JSON')
  })

  it('reports another server without a retry', async () => {
    const login: Turn = (response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<html>Log in')
    const code = `
for read in (lambda: ${GET}, lambda: api.registry.list_chains().download("csv")):
    try:
        read()
    except UnexpectedAnswerError as error:
        show([error.status, error.media_type, str(error)])`
    const { printed, requests } = await run(code, [login])
    expect(printed).toEqual([
      [200, 'text/html', expect.stringContaining('Log in')],
      [200, 'text/html', expect.stringContaining('Log in')],
    ])
    expect(requests.length).toBe(2)
  })

  it('sends times in UTC, lists repeated, and refuses a time without a zone', async () => {
    const code = `
tokyo = timezone(timedelta(hours=9))
query = api.tokens.get_token_price_history
show(query(name=["a b", "c"], start=datetime(2026, 1, 1, tzinfo=tokyo), end=date(2026, 2, 1), limit=5).url())
try:
    query(name="a", start=datetime(2026, 1, 1)).url()
except ValueError as error:
    show(str(error))
show(api.tokens.list_tokens(id=[]).url())
show(api.charts.get_mark(mark_of="a/b").url())`
    const { printed } = await run(code, [json([])])
    const [first, second, third, fourth] = printed.map(String)
    expect(new URL(String(first)).searchParams.toString()).toBe(
      'name=a+b&name=c&start=2025-12-31T15%3A00%3A00.000Z&end=2026-02-01&limit=5',
    )
    expect(second).toContain('no time zone')
    expect(new URL(String(third)).search).toBe('?id=')
    expect(new URL(String(fourth)).pathname).toBe('/marks/a%2Fb.svg')
  })

  it('sends tags of cached answers and tables, also in a later program with the same folder', async () => {
    const answer: Turn = (response, request) => {
      if (request.headers['if-none-match'] === '"t"') return response.writeHead(304, { etag: '"t"' }).end()
      const isTable = request.url?.includes('format=csv')
      const head = {
        'content-type': isTable ? 'text/csv' : 'application/json',
        etag: '"t"',
        'content-encoding': 'gzip',
      }
      return response.writeHead(200, head).end(gzipSync(isTable ? '"a"\n1\n' : '[1]'))
    }
    const code = `
query = api.registry.list_chains()
show([query.get(), query.get()])
with query.download("csv") as file:
    show(file.read().decode())`
    const first = await run(code, [answer], `, cache_folder=${JSON.stringify(folder)}`)
    expect(first.printed).toEqual([[[1], [1]], '"a"\n1\n'])
    expect(first.requests.map(({ headers }) => headers['if-none-match'])).toEqual([undefined, '"t"', undefined])
    const service = await startStubService(answer)
    const later = `
from dao_data_client import DaoData
def read():
    api = DaoData("${service.url}", cache_folder=${JSON.stringify(folder)})
    return [api.registry.list_chains().get(), api.registry.list_chains().download("csv").read().decode()]
print(read() == read())`
    expect((await runPython(String(python), later)).trim()).toBe('True')
    expect(service.requests.map(({ headers }) => headers['if-none-match'])).toEqual([
      undefined,
      undefined,
      '"t"',
      '"t"',
    ])
    await service.close()
  })

  it('keeps the folder of the cache below its size, without the oldest answers', async () => {
    const body = 'x'.repeat(1000)
    const answer: Turn = (response, { url }) =>
      response.writeHead(200, { 'content-type': 'application/json', etag: `"${url}"` }).end(JSON.stringify(body))
    const cache = join(folder, 'small')
    const code = `
import os
for limit in range(1, 9):
    api.tokens.list_tokens(limit=limit).get()
files = [name for name in os.listdir(${JSON.stringify(cache)}) if name.endswith(".body")]
show([len(files), len(os.listdir(${JSON.stringify(cache)}))])`
    const { printed } = await run(code, [answer], `, cache_folder=${JSON.stringify(cache)}, cache_bytes=3500`)
    expect(printed).toEqual([[3, 6]])
  })

  it('sends the key to the service only', async () => {
    const other = await startStubService(json([1]))
    const { printed, requests } = await run(
      `show(${GET})`,
      [(response) => response.writeHead(302, { location: `${other.url}/data/chains` }).end()],
      ', api_key="secret"',
    )
    expect(printed).toEqual([[1]])
    expect(requests[0]?.headers['x-api-key']).toBe('secret')
    expect(other.requests[0]?.headers['x-api-key']).toBeUndefined()
    await other.close()
  })

  it('follows cursors to the last page, and stops at a page that names itself', async () => {
    const page = (cursor: string, rows: readonly number[]): Turn =>
      json(rows, { link: `</data/tokens?cursor=${cursor}&limit=2>; rel="next"` })
    const { printed, requests } = await run('show(list(api.tokens.list_tokens(category="dex")))', [
      page('a', [1, 2]),
      page('b', [3]),
      json([4]),
    ])
    expect(printed).toEqual([[1, 2, 3, 4]])
    expect(requests.map(({ url }) => url)).toEqual([
      '/data/tokens?category=dex&limit=500',
      '/data/tokens?category=dex&limit=500&cursor=a',
      '/data/tokens?category=dex&limit=500&cursor=b',
    ])
    const endless = `
try:
    list(api.tokens.list_tokens())
except NoAnswerError as error:
    show(str(error))`
    expect((await run(endless, [page('a', [1])])).printed[0]).toContain('names itself')
  })

  it('resumes the stream after the last event, and ends it for a rejected request', async () => {
    const events =
      (...lines: readonly string[]): Turn =>
      (response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        response.write(lines.join('\n'), () => response.destroy())
      }
    const change = (id: number) => ['event: change', `id: ${id}-0`, 'data: {"dataset":"prices","entities":2}', '', '']
    const code = `
try:
    for event in api.service.stream_changes(datasets=["prices", "fees"]):
        show([event["type"], event["id"], event.get("entities")])
except ProblemError as error:
    show(error.status)`
    const { printed, requests } = await run(code, [
      events('retry: 10', ': hello', '', ...change(1), ...change(2), 'event: change', 'id: 3-0'),
      problem(503, {}, { 'retry-after': '0' }),
      events('event: reset', 'id: 9-0', 'data: {}', '', ''),
      problem(400),
    ])
    expect(printed).toEqual([['change', '1-0', 2], ['change', '2-0', 2], ['reset', '9-0', null], 400])
    expect(requests.map(({ headers }) => headers['last-event-id'])).toEqual([undefined, '2-0', '2-0', '9-0'])
    expect(requests[0]?.url).toBe('/data/stream?datasets=prices&datasets=fees')
  })
})
