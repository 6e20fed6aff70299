import { describe, expect, it } from 'vitest'
import { routes } from '../../api/routes.ts'
import { tokenPrices } from '../../shared/datasets/token-prices.ts'

describe('lists', () => {
  it('are made of prices too, whatever they list: the market cap orders them', () => {
    const lists = routes.filter((route) => 'toSource' in route)
    expect(lists.length).toBeGreaterThan(5)
    for (const { path, datasets } of lists) expect(datasets, path).toContain(tokenPrices)
  })
})
