import { describe, expect, it } from 'vitest'
import { Refused } from '../../api/mcp/source.ts'
import { queryTool } from '../../api/mcp/tools/query.ts'
import { callTool, createSource, toReply } from '../support/mcp-tools.ts'

const UNISWAP = { _id: 'a'.repeat(24), name: 'Uniswap', symbol: 'UNI', financialData: { price: 7 } }
const AAVE = { _id: 'b'.repeat(24), name: 'Aave', symbol: 'AAVE', financialData: { price: 90 } }
const AAVEGOTCHI = { _id: 'c'.repeat(24), name: 'Aavegotchi', symbol: 'GHST', financialData: { price: 1 } }
const ALL = [UNISWAP, AAVE, AAVEGOTCHI]

const isResolving = ({ searchParams }: URL) => searchParams.get('fields') === '_id,name,symbol'

/** The list route: matches ids, parts of names and whole symbols. */
function listTokens({ searchParams }: URL) {
  const [ids, names] = [searchParams.getAll('id'), searchParams.getAll('name').map((name) => name.toLowerCase())]
  const isRequested = ({ _id, name, symbol }: (typeof ALL)[number]) =>
    ids.includes(_id) || names.some((one) => name.toLowerCase().includes(one) || symbol.toLowerCase() === one)
  return ALL.filter(isRequested)
}

const prices = { topic: 'tokens', of: ['Uniswap', 'Aave'], fields: ['financialData.price'] }

describe('query', () => {
  it('does not request entities again that have a record', async () => {
    const { source, requestCount: requests } = createSource(listTokens)
    const { data } = await callTool(queryTool, source, prices)
    expect(requests.filter((url) => !isResolving(url))).toHaveLength(1)
    expect(data).not.toHaveProperty('failed')
    expect(data.columns).toEqual(['financialData.price'])
  })

  it.each([[['AAVE']], [['aave']], [['GHST', 'Aave']]])(
    'returns only entities with the whole name or symbol: %j',
    async (of) => {
      const { source } = createSource(listTokens)
      const { data } = await callTool(queryTool, source, { topic: 'tokens', of, fields: ['name'] })
      const expected = ALL.filter(({ name, symbol }) =>
        of.some((one) => [name, symbol].some((text) => text.toLowerCase() === one.toLowerCase())),
      )
      expect(data.rows).toEqual(expected.map(({ name }) => [name]))
    },
  )

  it('returns every entity with a part of a name if no entity has it as the whole name', async () => {
    const { source } = createSource(listTokens)
    const { data } = await callTool(queryTool, source, { topic: 'tokens', of: ['aav'], fields: ['name'] })
    expect(data.rows).toEqual([['Aave'], ['Aavegotchi']])
  })

  it.each([
    ['formerName', 'exact', [['Uniswap']]],
    ['formerName', 'substring', [['Aave']]],
    ['predecessor', 'exact', [['Aave']]],
  ])(
    'selects by the search result %s that matches as %s only if it is exactly a former name',
    async (matched, kind, rows) => {
      const found = [
        { type: 'dao', _id: 'd'.repeat(24), matched: 'formerName', match: { kind: 'exact', text: 'aav' } },
        { type: 'token', _id: UNISWAP._id, matched, match: { kind, text: 'aav' } },
      ]
      const { source } = createSource((url) =>
        url.pathname === '/data/search' ? found : listTokens(url).filter(({ name }) => name !== 'Aavegotchi'),
      )
      const { data } = await callTool(queryTool, source, { topic: 'tokens', of: ['aav'], fields: ['name'] })
      expect(data.rows).toEqual(rows)
    },
  )

  it('lists an entity as failed if no record fits, and as untold if the request failed', async () => {
    const busy = new Refused({ code: 'unavailable', detail: 'Too much at once.' })
    const answerWith = (rest: readonly object[] | Refused) =>
      createSource((url) => {
        if (url.pathname === '/data/search') return []
        if (isResolving(url)) return ALL
        return url.searchParams.getAll('id').includes(UNISWAP._id) ? [UNISWAP] : rest
      }).source
    const busied = await callTool(queryTool, answerWith(busy), prices)
    expect(busied.data).not.toHaveProperty('failed')
    expect(busied.data.untold).toEqual(['Aave'])
    const { data, summary } = await callTool(queryTool, answerWith([]), prices)
    expect(data.failed).toMatchObject([{ of: 'Aave', why: expect.stringContaining('No record fits') }])
    expect(summary).toContain('Nothing of 1 of the 2 asked for')
  })

  it('searches similar names only for the first unknown names', async () => {
    const { source, requestCount: requests } = createSource(() => [])
    const of = Array.from({ length: 20 }, (_, index) => `unknown ${index}`)
    const { data } = await callTool(queryTool, source, { topic: 'tokens', of })
    expect(data.failed).toHaveLength(20)
    expect(
      new Set(
        requests.flatMap(({ pathname, searchParams }) =>
          pathname === '/data/search' && !searchParams.has('include') ? [searchParams.get('q')] : [],
        ),
      ),
    ).toEqual(new Set(['unknown 0', 'unknown 1', 'unknown 2', 'unkn', 'unk']))
  })

  it('limits the records of each entity to the size of the response', async () => {
    const { source, requestCount: requests } = createSource((url) =>
      url.pathname === '/data/daos' ? [] : [{ proposal: 'x' }],
    )
    const of = Array.from({ length: 20 }, (_, index) => index.toString(16).padStart(24, '0'))
    await callTool(queryTool, source, { topic: 'daos/governance/proposals', of, limit: 500 })
    const limits = requests.map(({ searchParams }) => Number(searchParams.get('limit')))
    expect(limits.reduce((sum, limit) => sum + limit, 0)).toBeLessThan(6_000)
  })

  it('takes proposals of all DAOs by their end, without an entity', async () => {
    const { source, requestCount: requests } = createSource(() => [{ title: 'x' }])
    const where = { endsBefore: '2026-12-01', state: 'active', exact: 'true', include: 'body' }
    await callTool(queryTool, source, { topic: 'daos/governance/proposals', where, sort: 'endsAt' })
    const [url] = requests
    expect(Object.fromEntries(url?.searchParams ?? [])).toMatchObject({ ...where, sort: 'endsAt' })
    expect(url?.searchParams.has('id')).toBe(false)
    const named = callTool(queryTool, source, { topic: 'daos/governance/proposals', where: { state: 'active' } })
    await expect(named).rejects.toThrow('name it in of, or use where.endsBefore')
  })

  it('requests topics without entities, and rejects entities for them', async () => {
    const { source } = createSource(() => [{ dataset: 'prices' }])
    expect((await callTool(queryTool, source, { topic: 'changes' })).data.columns).toEqual(['dataset'])
    await expect(callTool(queryTool, source, { topic: 'changes', of: ['Uniswap'] })).rejects.toThrow('goes by ids')
    const voters = callTool(queryTool, source, { topic: 'daos/governance/voters' })
    await expect(voters).rejects.toThrow('is about one token or DAO')
  })

  it.each([
    ['price', 'financialData.price'],
    ['marketcap', 'financialData.marketCap'],
  ])('suggests for the field %s the member %s, and names the others', async (field, suggestion) => {
    const { source } = createSource(listTokens)
    const called = callTool(queryTool, source, { topic: 'tokens', fields: [field] })
    await expect(called).rejects.toThrow(`has no ${field}. Did you mean "${suggestion}"?`)
    await expect(called).rejects.toThrow(/It has .*financialData\.percentChange24h.*: describe it to see its members/)
  })

  it('links CSV and Parquet files of the whole result if the response is cut', async () => {
    const rest = { link: '</data/tokens?cursor=abc>; rel="next"', 'x-total-count': '200' }
    const { source } = createSource(() => toReply(ALL, rest))
    const { files = [], data } = await callTool(queryTool, source, { topic: 'tokens', sort: 'name', cursor: 'aa' })
    expect(data.showing).toMatch(/^3 of 200/)
    expect(files.map(({ mimeType }) => mimeType)).toEqual(['text/csv', 'application/vnd.apache.parquet'])
    expect(files.map(({ uri }) => uri)).toEqual(
      ['csv', 'parquet'].map((format) => `http://here/data/tokens?sort=name&limit=500&format=${format}`),
    )
    const full = await callTool(queryTool, createSource(() => ALL).source, { topic: 'tokens' })
    expect(full.files).toEqual([])
  })
})
