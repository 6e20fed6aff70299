import { describe, expect, it } from 'vitest'
import { parseConfig } from '../../shared/config/config.ts'
import { tokenPrices } from '../../shared/datasets/token-prices.ts'
import { groupByExpected, toExpectedRuns } from '../../shared/ledger/expected.ts'
import type { ExpectedRange } from '../../shared/ledger/ledger.ts'
import { isThereAt, toLifetimes } from '../../shared/registry/ends.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { planBackfill } from '../../workers/backfill/plan.ts'
import { toDue } from '../../workers/backfill/request.ts'
import { toEntities } from '../../workers/job/define-job.ts'
import prices from '../../workers/jobs/prices.ts'
import { getToken } from '../support/entities.ts'

const DAY = 86_400_000
const [registry, config] = [loadRegistry(), parseConfig({})]
const tokenOf = (symbol: string) => getToken(registry, symbol)
const maker = tokenOf('MKR')
const END = maker.until ?? Number.NaN

describe('ended token', () => {
  const symbolsAt = (slot: number) =>
    toEntities(prices, { registry, config }, { kind: 'slot', slot }).map(
      ({ key }) => registry.tokenByKey.get(key)?.symbol,
    )

  it('is collected by slots only before its end', () => {
    expect(symbolsAt(END - 300_000)).toContain('MKR')
    expect(symbolsAt(END)).not.toContain('MKR')
    expect(symbolsAt(END)).toContain('SKY')
    // Its past can be collected at any time; the time after its end cannot.
    const range = { from: END - DAY, to: END, interval: '1d' } as const
    expect(toEntities(prices, { registry, config }, { kind: 'range', ...range, entities: [maker.id] })).toEqual([maker])
    const after = { ...range, from: END, to: END + DAY, entities: [maker.id, tokenOf('SKY').id] }
    expect(toEntities(prices, { registry, config }, { kind: 'range', ...after })).toEqual([tokenOf('SKY')])
    // A job enqueued before the end was registered does nothing and does not fail.
    expect(toEntities(prices, { registry, config }, { kind: 'range', ...after, entities: [maker.id] })).toEqual([])
  })

  it('is back-filled if the range starts before its end', () => {
    const plan = (from: string) =>
      planBackfill(
        { dataset: 'prices', from, to: '2025-12-01', interval: '1d', only: undefined },
        registry,
        END + 400 * DAY,
      )
    expect(plan('2025-05-18').entities).toContainEqual(maker)
    expect(plan('2025-05-19').entities).not.toContainEqual(maker)
  })

  it('is requested and counted up to its end in a back-fill', () => {
    const backfillPlan = planBackfill(
      { dataset: 'prices', from: '2025-05-17', to: '2025-05-21', interval: '1d', only: 'MKR,UNI' },
      registry,
      END + 400 * DAY,
    )
    const due = toDue(backfillPlan, END + 400 * DAY).map(({ within, entities }) => [
      entities.map(({ name }) => name),
      (within.last - within.first + 1) / 288,
    ])
    expect(due).toEqual([
      [['Maker'], 2],
      [['Uniswap'], 4],
    ])
  })

  it('is wanted up to its end, in a separate group', () => {
    const expected: ExpectedRange[] = [{ entity: 0, from: END - DAY, to: END + DAY, seconds: 300, requestedAt: 0 }]
    const entities = tokenPrices.entities(registry)
    const [all, ...alone] = groupByExpected(entities, expected)
    expect(alone.map(([token]) => token)).toContainEqual(maker)
    expect(all).not.toContainEqual(maker)
    // Every entity is in exactly one group, with all entities of the same end.
    const groups = [all ?? [], ...alone]
    expect(
      groups
        .flat()
        .map(({ key }) => key)
        .toSorted(),
    ).toEqual(entities.map(({ key }) => key).toSorted())
    const ends = groups.map((group) => [...new Set(group.map(({ until }) => until))])
    expect(ends.map(({ length }) => length)).toEqual(groups.map(() => 1))
    expect(new Set(ends.flat()).size).toBe(groups.length)
    const slots = DAY / 300_000
    const lengths = [tokenOf('UNI'), maker].map((token) =>
      toExpectedRuns(expected, token, tokenPrices, END + DAY).map(({ first, last }) => last - first + 1),
    )
    expect(lengths).toEqual([[2 * slots], [slots]])
    // A token with a future end exists until that day.
    expect(isThereAt(tokenOf('ACX'), (tokenOf('ACX').until ?? 0) - 1)).toBe(true)
  })

  it('counts up to its end, and its successor from that day on', () => {
    const { ended, endedAt, begun: started, begunAt: startedAt } = toLifetimes(registry.tokens)
    expect(endedAt[ended.indexOf(maker.key)]).toBe(END / 1000)
    expect(startedAt[started.indexOf(tokenOf('SKY').key)]).toBe(END / 1000)
    expect(ended).not.toContain(tokenOf('UNI').key)
    // ZRO existed before with a separate supply; Stargate's STG was exchanged for it.
    expect(ended).toContain(tokenOf('STG').key)
    expect(started).not.toContain(tokenOf('ZRO').key)
  })
})
