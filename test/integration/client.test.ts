import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { routes } from '../../api/routes.ts'
import type { DaoData } from '../../clients/typescript/src/index.ts'
import { groupBy } from '../../shared/group-by.ts'
import { type ClientPackage, loadClientPackage } from '../support/client-package.ts'
import { type Demo, startDemo } from '../support/demo.ts'
import { documentedRequests } from '../support/documented.ts'
import { startStubService } from '../support/stub-service.ts'

let demo: Demo
let built: ClientPackage
let api: DaoData
/** Requests that the client sent, with their responses. */
const sentRequests: { url: string; status: number; tag: string | null }[] = []

beforeAll(async () => {
  demo = await startDemo()
  built = await loadClientPackage()
  const counting: typeof fetch = async (input, init) => {
    const response = await fetch(input, init)
    const tag = new Headers(init?.headers).get('if-none-match')
    sentRequests.push({ url: String(input), status: response.status, tag })
    return response
  }
  api = built.client.createDaoData({ baseUrl: demo.url, fetch: counting })
})
afterAll(async () => {
  built?.remove()
  await demo?.close()
})

type Method = ((query: object) => Promise<unknown>) & {
  url(query: object): string
  download(format: string, query: object): Promise<Response>
}

const methodOf = (client: DaoData, { tag, operation }: { tag: string; operation: string }) =>
  Reflect.get(Reflect.get(client, tag.toLowerCase()), operation) as Method

/** The parameters of a request in the form of the client. */
function toQuery(path: string, url: string): { format: string; query: Record<string, string | string[]> } {
  const { pathname, searchParams } = new URL(url, demo.url)
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => String(name))
  const values = new RegExp(`^${path.replaceAll(/\{\w+\}/g, '([^/]+)')}$`).exec(pathname)?.slice(1) ?? []
  const inPath = names.map((name, index) => [name, decodeURIComponent(String(values[index]))] as const)
  const { format = 'json', ...query } = Object.fromEntries([...inPath, ...searchParams])
  return { format, query }
}

/** The parameters of a URL, in any order. */
function toParts(url: string) {
  const { origin, pathname, searchParams } = new URL(url)
  return { at: origin + pathname, parameters: [...searchParams].sort(([a], [b]) => a.localeCompare(b)) }
}

/** The documented URLs of each route, the simplest first. */
const ofRoutes = [...groupBy(documentedRequests, ({ route }) => route)].map(([route, requests]) => ({
  route,
  urls: requests.map(({ url }) => url),
}))

describe('HTTP client', () => {
  it('has exactly one method per operation', () => {
    const methods = Object.entries(api).flatMap(([tag, all]) => Object.keys(all).map((name) => `${tag} ${name}`))
    expect(methods.sort()).toEqual(routes.map(({ tag, operation }) => `${tag.toLowerCase()} ${operation}`).sort())
  })

  it.each(ofRoutes)('sends every parameter of $route.path', async ({ route, urls }) => {
    const sent: string[] = []
    const recording: typeof fetch = async (input) => {
      sent.push(String(input))
      return new Response('[]', { headers: { 'content-type': 'application/json' } })
    }
    const method = methodOf(built.client.createDaoData({ baseUrl: demo.url, fetch: recording }), route)
    for (const url of urls) {
      const { format, query } = toQuery(route.path, url)
      await (format === 'json' ? method(query) : method.download(format, query))
    }
    expect(sent.map(toParts)).toEqual(urls.map((url) => toParts(demo.url + url)))
  })

  it.each(ofRoutes)('returns the same response of $route.path as fetch', async ({ route, urls }) => {
    const [url = '', file] = [urls[0], urls.find((one) => one.includes('format='))]
    const method = methodOf(api, route)
    const another = await fetch(demo.url + url)
    if (another.status === 404 && route.mayHaveNoData) {
      const { code } = (await another.json()) as { code: string }
      await expect(method(toQuery(route.path, url).query)).rejects.toMatchObject({ status: 404, code })
      return
    }
    expect(another.status).toBe(200)
    const answer = await method(toQuery(route.path, url).query)
    if (route.volatile) route.response.parse(answer)
    else {
      const isJson = another.headers.get('content-type')?.includes('json')
      expect(answer).toEqual(isJson ? await another.json() : await another.text())
    }
    if (file === undefined) return
    const { format, query } = toQuery(route.path, file)
    const [mine, listed] = [await method.download(format, query), await fetch(demo.url + file)]
    expect(listed.status).toBe(200)
    expect(Buffer.from(await mine.arrayBuffer())).toEqual(Buffer.from(await listed.arrayBuffer()))
  })

  it.each([
    ['tokens', 'listTokens', {}, 7],
    ['daos', 'listDaos', { sort: '-name' }, 11],
    ['daos', 'listDaoVotes', { name: 'Uniswap' }, 40],
    ['tokens', 'getTokenPriceHistory', { name: 'Uniswap', interval: '1h', start: '2026-05-03' }, 13],
    ['tokens', 'getTokenDexTrades', { name: 'Uniswap' }, 9],
    ['daos', 'getDaoTreasuryHistory', { name: 'Uniswap', order: 'asc' }, 6],
  ] as const)('%s %s returns the complete list page by page', async (tag, name, query, limit) => {
    const method = Reflect.get(api[tag], name)
    const recordsOf = (page: unknown) => (Array.isArray(page) ? page : Reflect.get(Object(page), 'data')) as unknown[]
    const full = recordsOf(await method({ ...query, limit: 500 }))
    const pages: unknown[][] = []
    for await (const page of method.pages({ ...query, limit })) {
      pages.push(recordsOf(page))
      if (pages.length * limit >= full.length) break
    }
    expect(pages.length).toBeGreaterThan(1)
    expect(pages.slice(0, -1).every((page) => page.length === limit)).toBe(true)
    const records: unknown[] = []
    for await (const record of method.records({ ...query, limit })) {
      if (records.length === full.length) break
      records.push(record)
    }
    expect(pages.flat().slice(0, full.length)).toEqual(full)
    expect(records).toEqual(full)
  })

  it('requests no page beyond the records that are read', async () => {
    sentRequests.length = 0
    let count = 0
    for await (const _ of api.tokens.listTokens.records({ limit: 5 })) if (++count === 7) break
    expect(sentRequests.length).toBe(2)
  })

  it('throws if a page names itself as the next', async () => {
    const service = await startStubService((response) => {
      const headers = { 'content-type': 'application/json', link: '<?limit=1&cursor=same>; rel="next"' }
      response.writeHead(200, headers).end('[{"name":"Uniswap"}]')
    })
    const { createDaoData, ConnectionError } = built.client
    const names: string[] = []
    const reading = async () => {
      const records = createDaoData({ baseUrl: service.url }).tokens.listTokens.records({ limit: 1 })
      for await (const { name } of records) names.push(name)
    }
    await expect(reading()).rejects.toBeInstanceOf(ConnectionError)
    expect([names.length, service.requests.length]).toEqual([2, 2])
    await service.close()
  })

  it('revalidates with the ETag, and returns a copy of unchanged data', async () => {
    sentRequests.length = 0
    const query = { limit: 3, sort: 'name' }
    const first = await api.tokens.listTokens.answer(query)
    const data = structuredClone(first.data)
    first.data.splice(0)
    const second = await api.tokens.listTokens.answer(query)
    expect(sentRequests.map(({ status }) => status)).toEqual([200, 304])
    expect(sentRequests[1]?.tag).toBe(first.facts.tag)
    expect(second.data).toEqual(data)
    expect({ ...second.facts, requestId: '' }).toEqual({ ...first.facts, requestId: '' })
    expect(second.facts.total).toBeGreaterThan(3)
    expect(second.facts.asOf?.toISOString()).toMatch(/^2026-05-06/)
  })

  it("returns the facts of a series' headers", async () => {
    const query = { name: 'Uniswap', interval: '1h', start: '2026-05-01', limit: 20 } as const
    const { data, facts } = await api.tokens.getTokenPriceHistory.answer(query)
    expect(facts).toMatchObject({ interval: '1h', points: data.data.length, isStale: false })
    expect(facts.missing).toBeTypeOf('number')
    expect(facts.next).toBeTypeOf('string')
  })

  it.each(['csv', 'ndjson', 'parquet', 'arrow'] as const)(
    'downloads %s as the bytes that the service sends',
    async (format) => {
      const query = { name: ['Uniswap', 'Aave'], interval: '1h', start: '2026-05-01' } as const
      const { body, headers } = await api.tokens.getTokenPriceHistory.download(format, query)
      const parts: Uint8Array[] = []
      for await (const part of body) parts.push(part)
      const another = await fetch(
        `${api.tokens.getTokenPriceHistory.url({ ...query, name: 'Uniswap' })}&name=Aave&format=${format}`,
      )
      expect(Buffer.concat(parts)).toEqual(Buffer.from(await another.arrayBuffer()))
      expect(headers.get('content-disposition')).toContain(`.${format}`)
    },
  )

  it('throws the problem of a rejected request', async () => {
    const { ProblemError } = built.client
    const refused = await api.tokens.getTokenProfile({ name: 'a' }).catch((error: unknown) => error)
    expect(refused).toBeInstanceOf(ProblemError)
    expect(refused).toMatchObject({ name: 'ProblemError', status: 409, code: 'ambiguous_name' })
    const { problem, message, requestId } = refused as InstanceType<typeof ProblemError>
    expect(problem?.candidates?.length).toBeGreaterThan(1)
    expect([message, requestId]).toEqual([problem?.detail, problem?.requestId])
    const wrong = api.tokens.listTokens.download('csv', { limit: 501 })
    await expect(wrong).rejects.toMatchObject({ code: 'invalid_parameter', problem: { param: 'limit' } })
  })
})
