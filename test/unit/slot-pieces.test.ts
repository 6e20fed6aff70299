import { describe, expect, it } from 'vitest'
import { jobPayload } from '../../shared/queue/queues.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import prices from '../../workers/jobs/prices.ts'
import { parsePayload, toEntities } from '../../workers/run/payload.ts'
import { planSlot } from '../../workers/schedule/due-slots.ts'

const SLOT = Date.parse('2024-05-06T07:05:00Z')
const plan = (entities: number, slotEntities = 1000) => planSlot({ name: 'prices', slotEntities }, entities, SLOT)

describe('the jobs of a slot', () => {
  it('are one as long as its entities fit into one', () => {
    const whole = [{ id: 'prices.20240506T070500Z', payload: { kind: 'slot', slot: SLOT } }]
    expect(plan(0)).toEqual(whole)
    expect(plan(1000)).toEqual(whole)
    expect(plan(100_000, Number.POSITIVE_INFINITY)).toEqual(whole)
    const registry = loadRegistry()
    expect(planSlot(prices, prices.entities(registry).length, SLOT)).toEqual(whole)
  })

  it('are as many as they need, by a power of two, and no others when there is one entity more', () => {
    expect([1001, 2000, 2001, 5000, 5001, 100_000].map((entities) => plan(entities).length)).toEqual([
      2, 2, 4, 8, 8, 128,
    ])
    expect(plan(5000)).toEqual(plan(5001))
    expect(plan(1001)).toEqual([
      { id: 'prices.20240506T070500Z.0', payload: { kind: 'slot', slot: SLOT, piece: { index: 0, of: 2 } } },
      { id: 'prices.20240506T070500Z.1', payload: { kind: 'slot', slot: SLOT, piece: { index: 1, of: 2 } } },
    ])
  })

  it('are about everybody together, and about nobody twice', () => {
    const registry = loadRegistry()
    const all = toEntities(prices, registry, { kind: 'slot', slot: SLOT })
    const pieces = plan(all.length, 10).map(({ payload }) => toEntities(prices, registry, payload))
    expect(pieces.flatMap((piece) => piece.map(({ id }) => id)).sort()).toEqual(all.map(({ id }) => id).sort())
    expect(pieces.filter((piece) => piece.length > 0).length).toBeGreaterThan(1)
  })

  it('that are tried again are about those of them that are left', () => {
    const registry = loadRegistry()
    const [payload] = plan(20, 10).map((planned) => planned.payload)
    const [first, ...others] = toEntities(prices, registry, payload ?? { kind: 'slot', slot: SLOT })
    expect(others.length).toBeGreaterThan(0)
    const left = parsePayload(prices, { ...payload, entities: [first?.id] })
    expect(toEntities(prices, registry, left)).toEqual([first])
  })

  it.each([
    { index: 2, of: 2 },
    { index: -1, of: 2 },
    { index: 0, of: 0 },
    { index: 0.5, of: 2 },
  ])('are none that is not there: %o', (piece) => {
    expect(jobPayload.safeParse({ kind: 'slot', slot: SLOT, piece }).success).toBe(false)
  })
})
