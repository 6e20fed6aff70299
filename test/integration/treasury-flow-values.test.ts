import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { EXACT_QUANTITY, fromFlows, TREASURY_FLOW_VALUES } from '../../shared/datasets/treasury-flows.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { createTestConfig, createTestDatabase, type TestDatabase } from '../support/database.ts'
import { storeQuotes } from '../support/quotes.ts'

const registry = loadRegistry()
const [dao] = registry.daos.filter(({ token }) => token !== null)
if (dao === undefined) throw new Error('no DAO with a token')
const token = registry.tokenById.get(dao.token ?? '')
if (token === undefined) throw new Error('no token')

const wallet = `0x${'a'.repeat(40)}`
const other = `0x${'b'.repeat(40)}`
const hash = (n: number) => `0x${n.toString(16).padStart(64, '0')}`
const USDC = '0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48'

const flow = {
  ...{ dao: dao.key, recorded_at: '2026-03-04T10:00:00.000Z', chain: 'ethereum', block_number: 5, occurrence: 0 },
  ...{ transaction_hash: hash(1), sender: other, recipient: wallet, base_units: '1500000000000000000', decimals: 18 },
  ...{ wallet, counterparty: other, counterparty_label: '', direction: 'in', leg: '', kind: 'income', rule: 'inflow' },
  ...{ symbol: 'X', category: '', swap_group: '', provider: 'node', contract_address: '' },
}

let stores: TestDatabase
beforeAll(async () => {
  stores = await createTestDatabase(createTestConfig())
})
afterAll(() => stores?.drop())

const read = (name: string) =>
  stores.db.rows({
    name: 'flows',
    sql: `SELECT ${TREASURY_FLOW_VALUES[name as 'kind']} AS value, ${EXACT_QUANTITY} AS exact ${fromFlows('= {dao: UInt64}')} ORDER BY f.transaction_hash`,
    params: { dao: dao.key },
    schema: z.object({ value: z.unknown(), exact: z.string().nullable() }),
  })
const values = async (name: string) => (await read(name)).map(({ value }) => value)

describe('values of treasury flows', () => {
  it('prices tokens by their own series and other assets by the holdings of treasuries, by contract', async () => {
    const holding = { address: wallet, kind: 'other', price_source: 'goldrush', chain: 'ethereum' }
    await stores.db.insert({
      table: 'dao_treasuries',
      rows: [
        {
          ...{ dao: dao.key, observed_at: '2026-03-04T00:00:00.000Z', value_usd: 6020, tokens: [], spam_count: null },
          holdings: [
            { ...holding, contract: `0x${'e'.repeat(40)}`, symbol: 'ETH', quantity: 2, value_usd: 6000 },
            { ...holding, contract: USDC, symbol: 'USDC', quantity: 20, value_usd: 19.98 },
          ],
          ...{ spam: [], unread: [], source: 'goldrush' },
        },
      ],
    })
    await storeQuotes(stores.db, [
      { token: token.key, at: Date.parse('2026-03-04T00:10:00Z'), is_latest: false, price: 4 },
    ])
    const rows = [
      flow,
      { ...flow, transaction_hash: hash(2), contract_address: USDC, base_units: '12345678', decimals: 6 },
      { ...flow, transaction_hash: hash(3), contract_address: token.contractAddress, chain: token.chain },
      { ...flow, transaction_hash: hash(4), contract_address: other, symbol: 'USDC' },
      { ...flow, transaction_hash: hash(5), recorded_at: '2026-03-05T00:00:00.000Z' },
      { ...flow, transaction_hash: hash(6), contract_address: other, decimals: null },
    ]
    await stores.db.insert({ table: 'treasury_flows', rows })
    expect(await values('priceUsd')).toEqual([3000, 0.999, 4, null, null, null])
    expect(await values('valueUsd')).toEqual([4500, expect.closeTo(12.3333, 4), 6, null, null, null])
    expect((await read('kind')).map(({ exact }) => exact)).toEqual(['1.5', '12.345678', '1.5', '1.5', '1.5', null])
    expect(await values('proposal')).toEqual([null, null, null, null, null, null])
    for (const name of Object.keys(TREASURY_FLOW_VALUES)) expect(await values(name)).toHaveLength(6)
  })
})
