import { describe, expect, it } from 'vitest'
import type { Dataset } from '../../shared/datasets/define.ts'
import { protocolTvl } from '../../shared/datasets/protocol-tvl.ts'
import { tokenPriceRow } from '../../shared/datasets/token-prices.ts'
import { DataError } from '../../shared/errors.ts'
import { checkRows } from '../../workers/rows.ts'
import { silent } from '../support/silent.ts'

const dataset = protocolTvl as unknown as Dataset
const good = { dao: 1, observed_at: '2024-01-01T00:00:00.000Z', tvl_usd: 5 }
const from = (...rows: object[]) => rows.map((row) => ({ row, provider: 'somewhere' }))

describe('checkRows', () => {
  it('keeps good rows and counts the others', () => {
    const { rows, rejected } = checkRows(
      dataset,
      from(good, { ...good, tvl_usd: null }, good, { ...good, extra: 1 }, good),
      silent,
    )
    expect(rows).toEqual([good, good, good])
    expect(rejected).toBe(2)
  })

  it('trusts nothing of an answer that is mostly wrong, and says who sent what', () => {
    const candidates = from(good, { ...good, tvl_usd: null }, { ...good, tvl_usd: -1 })
    expect(() => checkRows(dataset, candidates, silent)).toThrow(DataError)
    expect(() => checkRows(dataset, candidates, silent)).toThrow(/tvl: 2 of 3 rows rejected: .*somewhere: tvl_usd: /)
  })

  it('refuses a quote without a price, or with one that cannot be, and names it', () => {
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

  it('takes an empty answer for what it is', () => {
    expect(checkRows(dataset, [], silent)).toEqual({ rows: [], rejected: 0 })
  })
})
