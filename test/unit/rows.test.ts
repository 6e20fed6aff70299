import { describe, expect, it } from 'vitest'
import type { Dataset } from '../../shared/datasets/define-dataset.ts'
import { governance } from '../../shared/datasets/governance.ts'
import { protocolTvl } from '../../shared/datasets/protocol-tvl.ts'
import { tokenPriceRow, tokenPrices } from '../../shared/datasets/token-prices.ts'
import { OMITTED } from '../../workers/job/define-job.ts'
import { toUnreadable } from '../../workers/providers/answer.ts'
import { checkRows } from '../../workers/run/runner.ts'
import { silent } from '../support/silent.ts'

const dataset = protocolTvl as unknown as Dataset
const good = { dao: 1, observed_at: '2024-01-01T00:00:00.000Z', tvl_usd: 5 }
const now = Date.parse('2024-01-01T00:05:00Z')
const check = (...rows: object[]) => checkRows(dataset, 'somewhere', rows, { now, log: silent })

describe('checkRows', () => {
  it('keeps valid rows and counts the others', () => {
    const { rows, rejected } = check(good, { ...good, tvl_usd: null }, good, { ...good, extra: 1 }, good)
    expect(rows).toEqual([good, good, good])
    expect(rejected).toBe(2)
  })

  it('returns the error of each entity, and distinguishes missing values', () => {
    const { refused } = check(good, good, good, { ...good, dao: 2, tvl_usd: -1 }, { ...good, dao: 3, tvl_usd: null })
    expect([...refused].map(([key, { code, message }]) => [key, code, message])).toEqual([
      [2, 'provider_malformed', expect.stringMatching(/^somewhere: tvl_usd: Too small/)],
      [3, 'provider_unknown', expect.stringMatching(/^somewhere: tvl_usd: .*received null/)],
    ])
  })

  it('keeps the valid rows of a mostly invalid response', () => {
    const wrong = Array.from({ length: 6 }, (_, at) => ({ ...good, dao: at + 10, tvl_usd: 'much' }))
    const goods = [1, 2, 3].map((dao) => ({ ...good, dao }))
    const { rows, rejected, refused } = check(...wrong, ...goods)
    expect([rows, rejected]).toEqual([goods, 6])
    expect([...refused.keys()]).toEqual(wrong.map(({ dao }) => dao))
  })

  it('counts the omitted parts of a row, and does not store their reasons', () => {
    const messages: [string, number][] = []
    const onRejected = (reason: string, count: number) => void messages.push([reason, count])
    const candidate = { ...good, [OMITTED]: ['holders: no address', 'holders: no address'] }
    const { rows, rejected } = checkRows(dataset, 'somewhere', [candidate], { now, log: silent, onRejected })
    expect([JSON.stringify(rows), rejected]).toEqual([JSON.stringify([good]), 0])
    expect(messages).toEqual([['somewhere: left out: holders: no address', 2]])
  })

  it('explains a value that becomes null, and keeps the rest of its row', () => {
    const price = Object.fromEntries(Object.keys(tokenPriceRow.shape).map((name) => [name, null]))
    const quote = { ...price, token: 1, observed_at: good.observed_at, is_latest: true, price: 1.5, market_cap: 1e40 }
    const prices = tokenPrices as unknown as Dataset
    const { rows, rejected, omitted } = checkRows(prices, 'somewhere', [quote], { now, log: silent })
    expect([rows, rejected]).toEqual([[expect.objectContaining({ price: 1.5, market_cap: null })], 0])
    const reason = expect.stringMatching(/^somewhere: market_cap: Too big/)
    expect([...(omitted ?? [])]).toEqual([[1, { count: 1, reason }]])
  })

  it('returns the reason of an unreadable element, with or without a known entity', () => {
    const { rows, refused, unreadable } = check(
      toUnreadable('coin 3: no id'),
      toUnreadable('no time', { dao: 4 }),
      good,
    )
    expect([rows, unreadable]).toEqual([[good], 'coin 3: no id'])
    expect(refused.get(4)).toMatchObject({ code: 'provider_malformed', message: 'somewhere: no time' })
  })

  it('keeps the rows of other entities if one sends mostly invalid rows', () => {
    const bad = Array.from({ length: 20 }, () => ({ ...good, dao: 2, tvl_usd: -1 }))
    const { rows, rejected, refused } = check(good, { ...good, dao: 3 }, ...bad)
    expect(rows).toHaveLength(2)
    expect(rejected).toBe(20)
    expect([...refused.keys()]).toEqual([2])
  })

  it('keeps the valid rows of an entity with malformed rows, and rejects the entity', () => {
    const bad = Array.from({ length: 95 }, () => ({ ...good, dao: 2, tvl_usd: -1 }))
    const { rows, rejected, refused } = check(good, ...bad, { ...good, dao: 2 })
    expect([rows.length, rejected]).toEqual([2, 95])
    expect([...refused].map(([key, { code }]) => [key, code])).toEqual([[2, 'provider_malformed']])
  })

  it('keeps the valid rows of an entity with mostly null values', () => {
    const none = Array.from({ length: 3 }, () => ({ ...good, dao: 2, tvl_usd: null }))
    expect(check(good, good, good, { ...good, dao: 2 }, ...none).rows).toHaveLength(4)
  })

  it('returns provider_unknown for entities with only null values, and keeps the others', () => {
    const none = [2, 3].map((dao) => ({ ...good, dao, tvl_usd: null }))
    for (const input of [none, [good, ...none]]) {
      const { rows, rejected, refused } = check(...input)
      expect(rows).toEqual(input.slice(0, -2))
      expect(rejected).toBe(2)
      expect([...refused].map(([key, { code }]) => [key, code])).toEqual([2, 3].map((dao) => [dao, 'provider_unknown']))
    }
  })

  it('keeps the valid events of an entity with malformed events', () => {
    const vote = {
      dao: 1,
      space: 's',
      kind: 'vote',
      proposal: 'p',
      address: `0x${'a'.repeat(40)}`,
      at: good.observed_at,
      choice: '1',
      voting_power: null,
    }
    const wrong = { ...vote, address: 'nobody' }
    const rest = Array.from({ length: 3 }, () => ({ ...vote, dao: 2 }))
    const input = [vote, wrong, wrong, ...rest]
    const { rows } = checkRows(governance as unknown as Dataset, 'somewhere', input, { now, log: silent })
    expect(rows).toEqual([vote, ...rest])
  })

  it('rejects a quote without a valid price', () => {
    const quote = {
      ...Object.fromEntries(Object.keys(tokenPriceRow.shape).map((name) => [name, null])),
      token: 1,
      observed_at: good.observed_at,
      is_latest: true,
    }
    expect(tokenPriceRow.safeParse({ ...quote, price: 1.5 }).success).toBe(true)
    for (const price of [null, undefined, 0, -1, Number.NaN, '1.5']) {
      const refused = tokenPriceRow.safeParse({ ...quote, price })
      expect(refused.error?.issues[0]?.path).toEqual(['price'])
    }
  })

  it.each([
    ['volume_24h', -1],
    ['market_cap', -2_150_000_000],
    ['total_supply', -1],
    ['circulating_supply', -0.5],
    ['max_supply', -1],
    ['fully_diluted_market_cap', -1],
    ['tvl', -1],
    ['percent_change_24h', -100.01],
    ['volume_change_24h', -250],
    ['volume_24h', '12'],
    ['market_cap', 1e40],
    ['total_supply', {}],
    ['tvl', Number.NaN],
  ])('replaces an invalid %s of %s by null, keeps the rest of the quote and reports it', (member, value) => {
    const quote = {
      ...Object.fromEntries(Object.keys(tokenPriceRow.shape).map((name) => [name, 7])),
      token: 1,
      observed_at: good.observed_at,
      is_latest: true,
    }
    const messages: [string, number][] = []
    const { rows, rejected, refused } = checkRows(
      tokenPrices as unknown as Dataset,
      'somewhere',
      [{ ...quote, [member]: value }],
      { now, log: silent, onRejected: (reason, count) => messages.push([reason, count]) },
    )
    expect(rows).toEqual([{ ...quote, [member]: null }])
    expect([rejected, refused.size]).toEqual([0, 0])
    expect(messages).toEqual([[expect.stringMatching(`^somewhere: left out: ${member}: `), 1]])
  })

  it('rejects a quote with a negative or impossible price', () => {
    const quote = {
      ...Object.fromEntries(Object.keys(tokenPriceRow.shape).map((name) => [name, 7])),
      token: 1,
      observed_at: good.observed_at,
      is_latest: true,
    }
    const wrong = [
      { ...quote, price: -1, volume_24h: -1 },
      { ...quote, price: 1e12 },
    ]
    const { rows, rejected } = checkRows(tokenPrices as unknown as Dataset, 'somewhere', [quote, quote, ...wrong], {
      now,
      log: silent,
    })
    expect([rows.length, rejected]).toEqual([2, 2])
  })

  it('treats a supply of 0, and values computed from it, as unknown', () => {
    const unknown = ['market_cap', 'total_supply', 'circulating_supply', 'max_supply', 'fully_diluted_market_cap']
    const quote = {
      ...Object.fromEntries(Object.keys(tokenPriceRow.shape).map((name) => [name, 0])),
      token: 1,
      observed_at: good.observed_at,
      is_latest: true,
      price: 1.5,
    }
    const read = tokenPriceRow.parse(quote)
    expect(Object.entries(read).filter(([, value]) => value === null)).toEqual(
      expect.arrayContaining(unknown.map((name) => [name, null])),
    )
    expect(read).toMatchObject({ volume_24h: 0, percent_change_24h: 0, tvl: 0 })
  })

  it('rejects impossible observation times', () => {
    const at = (observed_at: string) => ({ ...good, observed_at })
    const { rows } = check(
      good,
      at('2024-01-01T00:14:59.000Z'),
      good,
      at('2024-01-01T00:16:00.000Z'),
      at('1970-01-20T17:00:00.000Z'),
    )
    expect(rows.map((row) => Reflect.get(row, 'observed_at'))).toEqual([
      good.observed_at,
      '2024-01-01T00:14:59.000Z',
      good.observed_at,
    ])
  })

  it('accepts an empty response', () => {
    expect(check()).toEqual({ rows: [], rejected: 0, refused: new Map(), omitted: new Map() })
  })
})
