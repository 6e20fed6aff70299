import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { HoldingRow } from '../../shared/datasets/treasury.ts'
import type { Dao } from '../../shared/registry/entities.ts'
import { createApiDatabase, createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { SEED } from '../support/cases.ts'
import { createTestConfig } from '../support/database.ts'
import { getDao, getToken } from '../support/entities.ts'
import { connectTo } from '../support/mcp.ts'
import { toNext } from '../support/next-page.ts'
import { createRandom } from '../support/random.ts'
import { storeFlowRows, storeReadDays, toFlow, toFlowAddress } from '../support/stored-flows.ts'

const DAY = 86_400_000
const NOW = Date.parse('2026-07-01T12:00:00Z')
const TODAY = Date.parse('2026-07-01')
const USDC = '0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48'
const HUGE = '0x00000000000000000000000000000000000000aa'
const [PAYER, ALICE, BOB, ROUTER] = ['payer', 'alice', 'bob', 'router'].map(toFlowAddress) as [
  string,
  string,
  string,
  string,
]
const HUGE_QUANTITY = Number('123456789012.34567890123456789')
const SWAP = 'a'.repeat(24)

const config = createTestConfig()
let database: Awaited<ReturnType<typeof createApiDatabase>>
let api: TestApi
let [ens, aave, compound] = [] as unknown as [Dao, Dao, Dao]
let wallet = ''
let second = ''

/** The holdings of a DAO on a day: USDC at 1 USD, ETH at 3,000 USD, ENS at 10 USD. */
function toTreasury(dao: Dao, day: string, { usdc, eth, ens: own = 0 }: { usdc: number; eth: number; ens?: number }) {
  const chain = { chain: 'ethereum', address: dao.treasuries[0]?.address ?? null, price_source: 'goldrush' }
  const token = getToken(database.registry, 'ENS').contractAddress
  const native = `0x${'e'.repeat(40)}`
  const held: HoldingRow[] = [
    { ...chain, symbol: 'USDC', contract: USDC, quantity: usdc, value_usd: usdc, kind: 'stable' as const },
    { ...chain, symbol: 'ETH', contract: native, quantity: eth, value_usd: eth * 3000, kind: 'other' as const },
    { ...chain, symbol: 'ENS', contract: token, quantity: own, value_usd: own * 10, kind: 'own' as const },
  ].filter(({ quantity }) => quantity > 0)
  const value_usd = held.reduce((sum, one) => sum + (one.value_usd ?? 0), 0)
  return {
    ...{ dao: dao.key, observed_at: `${day}T00:00:00.000Z`, value_usd, holdings: held, spam: [], spam_count: 0 },
    tokens: held.map(({ symbol, quantity, value_usd: value }) => ({ symbol, quantity, value_usd: value })),
    ...{ unread: [], source: 'goldrush' },
  }
}

beforeAll(async () => {
  database = await createApiDatabase(config)
  const { registry, writer } = database
  ;[ens, aave, compound] = [getDao(registry, 'ens'), getDao(registry, 'aave'), getDao(registry, 'compound')]
  const wallets = ens.treasuries.filter(({ chain, role }) => chain === 'ethereum' && role === undefined)
  ;[wallet, second] = wallets.map(({ address }) => address) as [string, string]
  const usdc = { contract_address: USDC, symbol: 'USDC', decimals: 6 }
  const of = { dao: ens.key, wallet }
  const paid = {
    ...of,
    counterparty: ALICE,
    counterparty_label: 'Alice',
    category: 'grants',
    kind: 'spending' as const,
  }
  const swap = {
    ...of,
    at: '2026-06-10T09:00:00.000Z',
    counterparty: ROUTER,
    kind: 'swap' as const,
    direction: 'swap' as const,
  }
  const rows = [
    toFlow(1, {
      ...of,
      ...usdc,
      at: '2026-06-03T10:00:00.000Z',
      counterparty: PAYER,
      kind: 'income',
      base_units: '500000000',
    }),
    toFlow(2, { ...paid, ...usdc, at: '2026-06-03T11:00:00.000Z', base_units: '100000000' }),
    toFlow(3, {
      ...{ ...of, ...usdc, at: '2026-06-03T12:00:00.000Z', counterparty: second, kind: 'internal' },
      ...{ direction: 'internal', base_units: '70000000', rule: 'own' },
    }),
    toFlow(4, { ...paid, ...usdc, at: '2026-06-04T09:00:00.000Z', base_units: '50000000' }),
    toFlow(5, { ...swap, ...usdc, leg: 'out', base_units: '3000000000', swap_group: SWAP }),
    toFlow(5, { ...swap, leg: 'in', base_units: `1${'0'.repeat(18)}`, swap_group: SWAP }),
    toFlow(6, {
      ...of,
      at: '2026-05-10T08:00:00.000Z',
      counterparty: BOB,
      kind: 'spending',
      base_units: `2${'0'.repeat(18)}`,
    }),
    toFlow(7, {
      ...of,
      ...usdc,
      at: '2026-06-04T10:00:00.000Z',
      counterparty: BOB,
      kind: 'spam',
      contract_address: BOB,
      base_units: '9',
    }),
    toFlow(8, {
      ...{ ...of, at: '2026-05-11T08:00:00.000Z', counterparty: PAYER, kind: 'income', contract_address: HUGE },
      ...{ symbol: 'HUGE', base_units: '123456789012345678901234567890' },
    }),
    toFlow(9, {
      dao: aave.key,
      wallet: ALICE,
      at: '2026-06-04T10:00:00.000Z',
      counterparty: BOB,
      kind: 'spending',
      contract_address: HUGE,
      base_units: '1',
    }),
  ]
  await storeFlowRows(writer, rows)
  await writer.insert({
    table: 'dao_treasuries',
    rows: [
      toTreasury(ens, '2026-05-10', { usdc: 1000, eth: 12 }),
      toTreasury(ens, '2026-06-03', { usdc: 1000, eth: 10 }),
      // 70 of the 1,400 are at the second wallet, which is a wallet, too.
      toTreasury(ens, '2026-06-04', { usdc: 1400, eth: 9 }),
      toTreasury(ens, '2026-06-05', { usdc: 1300, eth: 9 }),
      toTreasury(ens, '2026-06-10', { usdc: 5000, eth: 9 }),
      toTreasury(ens, '2026-06-30', { usdc: 20_000, eth: 2, ens: 100 }),
      toTreasury(aave, '2026-06-30', { usdc: 1, eth: 1 }),
      toTreasury(compound, '2026-06-30', { usdc: 1, eth: 1 }),
    ],
  })
  for (const { key } of [ens, aave]) await storeReadDays(writer, key, TODAY - 400 * DAY, TODAY)
  api = await startApi({ config, ...database, changeFeed: createHandFeed(), now: () => NOW })
})
afterAll(async () => {
  await api?.close()
  await database?.drop()
})

const FLOWS = '/data/daos/treasury/flows'
type Item = Record<string, unknown>

const open = async (path: string) => {
  const response = await fetch(`${api.url}${path}`)
  const text = await response.text()
  return { status: response.status, text, headers: response.headers }
}
const get = async (path: string) => {
  const { status, text } = await open(path)
  expect(status, text).toBe(200)
  return JSON.parse(text) as Item[]
}
/** The transactions of the listed transfers, by their numbers. */
const numbers = async (query: string) =>
  (await get(`${FLOWS}?id=${ens.id}${query}`)).map(({ transactionHash }) => Number(transactionHash))

describe(FLOWS, () => {
  it('lists transfers newest first without spam', async () => {
    expect(await numbers('')).toEqual([5, 5, 4, 3, 2, 1, 8, 6])
    const { headers } = await open(`${FLOWS}?id=${ens.id}`)
    expect(headers.get('x-total-count')).toBe('8')
    expect(headers.get('x-data-as-of')).toBe('2026-07-01T00:00:00.000Z')
  })

  it('has all members of a payment', async () => {
    const [payment] = await get(`${FLOWS}?id=${ens.id}&kind=spending&limit=1`)
    expect(payment).toEqual({
      ...{ _id: expect.stringMatching(/^[0-9a-f]{24}$/), dao: ens.id, recordedAt: '2026-06-04T09:00:00.000Z' },
      ...{ chain: database.registry.chainBySlug.get('ethereum')?.id, transactionHash: `0x${'4'.padStart(64, '0')}` },
      ...{ wallet, direction: 'out', leg: null, symbol: 'USDC', contractAddress: USDC, quantity: 50 },
      ...{ priceUsd: 1, valueUsd: 50, counterparty: ALICE, counterpartyLabel: 'Alice', kind: 'spending' },
      ...{ category: 'grants', rule: 'outflow', proposal: null, swapGroup: null },
    })
  })

  it('has both sides of a swap with one group', async () => {
    const sides = await get(`${FLOWS}?id=${ens.id}&direction=swap`)
    expect(sides.map(({ leg, quantity, valueUsd, swapGroup }) => [leg, quantity, valueUsd, swapGroup])).toEqual([
      ['out', 3000, 3000, SWAP],
      ['in', 1, 3000, SWAP],
    ])
  })

  it.each([
    ['&direction=out', [4, 2, 6]],
    ['&kind=income', [1, 8]],
    ['&kind=spam', [7]],
    ['&spam=true', [5, 5, 7, 4, 3, 2, 1, 8, 6]],
    ['&category=grants', [4, 2]],
    ['&chain=ethereum', [5, 5, 4, 3, 2, 1, 8, 6]],
    ['&chain=polygon', []],
    ['&asset=native', [5, 6]],
    [`&asset=${USDC.toUpperCase().replace('0X', '0x')}`, [5, 4, 3, 2, 1]],
    [`&counterparty=${ALICE}`, [4, 2]],
    [`&wallet=${BOB}`, []],
    ['&minUsd=100', [5, 5, 2, 1, 6]],
    ['&minUsd=100.5', [5, 5, 1, 6]],
    ['&minUsd=100&sort=-valueUsd', [6, 5, 5, 1, 2]],
    ['&sort=valueUsd&limit=2', [4, 3]],
    ['&filter=valueUsd=null', [8]],
    ['&start=2026-06-03&end=2026-06-04', [3, 2, 1]],
    ['&end=2026-06-03T10:00:00Z', [8, 6]],
  ])('selects with %s', async (query, expected) => {
    expect(await numbers(query)).toEqual(expected)
  })

  it.each(['', '&sort=-valueUsd', '&minUsd=0'])('pages without skipping or repeating transfers (%s)', async (query) => {
    const all = await get(`${FLOWS}?id=${ens.id}&spam=true${query}`)
    const paged: Item[] = []
    for (let next: string | undefined = `?id=${ens.id}&spam=true&limit=2${query}`; next !== undefined; ) {
      const { text, headers } = await open(`${FLOWS}${next}`)
      paged.push(...(JSON.parse(text) as Item[]))
      next = toNext(headers.get('link'))
    }
    expect(paged).toEqual(all)
  })

  it('has exact quantities on request, also in tables', async () => {
    const query = `${FLOWS}?id=${ens.id}&asset=${HUGE}&exact=true`
    expect((await get(query))[0]).toMatchObject({ quantityExact: '123456789012.34567890123456789', valueUsd: null })
    const [head, row] = (await open(`${query}&format=csv`)).text.split('\n')
    expect([head?.split(',').at(-1), row?.split(',').at(-1)]).toEqual([
      '"quantityExact"',
      '"123456789012.34567890123456789"',
    ])
    for (const format of ['ndjson', 'parquet', 'arrow'])
      expect((await open(`${query}&format=${format}`)).status).toBe(200)
  })

  it('shows the newest version of a transfer whose kind was corrected', async () => {
    const { writer } = database
    const row = toFlow(20, {
      dao: compound.key,
      wallet: ALICE,
      counterparty: BOB,
      kind: 'income',
      at: '2026-06-01T00:00:00.000Z',
      base_units: '5',
    })
    await storeFlowRows(writer, [row])
    await storeFlowRows(writer, [{ ...row, kind: 'investment', rule: 'protocol' }])
    expect(await get(`${FLOWS}?id=${compound.id}`)).toMatchObject([{ kind: 'investment' }])
    expect(await get(`${FLOWS}?id=${compound.id}&kind=income`)).toEqual([])
  })

  it('pages over transfers that were stored several times, with equal times and corrected kinds', async () => {
    const { writer, registry } = database
    const dao = getDao(registry, 'lido')
    const random = createRandom(SEED)
    const kinds = ['spam', 'income', 'spending', 'mint'] as const
    const newest = new Map<number, (typeof kinds)[number]>()
    const toTransfer = (n: number, kind: (typeof kinds)[number]) =>
      // Up to four transfers have the same time.
      toFlow(1000 + n, {
        ...{ dao: dao.key, wallet: ALICE, counterparty: BOB, kind, base_units: '1' },
        // Sender and recipient do not depend on the kind, so a corrected kind is a new version of the same transfer.
        ...{ sender: BOB, recipient: ALICE },
        at: new Date(Date.parse('2026-06-20') + (n >> 2) * 60_000).toISOString(),
      })
    for (let run = 0; run < 4; run += 1) {
      const rows = Array.from({ length: 60 }, (_, n) => n).filter(() => random.chance(0.6))
      const own = rows.map((n) => [n, random.pick(kinds)] as const)
      for (const [n, kind] of own) newest.set(n, kind)
      // Rows that are decoded again have the time of their run: the last inserted one counts.
      const rowsOfRun = own.map(([n, kind]) => toTransfer(n, kind))
      await storeFlowRows(writer, rowsOfRun, { collected_at: '2026-06-30T00:00:00.000Z' })
    }
    for (const [query, isWanted] of [
      ['', (kind: string) => kind !== 'spam'],
      ['&kind=income', (kind: string) => kind === 'income'],
      ['&spam=true&end=2026-06-20T00:10:00Z', () => true],
      [`&counterparty=${BOB}`, (kind: string) => kind !== 'spam'],
    ] as const) {
      const last = query.includes('end=') ? 40 : 60
      const wanted = [...newest].filter(([n, kind]) => n < last && isWanted(kind))
      const expected = wanted.sort(([a], [b]) => b - a).map(([n, kind]) => `${(1000 + n).toString(16)} ${kind}`)
      const paged: string[] = []
      for (let next: string | undefined = `?id=${dao.id}&limit=7${query}`; next !== undefined; ) {
        const { text, headers } = await open(`${FLOWS}${next}`)
        expect(headers.get('x-total-count')).toBe(String(expected.length))
        for (const { transactionHash, kind } of JSON.parse(text) as Item[])
          paged.push(`${String(transactionHash).replace(/^0x0*/, '')} ${kind}`)
        next = toNext(headers.get('link'))
      }
      expect(paged).toEqual(expected)
    }
  })

  it('is empty for a DAO without transfers', async () => {
    expect(await get(`${FLOWS}?name=uniswap`)).toEqual([])
  })

  it.each([
    ['direction=up', 'direction'],
    ['kind=gift', 'kind'],
    ['minUsd=-1', 'minUsd'],
    ['minUsd=many', 'minUsd'],
    ['asset=USDC', 'asset'],
    ['wallet=alice', 'wallet'],
    ['chain=nowhere', 'chain'],
    ['limit=10001', 'limit'],
    ['start=2026-06-03&end=2026-06-03', 'end'],
    ['cursor=abc', 'cursor'],
  ])('refuses %s', async (query, param) => {
    const { status, text } = await open(`${FLOWS}?id=${ens.id}&${query}`)
    expect([status, JSON.parse(text)]).toMatchObject([400, { code: 'invalid_parameter', param }])
    if (param === 'kind') expect(JSON.parse(text).allowed).toContain('spending')
  })
})

const HISTORIC = `${FLOWS}/historic`
const USD = ['inUsd', 'outUsd', 'netUsd'] as const
const toRow = (one: Item, ...members: string[]) =>
  [...members, ...USD, 'transfers', 'transfersWithoutPrice'].map((name) => one[name])
const sums = async (query: string, ...members: string[]) =>
  (await get(`${HISTORIC}?id=${ens.id}&${query}`)).map((one) => toRow(one, ...members))

describe(HISTORIC, () => {
  it('sums months without swaps, internal transfers and spam', async () => {
    expect(await sums('interval=1M&order=asc', 'recordedAt')).toEqual([
      ['2026-05-01T00:00:00.000Z', null, 6000, null, 2, 1],
      ['2026-06-01T00:00:00.000Z', 500, 150, 350, 3, 0],
    ])
  })

  it('sums days and weeks from Monday on, newest first', async () => {
    expect(await sums('start=2026-06-01', 'recordedAt')).toEqual([
      ['2026-06-04T00:00:00.000Z', 0, 50, -50, 1, 0],
      ['2026-06-03T00:00:00.000Z', 500, 100, 400, 2, 0],
    ])
    expect(await sums('start=2026-06-01&interval=7d', 'recordedAt')).toEqual([
      ['2026-06-01T00:00:00.000Z', 500, 150, 350, 3, 0],
    ])
  })

  it('has no value for a bucket in which no transfer has a price', async () => {
    expect(await sums('start=2026-05-11&end=2026-05-12')).toEqual([[null, null, null, 1, 1]])
  })

  it('sums by kind', async () => {
    expect(await sums('interval=1M&by=kind&start=2026-06-01', 'kind')).toEqual([
      ['income', 500, 0, 500, 1, 0],
      ['internal', 70, 70, 0, 1, 0],
      ['spending', 0, 150, -150, 2, 0],
      ['swap', 3000, 3000, 0, 2, 0],
    ])
  })

  it('sums by asset with exact quantities', async () => {
    const all = await get(`${HISTORIC}?id=${ens.id}&interval=1M&by=asset&order=asc`)
    const quantities = ['symbol', 'contractAddress', 'inQuantity', 'outQuantity', 'netQuantity']
    expect(all.map((one) => quantities.map((name) => one[name]))).toEqual([
      ['ETH', null, 0, 2, -2],
      ['HUGE', HUGE, HUGE_QUANTITY, 0, HUGE_QUANTITY],
      ['ETH', null, 1, 0, 1],
      ['USDC', USDC, 500, 3150, -2650],
    ])
  })

  it('shows the change of a balance that no transfer explains', async () => {
    const days = await get(`${HISTORIC}?id=${ens.id}&by=asset&order=asc&start=2026-06-01`)
    expect(
      days.map((one) => [String(one.recordedAt).slice(0, 10), one.symbol, one.transfers, one.unexplainedQuantity]),
    ).toEqual([
      // Nothing moved 1 ETH.
      ['2026-06-03', 'ETH', 0, -1],
      ['2026-06-03', 'USDC', 2, 0],
      ['2026-06-04', 'USDC', 1, -50],
      // The holdings of the next day are not known.
      ['2026-06-10', 'ETH', 1, null],
      ['2026-06-10', 'USDC', 1, null],
    ])
  })

  it('pages through its records', async () => {
    const path = `${HISTORIC}?id=${ens.id}&by=asset&start=2026-06-01`
    const all = await get(path)
    const first = await open(`${path}&limit=2`)
    const rest = await get(`${HISTORIC}${toNext(first.headers.get('link'))?.replace('limit=2', 'limit=100')}`)
    expect([...(JSON.parse(first.text) as Item[]), ...rest]).toEqual(all)
  })

  it.each(['csv', 'ndjson', 'parquet', 'arrow'])('is available as %s', async (format) => {
    expect((await open(`${HISTORIC}?id=${ens.id}&by=asset&format=${format}`)).status).toBe(200)
  })

  it.each([['interval=1h'], ['by=wallet'], ['start=2026-06-02&end=2026-06-01']])('refuses %s', async (query) => {
    expect((await open(`${HISTORIC}?id=${ens.id}&${query}`)).status).toBe(400)
  })
})

describe('an assistant', () => {
  const ask = async (input: object) => {
    const assistant = await connectTo(api.url)
    try {
      return await assistant.rows('query', { of: ['ENS'], ...input })
    } finally {
      await assistant.close()
    }
  }

  it('finds who received most from a DAO in the last 90 days', async () => {
    const where = { start: new Date(TODAY - 90 * DAY).toISOString() }
    const fields = ['counterparty', 'valueUsd']
    const topic = 'daos/treasury/flows/counterparties'
    expect(await ask({ topic, where, fields, limit: 1 })).toEqual([{ counterparty: BOB, valueUsd: 6000 }])
    // Without the payment of May, another address is the first.
    expect(await ask({ topic, where: { start: '2026-06-01' }, fields, limit: 1 })).toEqual([
      { counterparty: ALICE, valueUsd: 150 },
    ])
  })

  it('reads the transfers, their sums and the runway', async () => {
    const paid = { direction: 'out', minUsd: '1000', start: '2026-05-01' }
    const topic = 'daos/treasury/flows'
    const fields = ['counterparty', 'valueUsd']
    expect(await ask({ topic, where: paid, fields })).toEqual([{ counterparty: BOB, valueUsd: 6000 }])
    expect(
      await ask({ topic: `${topic}/historic`, where: { interval: '1M', start: '2026-05-01' }, fields: ['outUsd'] }),
    ).toEqual([{ outUsd: 150 }, { outUsd: 6000 }])
    const [runway] = await ask({ topic: 'daos/treasury/runway', where: { burn: 'gross' }, fields: ['years', 'reason'] })
    const [expected] = (await get(`/data/daos/treasury/runway?id=${ens.id}`)) as unknown as Item[]
    expect(Number(runway?.years)).toBeCloseTo(Number(expected?.years), 6)
    expect(Number(expected?.years)).toBeGreaterThan(0)
  })
})

describe(`${FLOWS}/counterparties`, () => {
  const path = (query: string) => `${FLOWS}/counterparties?id=${ens.id}${query}`

  it('lists the addresses that received most', async () => {
    expect(await get(path(''))).toEqual([
      {
        ...{ counterparty: BOB, counterpartyLabel: null, kind: 'spending', valueUsd: 6000, transfers: 1 },
        ...{ transfersWithoutPrice: 0, firstAt: '2026-05-10T08:00:00.000Z', lastAt: '2026-05-10T08:00:00.000Z' },
      },
      {
        ...{ counterparty: ALICE, counterpartyLabel: 'Alice', kind: 'spending', valueUsd: 150, transfers: 2 },
        ...{ transfersWithoutPrice: 0, firstAt: '2026-06-03T11:00:00.000Z', lastAt: '2026-06-04T09:00:00.000Z' },
      },
    ])
  })

  it('lists the addresses that paid most', async () => {
    expect(await get(path('&direction=in'))).toMatchObject([
      { counterparty: PAYER, valueUsd: 500, transfers: 2, transfersWithoutPrice: 1 },
    ])
    expect(await get(path('&direction=in&end=2026-06-01'))).toMatchObject([
      { valueUsd: null, transfersWithoutPrice: 1 },
    ])
  })

  it('lists swaps and internal transfers only on request', async () => {
    expect(await get(path('&kind=swap'))).toMatchObject([{ counterparty: ROUTER, valueUsd: 3000, transfers: 1 }])
    expect(await get(path('&kind=internal'))).toMatchObject([{ counterparty: second, valueUsd: 70 }])
  })

  it('sorts and filters', async () => {
    expect((await get(path('&sort=-transfers'))).map((one) => one.counterparty)).toEqual([ALICE, BOB])
    expect(await get(path('&filter=valueUsd>=1000'))).toHaveLength(1)
  })
})

const RUNWAY = '/data/daos/treasury/runway'

describe(RUNWAY, () => {
  it('divides the assets without the own token by a year of spending', async () => {
    expect(await get(`${RUNWAY}?id=${ens.id}`)).toEqual([
      {
        ...{ _id: ens.id, name: ens.name, recordedAt: '2026-06-30T00:00:00.000Z' },
        assets: {
          definition: 'withoutOwnToken',
          valueUsd: 26_000,
          stablecoinUsd: 20_000,
          otherUsd: 6000,
          ownTokenUsd: 1000,
        },
        burn: {
          ...{ definition: 'gross', window: 365, from: '2025-07-01T00:00:00.000Z', to: '2026-07-01T00:00:00.000Z' },
          ...{ inUsd: 500, outUsd: 6150, netUsd: -5650, perYearUsd: 6150, transfers: 3, transfersWithoutPrice: 0 },
        },
        ...{ years: 26_000 / 6150, reason: null },
        text: '4.2 years: all assets without ENS ($26.00K on 2026-06-30) divided by gross spending of the 365 days from 2025-07-01 to 2026-06-30 ($6.15K), without swaps, investments and internal transfers.',
      },
    ])
  })

  it.each([
    ['assets=stable', 20_000 / 6150],
    ['assets=all', 27_000 / 6150],
    ['burn=net', 26_000 / 5650],
    ['window=90', 26_000 / ((6150 * 365) / 90)],
  ])('follows %s', async (query, years) => {
    expect((await get(`${RUNWAY}?id=${ens.id}&${query}`))[0]?.years).toBeCloseTo(years, 9)
  })

  it('says why a DAO has no runway', async () => {
    const without = database.registry.daos.find(({ live, treasuries }) => live && treasuries.length === 0) as Dao
    const found = await get(`${RUNWAY}?id=${[aave, compound, without].map(({ id }) => id).join(',')}&sort=reason`)
    expect(found.map(({ name, years, reason }) => [name, years, reason])).toEqual([
      [compound.name, null, 'incomplete_window'],
      [without.name, null, 'no_addresses'],
      [aave.name, null, 'unpriced'],
    ])
    expect((await get(`${RUNWAY}?limit=500`)).map(({ _id }) => _id)).not.toContain(without.id)
  })

  it('answers as of a past moment', async () => {
    const [past] = await get(`${RUNWAY}?id=${ens.id}&asOf=2026-06-05T12:00:00Z`)
    expect(past).toMatchObject({
      ...{
        recordedAt: '2026-06-05T00:00:00.000Z',
        assets: { valueUsd: 28_300 },
        burn: { to: '2026-06-05T00:00:00.000Z' },
      },
      years: 28_300 / 6150,
    })
    expect((await get(`${RUNWAY}?id=${ens.id}&asOf=2026-06-20`))[0]).toMatchObject({
      reason: 'no_assets',
      recordedAt: null,
    })
  })

  it('lists DAOs in pages, exact names first, and as tables', async () => {
    const { text, headers } = await open(`${RUNWAY}?limit=2`)
    expect(JSON.parse(text)).toHaveLength(2)
    const more = await get(`${RUNWAY}${toNext(headers.get('link'))}`)
    expect(more[0]?._id).not.toBe(JSON.parse(text)[1]._id)
    for (const format of ['csv', 'ndjson', 'parquet', 'arrow'])
      expect((await open(`${RUNWAY}?format=${format}`)).status).toBe(200)
  })

  it.each(['assets=most', 'burn=half', 'window=30', 'asOf=2027-01-01'])('refuses %s', async (query) => {
    const { status, text } = await open(`${RUNWAY}?id=${ens.id}&${query}`)
    expect([status, JSON.parse(text)]).toMatchObject([400, { code: 'invalid_parameter', param: query.split('=')[0] }])
  })
})
