import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { createUpstream, type Upstream } from '../upstream/server.ts'

const registry = loadRegistry()
const NOW = Date.UTC(2026, 10, 20, 12, 3, 20)
const clock = { now: NOW }
const UNI = '0x1f9840a85d5af5bf1d1762f925bdaddc4201f984'
const address = z.string().regex(/^0x[0-9a-f]{40}$/)
const decimal = z.string().regex(/^\d+\.\d+$/)
const digits = z.string().regex(/^\d+$/)

const Owners = z.strictObject({
  cursor: z.string().nullable(),
  page: z.number(),
  page_size: z.number(),
  total_supply: digits,
  result: z.array(
    z.strictObject({
      owner_address: address,
      owner_address_label: z.string().nullable(),
      entity: z.null(),
      entity_logo: z.null(),
      balance: digits,
      balance_formatted: decimal,
      is_contract: z.boolean(),
      usd_value: z.string().nullable(),
      percentage_relative_to_total_supply: z.number(),
    }),
  ),
})
const TopHolders = z.strictObject({
  holders: z.array(z.strictObject({ address, balance: z.number(), rawBalance: digits, share: z.number() })),
})

let upstream: Upstream
beforeAll(async () => {
  upstream = await createUpstream({ registry, now: () => clock.now })
})
afterAll(() => upstream.close())

const get = (path: string, key = 'demo') => fetch(upstream.url + path, { headers: { 'x-api-key': key } })
const json = async (path: string) => JSON.parse(await (await get(path)).text())
const owners = async (query = 'limit=100', contract = UNI) =>
  Owners.parse(await json(`/moralis/api/v2.2/erc20/${contract}/owners?chain=eth&order=DESC&${query}`))
const explore = (method: string, contract = UNI) => json(`/ethplorer/${method}/${contract}?apiKey=freekey&limit=100`)

describe('stand-in of Moralis', () => {
  test('pages through owners by cursor, largest first', async () => {
    const full = await owners()
    expect(full.result).toHaveLength(100)
    const first = await owners('limit=60')
    const second = await owners(`limit=60&cursor=${first.cursor}`)
    expect([first.page, second.page]).toEqual([1, 2])
    expect([...first.result, ...second.result].slice(0, 100)).toEqual(full.result)
    const last = await owners(`limit=60&cursor=${second.cursor}`)
    expect(last.cursor).toBeNull()
    const balances = full.result.map(({ balance }) => BigInt(balance))
    expect(balances.every((balance, index) => balance <= (balances[index - 1] ?? balance))).toBe(true)
    expect(new Set(full.result.map(({ owner_address }) => owner_address)).size).toBe(100)
  })

  test('has a summary equal to its owners', async () => {
    const summary = await json(`/moralis/api/v2.2/erc20/${UNI}/holders?chain=eth`)
    const { result } = await owners()
    const sum = result.reduce((total, owner) => total + owner.percentage_relative_to_total_supply, 0)
    expect(summary.holderSupply.top100.supplyPercent).toBeCloseTo(sum, 8)
    expect(summary.totalHolders).toBeGreaterThan(100)
  })

  test('rejects missing keys, and unknown tokens and chains', async () => {
    const path = `/moralis/api/v2.2/erc20/${UNI}/owners`
    expect((await get(path, '')).status).toBe(401)
    expect((await get(`${path}?chain=base`)).status).toBe(404)
    expect((await get(`${path}?chain=solana`)).status).toBe(400)
    expect((await get(`${path}?limit=101`)).status).toBe(400)
  })

  test('has no values of some tokens', async () => {
    const ethereum = registry.tokens.filter(({ chain, live }) => chain === 'ethereum' && live)
    const pages = await Promise.all(ethereum.map((token) => owners('limit=1', token.contractAddress)))
    const valued = pages.filter(({ result }) => result[0]?.usd_value !== null)
    expect(valued.length).toBeGreaterThan(40)
    expect(valued.length).toBeLessThan(ethereum.length)
  })

  test('changes every hour, not within it', async () => {
    const before = await owners()
    clock.now += 50 * 60_000
    expect((await owners()).result.map(({ balance }) => balance)).toEqual(before.result.map(({ balance }) => balance))
    clock.now += 3_600_000
    expect((await owners()).result.map(({ balance }) => balance)).not.toEqual(
      before.result.map(({ balance }) => balance),
    )
    clock.now = NOW
  })
})

describe('stand-in of Ethplorer', () => {
  test('returns the holders of Moralis, with two-decimal shares', async () => {
    const { holders } = TopHolders.parse(await explore('getTopTokenHolders'))
    const { result } = await owners()
    expect(holders.map(({ rawBalance }) => rawBalance)).toEqual(result.map(({ balance }) => balance))
    for (const { balance, rawBalance, share } of holders) {
      expect(balance).toBe(Number(rawBalance))
      expect(share).toBe(Math.round(share * 100) / 100)
    }
  })

  test('returns token numbers as text, and false for a missing price', async () => {
    const ethereum = registry.tokens.filter(({ chain, live }) => chain === 'ethereum' && live)
    const infos = await Promise.all(ethereum.map((token) => explore('getTokenInfo', token.contractAddress)))
    expect(infos[0]).toMatchObject({ decimals: '18', holdersCount: expect.any(Number) })
    expect(infos.filter(({ price }) => price === false).length).toBeGreaterThan(0)
    expect(infos.filter(({ price }) => price !== false && price.rate > 0).length).toBeGreaterThan(40)
  })

  test('uses its own error format, and another host for BNB Chain', async () => {
    expect(await json(`/ethplorer/getTokenInfo/${UNI}`)).toEqual({ error: { code: 1, message: 'Invalid API key' } })
    expect(await explore('getTokenInfo', 'uniswap')).toMatchObject({ error: { code: 104 } })
    const bnb = registry.tokens.find(({ chain, live }) => chain === 'bnb' && live)?.contractAddress
    expect(await explore('getTokenInfo', bnb)).toMatchObject({ error: { code: 150 } })
    expect((await json(`/binplorer/getTokenInfo/${bnb}?apiKey=freekey`)).address).toBe(bnb)
    upstream.faults.set('ethplorer', { kind: 'status', status: 429 }, { times: 1 })
    expect(await explore('getTokenInfo')).toMatchObject({ error: { code: 429 } })
    upstream.faults.set('ethplorer', { kind: 'empty' }, { times: 1 })
    expect(await explore('getTopTokenHolders')).toEqual({ holders: [] })
  })
})
