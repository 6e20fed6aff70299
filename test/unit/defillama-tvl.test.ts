import { describe, expect, it } from 'vitest'
import { protocolTvlRow } from '../../shared/datasets/protocol-tvl.ts'
import {
  protocolAnswer,
  protocolsAnswer,
  toTvlHistoryRows,
  toTvlRows,
} from '../../workers/providers/defillama/tvl-rows.ts'
import { readFixture, toTestDao } from '../samples.ts'

const slot = Date.UTC(2024, 0, 1, 13)
const day = (n: number) => Date.UTC(2022, 1, n)

describe('toTvlRows', () => {
  const protocols = protocolsAnswer.parse(readFixture('defillama/protocols.json'))

  it('sums up protocols under their parent, and returns standalone protocols', () => {
    const rows = toTvlRows(protocols, [toTestDao(1, 'alfa'), toTestDao(2, 'beta')], slot)
    expect(rows).toEqual([
      { dao: 1, observed_at: '2024-01-01T13:00:00.000Z', tvl_usd: 3000.75 },
      { dao: 2, observed_at: '2024-01-01T13:00:00.000Z', tvl_usd: 42 },
    ])
    for (const row of rows) expect(protocolTvlRow.safeParse(row).error).toBeUndefined()
  })

  it('returns no row without a match or a value', () => {
    const unknown = [toTestDao(1, 'nobody'), toTestDao(2, 'gamma'), toTestDao(3, null), toTestDao(4, 'parent#alfa')]
    expect(toTvlRows(protocols, unknown, slot)).toEqual([])
  })

  it('counts a protocol once if its parent has the same slug', () => {
    const same = [{ slug: 'alfa', parentProtocol: 'parent#alfa', tvl: 5 }]
    expect(toTvlRows(same, [toTestDao(1, 'alfa')], slot)).toMatchObject([{ tvl_usd: 5 }])
  })

  it('matches a renamed parent by its id and a protocol by its slug, not vice versa', () => {
    const renamed = { ...toTestDao(1, 'alfa'), defillamaSlug: 'omega' }
    const listed = [
      { slug: 'omega-v2', parentProtocol: 'parent#alfa', tvl: 5 },
      { slug: 'omega', parentProtocol: 'parent#alfa', tvl: 7 },
      { slug: 'alfa', tvl: 100 },
      { slug: 'stranger', parentProtocol: 'parent#omega', tvl: 1000 },
    ]
    expect(toTvlRows(listed, [renamed], slot)).toMatchObject([{ tvl_usd: 12 }])
  })
})

describe('toTvlHistoryRows', () => {
  it('returns the first point of each day in the range', () => {
    const history = protocolAnswer.parse(readFixture('defillama/protocol.json'))
    const rows = toTvlHistoryRows(history, toTestDao(1, 'alfa'), { from: day(2), to: day(5), interval: '1d' })
    expect(rows).toEqual([
      { dao: 1, observed_at: '2022-02-02T00:00:00.000Z', tvl_usd: 1001.5 },
      { dao: 1, observed_at: '2022-02-03T00:00:00.000Z', tvl_usd: 1002.5 },
      { dao: 1, observed_at: '2022-02-04T00:00:00.000Z', tvl_usd: 1003.5 },
    ])
  })
})
