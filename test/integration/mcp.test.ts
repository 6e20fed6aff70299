import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { shorten } from '../../api/mcp/table.ts'
import { createApiDatabase, createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { createTestConfig } from '../support/database.ts'
import { storeEveryDataset } from '../support/every-dataset.ts'
import { type Assistant, connect, connectTo, toRows } from '../support/mcp.ts'

const NOW = Date.parse('2024-03-10T12:02:00Z')
const PROGRAM = fileURLToPath(new URL('../../api/mcp/main.ts', import.meta.url))

/** An upper bound: the densest text, JSON of numbers, has one token per two characters (o200k). */
const toTokens = (characters: number) => characters / 2

const config = createTestConfig()
let database: Awaited<ReturnType<typeof createApiDatabase>>
let api: TestApi
let overHttp: Assistant
let overStdio: Assistant

beforeAll(async () => {
  database = await createApiDatabase(config)
  await storeEveryDataset(database.writer, database.registry, NOW)
  api = await startApi({ config, ...database, changeFeed: createHandFeed(), now: () => NOW })
  overHttp = await connectTo(api.url)
  const args = ['--import', 'tsx', PROGRAM, '--url', api.url]
  overStdio = await connect(new StdioClientTransport({ command: process.execPath, args }))
}, 120_000)
afterAll(async () => {
  await overHttp?.close()
  await overStdio?.close()
  await api?.close()
  await database?.drop()
})

describe('MCP tools', () => {
  it('are seven and read-only, with descriptions of at most 3,400 tokens', async () => {
    const list = await overHttp.client.listTools()
    expect(list.tools.map(({ name }) => name)).toEqual([
      'search',
      'describe',
      'query',
      'series',
      'profile',
      'status',
      'trace',
    ])
    expect(list.tools.every(({ annotations }) => annotations?.readOnlyHint === true)).toBe(true)
    expect(toTokens(JSON.stringify(list).length)).toBeLessThanOrEqual(3_400)
    expect((await overStdio.client.listTools()).tools).toEqual(list.tools)
  })

  const CALLS: readonly [string, Record<string, unknown>][] = [
    ['search', { q: 'a', limit: 30 }],
    ['describe', {}],
    ['query', { topic: 'tokens', limit: 500 }],
    ['query', { topic: 'daos', limit: 500 }],
    ['query', { topic: 'daos/treasury', limit: 500 }],
    ['query', { topic: 'tokens/holders', limit: 500 }],
    ['query', { topic: 'tokens/historic-dex-trades', of: ['Uniswap'], limit: 500 }],
    [
      'query',
      {
        topic: 'tokens/historic-financial',
        of: ['Uniswap'],
        fields: ['quote.USD.price'],
        where: { start: '2024-03-10', interval: '1h' },
      },
    ],
    [
      'query',
      {
        topic: 'tokens/historic-ohlc',
        of: ['Uniswap'],
        fields: ['timestamp'],
        where: { start: '2024-03-10', interval: '1h' },
      },
    ],
    [
      'query',
      {
        topic: 'tokens/historic-dex-ohlcv',
        of: ['Uniswap'],
        fields: ['trades'],
        where: { start: '2024-03-10', interval: '1h' },
      },
    ],
    ['query', { topic: 'daos/governance/summary', of: ['Uniswap', 'Avee'], fields: ['votes.count'] }],
    [
      'series',
      { topic: 'tokens/historic-financial', of: 'Uniswap', start: '2024-03-10', end: '2024-03-10T12:00Z', points: 400 },
    ],
    ['profile', { kind: 'dao', of: 'Uniswap' }],
    ['profile', { kind: 'token', of: 'Uniswap' }],
    ['status', {}],
    ['status', { dataset: 'prices' }],
    ['trace', { dataset: 'market-cap' }],
  ]
  it.each(CALLS)('%s %j returns a bounded result with its source, equal over both transports', async (tool, input) => {
    const [http, stdio] = await Promise.all([overHttp.publish(tool, input), overStdio.publish(tool, input)])
    expect(http.isError, http.text).toBe(false)
    expect(toTokens(http.length)).toBeLessThanOrEqual(6_000)
    const [source] = [http.data.source].flat()
    // The test's API has another port than its settings.
    const opened = await fetch(new URL(new URL(String(source)).pathname + new URL(String(source)).search, api.url))
    expect(opened.status).toBe(200)
    const strip = (data: object) => JSON.parse(JSON.stringify(data).replaceAll(api.url, config.api.publicUrl))
    const { asOf: _, ...first } = strip(http.data)
    const { asOf: __, ...second } = strip(stdio.data)
    expect(second).toEqual(first)
  })

  it('trace the newest value of a token, by name, like the API', async () => {
    const [token] = await overHttp.rows('query', { topic: 'tokens/holders', fields: ['_id', 'name'], limit: 1 })
    const { data, text, isError } = await overHttp.publish('trace', { dataset: 'holders', of: token?.name })
    expect(isError, text).toBe(false)
    const response = await fetch(`${api.url}/data/provenance?dataset=holders&id=${token?._id}`)
    const { observedAt, entity, request } = (await response.json()) as Record<string, unknown>
    expect(data).toMatchObject({ observedAt, entity, request, asOf: observedAt, dataset: 'holders' })
  })

  it('describe every topic within the size limit', async () => {
    const { data } = await overHttp.publish('describe')
    const topics = (data.topics as { topic: string }[]).map(({ topic }) => topic)
    expect(topics.length).toBeGreaterThan(30)
    for (const topic of topics) {
      const answer = await overHttp.publish('describe', { topic })
      expect(answer.isError, answer.text).toBe(false)
      expect(toTokens(answer.length), topic).toBeLessThanOrEqual(6_000)
      const members = answer.data.members as { meaning: string }[]
      expect(members.length, topic).toBeGreaterThan(0)
      expect(
        members.filter(({ meaning }) => meaning === ''),
        topic,
      ).toEqual([])
    }
  })

  it('page through a list without losing or repeating a record', async () => {
    const ids: unknown[] = []
    let cursor: string | undefined
    do {
      const { data } = await overHttp.publish('query', { topic: 'tokens', limit: 5, ...(cursor && { cursor }) })
      ids.push(...toRows(data).map(({ _id }) => _id))
      cursor = data.next as string | undefined
      expect('showing' in data).toBe(cursor !== undefined)
    } while (cursor !== undefined)
    const all = (await (await fetch(`${api.url}/data/tokens?limit=500`)).json()) as { _id: string }[]
    expect(all.length).toBeGreaterThan(10)
    expect(ids).toEqual(all.map(({ _id }) => _id))
  })

  it('return the number of unknown values and of rows not shown', async () => {
    const { data } = await overHttp.publish('query', {
      topic: 'tokens',
      sort: 'name',
      fields: ['name', 'financialData.marketCap'],
      limit: 7,
    })
    const unknown = toRows(data).filter((row) => row['financialData.marketCap'] === null).length
    expect(unknown).toBeGreaterThan(0)
    expect(data.unknown).toEqual({ 'financialData.marketCap': unknown })
    expect(data.showing).toMatch(/^7 of 12; repeat with cursor = next$/)
  })

  it.each([
    ['tokens/holders', 'holdersData.topHolders', ['share', 'amountUsd']],
    ['daos/treasury', 'treasuryData.tokens', ['valueUsd', 'token']],
    ['index/compositions', 'elements', ['symbol']],
  ])('return list members of %s by the described paths', async (topic, list, names) => {
    const { data: described } = await overHttp.publish('describe', { topic, member: `${list}[]` })
    const fields = names.map((name) => `${list}[].${name}`)
    expect((described.members as { member: string }[]).map(({ member }) => member)).toEqual(
      expect.arrayContaining(fields),
    )
    const { data, text, isError } = await overHttp.publish('query', { topic, fields })
    expect(isError, text).toBe(false)
    const source = String(data.source).replace(config.api.publicUrl, api.url)
    const records = (await (await fetch(source)).json()) as object[]
    const lists = records.map(
      (record) => list.split('.').reduce<unknown>((value, name) => Object(value)[name], record) as object[],
    )
    expect(Math.max(...lists.map(({ length }) => length))).toBeGreaterThan(1)
    expect(data.rows).toEqual(
      lists.map((items) =>
        names.map((name) =>
          shorten(
            items.map((item) => Object(item)[name]),
            10,
          ),
        ),
      ),
    )
    const nulls = names.map((name) => lists.flat().filter((item) => Object(item)[name] === null).length)
    const unknown = fields.flatMap((field, at) => (nulls[at] ? [[field, nulls[at]]] : []))
    expect(data.unknown).toEqual(Object.fromEntries(unknown))
  })

  it('return results per entity, and a reason for each failed one', async () => {
    const { daos } = database.registry
    const voting = daos.find(({ live, snapshotSpace }) => live && snapshotSpace !== null)?.id ?? ''
    const silent = daos.find(({ live, snapshotSpace }) => live && snapshotSpace === null)?.id ?? ''
    const input = { topic: 'daos/governance', of: [silent, voting, 'Avee'], fields: ['votes.count'] }
    const { data, text } = await overHttp.publish('query', input)
    expect(toRows(data)).toEqual([{ of: voting, 'votes.count': expect.any(Number) }])
    expect(data.failed).toEqual([
      { of: silent, why: expect.stringMatching(/^no_data: /) },
      { of: 'Avee', why: expect.stringMatching(/^not_found: .*Near: .*Aave \([0-9a-f]{24}\)/) },
    ])
    expect(text).toMatch(/Nothing of 2 of the 3 asked for/)
  })

  it('report names without a record, but not those of the next page', async () => {
    const [first, second] = await overHttp.rows('query', { topic: 'tokens', fields: ['name', 'symbol'], limit: 2 })
    const bySymbol = String(first?.symbol).toLowerCase()
    const input = { topic: 'tokens', of: [bySymbol, 'Nonexistent', second?.name], fields: ['symbol'], limit: 1 }
    const { data } = await overHttp.publish('query', input)
    expect(data.failed).toEqual([{ of: 'Nonexistent', why: expect.stringMatching(/^not_found: No record fits\./) }])
    const filter = [`symbol=${first?.symbol}`]
    const filtered = await overHttp.publish('query', { ...input, of: [bySymbol, second?.name], filter })
    expect(toRows(filtered.data)).toEqual([{ symbol: first?.symbol }])
    expect(filtered.data.failed).toMatchObject([{ of: second?.name }])
  })

  it.each(['x', '治理'])('find no metrics without a usable word: %s', async (q) => {
    expect((await overHttp.publish('search', { q })).data.metrics).toEqual([])
  })

  it('return a series with its gaps and summary', async () => {
    const [of] = (await overHttp.rows('query', { topic: 'tokens/holders', limit: 1 })).map(({ _id }) => String(_id))
    const path = `/data/tokens/holders/historic?id=${of}&start=2024-03-01&end=2024-03-10&order=asc`
    const points = (await (await fetch(api.url + path)).json()) as { recordedAt: string; totalHolders: number }[]
    const input = { topic: 'tokens/holders/historic', of, start: '2024-03-01', end: '2024-03-10' }
    const { data } = await overHttp.publish('series', { ...input, members: ['totalHolders'] })
    const days = points.map(({ recordedAt, totalHolders }) => [recordedAt.slice(0, 10), totalHolders])
    expect(days.length).toBeGreaterThan(3)
    expect(data.rows).toEqual(days)
    expect(data).toMatchObject({ interval: '1d', missing: 9 - days.length })
    const lastMissing = new Date(Date.parse(String(days[0]?.[0])) - 86_400_000).toISOString().slice(0, 10)
    expect(data.gaps).toEqual([{ from: '2024-03-01', to: lastMissing, buckets: 9 - days.length }])
    const [first, last] = [points[0]?.totalHolders ?? 0, points.at(-1)?.totalHolders ?? 0]
    expect(data.statistics).toMatchObject({
      totalHolders: { first: { value: first }, last: { value: last }, change: last - first },
    })
    const { csv } = data.whole as { csv: string }
    const table = await (await fetch(csv.replace(config.api.publicUrl, api.url))).text()
    expect(table.trim().split('\n')).toHaveLength(days.length + 1)
  })

  it('return the same data as text and as structured content, with a summary', async () => {
    for (const assistant of [overHttp, overStdio]) {
      const { data, text } = await assistant.publish('query', { topic: 'tokens', fields: ['name'], limit: 2 })
      expect(JSON.parse(text)).toEqual(data)
      expect(data.summary).toMatch(/^2 of 12 records of tokens/)
    }
  })

  it('link the complete data as files if the result is partial', async () => {
    const { files } = await overHttp.publish('query', { topic: 'tokens', fields: ['name'], limit: 2 })
    expect(files).toHaveLength(2)
    for (const file of files) expect((await fetch(file.replace(config.api.publicUrl, api.url))).status).toBe(200)
    const { files: ofStdio } = await overStdio.publish('query', { topic: 'tokens', fields: ['name'], limit: 2 })
    expect(ofStdio).toHaveLength(2)
    expect((await overHttp.publish('query', { topic: 'tokens', fields: ['name'], limit: 500 })).files).toEqual([])
  })

  it('find categories and their entities', async () => {
    const { data } = await overHttp.publish('search', { q: 'lending' })
    expect(data.categories).toEqual([{ id: expect.any(String), name: 'Lending', slug: 'lending' }])
    expect((data.entities as { matched: string }[]).map(({ matched }) => matched)).toContain('category')
  })

  it('accept arguments in the forms that models send', async () => {
    const usual = { topic: 'tokens', of: ['Uniswap', 'Aave'], fields: ['name'], limit: 3 }
    const texts = { topic: 'tokens', of: '["Uniswap","Aave"]', fields: '["name"]', limit: '3', where: '', sort: null }
    const [first, second] = await Promise.all([overHttp.publish('query', usual), overHttp.publish('query', texts)])
    expect(second.isError, second.text).toBe(false)
    expect(second.data).toEqual(first.data)
  })

  it('return text only for clients that show both forms', async () => {
    const asText = await connect(
      new StdioClientTransport({
        command: process.execPath,
        args: ['--import', 'tsx', PROGRAM, '--url', api.url, '--text'],
      }),
    )
    const input = { topic: 'tokens', fields: ['name'], limit: 2 }
    const [answer, usual] = await Promise.all([asText.publish('query', input), overStdio.publish('query', input)])
    await asText.close()
    expect(answer.data).toEqual({})
    expect(JSON.parse(answer.text)).toEqual(usual.data)
  })
})

describe('invalid MCP tool call', () => {
  it.each([
    ['trace', { dataset: 'price' }, /There is no dataset "price". Did you mean "prices"\?/],
    [
      'trace',
      { dataset: 'holders', of: 'UNI', at: '2019-01-01' },
      /^not_found: No value of holders is stored at 2019-01-01T00:00:00\.000Z: [^.]+\.$/,
    ],
    ['query', { topic: 'daos/tresury' }, /Did you mean "daos\/treasury"\?/],
    ['query', { topic: 'daos/governance', of: ['Uniswop'] }, /not_found: .*Near: .*Uniswap \([0-9a-f]{24}\)/],
    [
      'query',
      { topic: 'daos/governance', of: ['Uniswop', 'Avee'] },
      /^Uniswop: not_found: .*Near: .*Uniswap.* Avee: not_found: .*Near: .*Aave/,
    ],
    [
      'query',
      { topic: 'daos/treasury/historic', of: ['Uniswap', 'Aave'], where: { start: 'soon' } },
      /^invalid_parameter: (?!.*invalid_parameter)/,
    ],
    ['query', { topic: 'daos/governance/voters' }, /name it in of/],
    ['query', { topic: 'tokens', filter: ['financialData.marketcap>1'] }, /financialData\.marketCap/],
    ['query', { topic: 'tokens', fields: ['price'] }, /describe it to see its members/],
    ['query', { topic: 'tokens', where: { colour: 'red' } }, /takes no "colour" in where/],
    ['query', { topic: 'index/weights', cursor: 'abc' }, /takes no cursor/],
    ['series', { topic: 'tokens', of: 'Uniswap' }, /not a series: use the tool query/],
    ['series', { topic: 'daos/treasury/historic', of: 'Uniswap', interval: '5m' }, /has no 5m, but 1d, 7d/],
    ['series', { topic: 'daos/treasury/historic', of: 'Uniswap', last: 'long' }, /24h, 30d/],
    [
      'series',
      { topic: 'daos/treasury/historic', of: 'Uniswap', start: '2020-01-01', end: '2021-01-01' },
      /there is history since 2022-02-01/,
    ],
    ['profile', { kind: 'dao', of: 'Uniswap', sections: ['gold'] }, /Sections: dao, token/],
    ['status', { dataset: 'price' }, /Datasets: prices/],
  ] as const)('%s %j returns an error with the next step', async (tool, input, said) => {
    const [http, stdio] = await Promise.all([overHttp.publish(tool, input), overStdio.publish(tool, input)])
    expect(http).toMatchObject({ isError: true, text: expect.stringMatching(said) })
    expect(stdio.text).toBe(http.text)
  })

  const answerAt = async (url: string) => {
    const args = ['--import', 'tsx', PROGRAM, '--url', url]
    const alone = await connect(new StdioClientTransport({ command: process.execPath, args }))
    const answer = await alone.publish('status')
    await alone.close()
    return answer
  }

  it('reports if no server responds at the URL', async () => {
    expect(await answerAt('http://127.0.0.1:9')).toMatchObject({
      isError: true,
      text: expect.stringMatching(/^unavailable: Nobody answers at http:\/\/127\.0\.0\.1:9/),
    })
  })

  it('reports if another service responds at the URL', async () => {
    const another = createServer((_request, response) =>
      response.setHeader('content-type', 'text/html').end('<p>Hello'),
    )
    await new Promise<void>((resolve) => another.listen(0, '127.0.0.1', resolve))
    const url = `http://127.0.0.1:${(another.address() as AddressInfo).port}`
    expect(await answerAt(url)).toMatchObject({
      isError: true,
      text: `unavailable: What answers at ${url} is no API of dao-data.`,
    })
    another.close()
  })
})
