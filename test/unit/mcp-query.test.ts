import { expect, it } from 'vitest'
import { Refused, type Reply, type Source } from '../../api/mcp/source.ts'
import { queryTool } from '../../api/mcp/tools/query.ts'
import { toOpenApi } from '../../api/openapi/document.ts'
import { routes } from '../../api/routes.ts'

const document = toOpenApi(routes)
const toReply = (records: readonly object[]): Reply => ({
  text: records.map((record) => `${JSON.stringify(record)}\n`).join(''),
  headers: new Headers({ 'content-type': 'application/x-ndjson' }),
})
const UNISWAP = { _id: 'a'.repeat(24), name: 'Uniswap', financialData: { price: 7 } }

const prices = { topic: 'tokens', of: ['Uniswap', 'Aave'], fields: ['financialData.price'] }

/** What the tool tells of what `answer` tells, and how often it asked. */
async function query(answer: (parameters: URLSearchParams) => readonly object[] | Refused, asks: object = prices) {
  let asked = 0
  const source: Source = {
    ...{ base: 'http://here', now: () => 0, document: async () => document },
    ask: async (path) => {
      asked += 1
      const answered = answer(new URL(path, 'http://here').searchParams)
      if (answered instanceof Refused) throw answered
      return toReply(answered)
    },
  }
  const input = queryTool.input.parse(asks)
  const { data } = await queryTool.call({ source, input, signal: new AbortController().signal })
  return { data, asked }
}

it('nobody is asked for again whose record came', async () => {
  const aave = { _id: 'b'.repeat(24), name: 'Aave', financialData: { price: 90 } }
  const { data, asked } = await query(() => [UNISWAP, aave])
  expect(asked).toBe(1)
  expect(data).not.toHaveProperty('failed')
  expect(data.columns).toEqual(['financialData.price'])
})

it('only who has no record is told as one whom nothing fits, not who could not be asked for', async () => {
  const busy = new Refused({ code: 'unavailable', detail: 'Too much at once.' })
  const isFirst = (parameters: URLSearchParams) => parameters.getAll('name').join().includes('Uniswap')
  const busied = await query((parameters) => (isFirst(parameters) ? [UNISWAP] : busy))
  expect(busied.data).not.toHaveProperty('failed')
  expect(busied.data.untold).toEqual(['Aave'])
  const { data } = await query((parameters) => (isFirst(parameters) ? [UNISWAP] : []))
  expect(data.failed).toMatchObject([{ of: 'Aave', why: expect.stringContaining('No record fits') }])
})

it('what goes by an id alone is asked for without one', async () => {
  const changes = await query(() => [{ dataset: 'prices' }], { topic: 'changes' })
  expect(changes.data.columns).toEqual(['dataset'])
  await expect(query(() => [], { topic: 'changes', of: ['Uniswap'] })).rejects.toThrow('goes by ids')
  await expect(query(() => [], { topic: 'daos/governance/voters' })).rejects.toThrow('is about one token or DAO')
})
