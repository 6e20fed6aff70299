import { describe, expect, it } from 'vitest'
import { parseConfig } from '../../shared/config/config.ts'
import { jobPayload } from '../../shared/queue/queues.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { parsePayload, toEntities } from '../../workers/job/define-job.ts'
import dexTrades from '../../workers/jobs/dex-trades.ts'
import prices from '../../workers/jobs/prices.ts'
import { planSlot } from '../../workers/schedule/due-slots.ts'

const SLOT = Date.parse('2024-05-06T07:05:00Z')
const config = parseConfig({})
const plan = (entities: number, slotEntities = 1000) => planSlot({ name: 'prices', slotEntities }, entities, SLOT)

describe('planSlot', () => {
  it('plans one job if its entities fit', () => {
    const full = [{ id: 'prices.20240506T070500Z', payload: { kind: 'slot', slot: SLOT } }]
    expect(plan(0)).toEqual(full)
    expect(plan(1000)).toEqual(full)
    expect(plan(100_000, Number.POSITIVE_INFINITY)).toEqual(full)
    const registry = loadRegistry()
    expect(planSlot(prices, prices.entities(registry).length, SLOT)).toEqual(full)
  })

  it('plans the needed number of jobs, rounded up to a power of two', () => {
    expect([1001, 2000, 2001, 5000, 5001, 100_000].map((entities) => plan(entities).length)).toEqual([
      2, 2, 4, 8, 8, 128,
    ])
    expect(plan(5000)).toEqual(plan(5001))
    expect(plan(1001)).toEqual([
      { id: 'prices.20240506T070500Z.0', payload: { kind: 'slot', slot: SLOT, piece: { index: 0, of: 2 } } },
      { id: 'prices.20240506T070500Z.1', payload: { kind: 'slot', slot: SLOT, piece: { index: 1, of: 2 } } },
    ])
  })

  it('assigns every entity to exactly one job', () => {
    const registry = loadRegistry()
    const all = toEntities(prices, { registry, config }, { kind: 'slot', slot: SLOT })
    const batches = plan(all.length, 10).map(({ payload }) => toEntities(prices, { registry, config }, payload))
    expect(batches.flatMap((batch) => batch.map(({ id }) => id)).sort()).toEqual(all.map(({ id }) => id).sort())
    expect(batches.filter((batch) => batch.length > 0).length).toBeGreaterThan(1)
  })

  it('keeps the tokens of a chain with a node in one job, and splits other chains', () => {
    const registry = loadRegistry()
    const existing = { registry, config: parseConfig({ RPC_URLS: 'ethereum=http://127.0.0.1:1' }) }
    const chainOf = new Map(registry.tokens.map(({ id, chain }) => [id, chain]))
    const all = toEntities(dexTrades, existing, { kind: 'slot', slot: SLOT })
    const batches = plan(all.length, 10).map(({ payload }) => toEntities(dexTrades, existing, payload))
    expect(batches.flatMap((batch) => batch.map(({ id }) => id)).sort()).toEqual(all.map(({ id }) => id).sort())
    const withChain = (isOne: (chain: string | undefined) => boolean) =>
      batches.filter((batch) => batch.some(({ id }) => isOne(chainOf.get(id)))).length
    expect(withChain((chain) => chain === 'ethereum')).toBe(1)
    expect(withChain((chain) => chain !== 'ethereum')).toBeGreaterThan(1)
  })

  it('retries only the remaining entities of a job', () => {
    const registry = loadRegistry()
    const [payload] = plan(20, 10).map((planned) => planned.payload)
    const [first, ...rest] = toEntities(prices, { registry, config }, payload ?? { kind: 'slot', slot: SLOT })
    expect(rest.length).toBeGreaterThan(0)
    const remaining = parsePayload(prices, { ...payload, entities: [first?.id] })
    expect(toEntities(prices, { registry, config }, remaining)).toEqual([first])
  })

  it.each([
    { index: 2, of: 2 },
    { index: -1, of: 2 },
    { index: 0, of: 0 },
    { index: 0.5, of: 2 },
  ])('rejects the invalid batch %o', (batch) => {
    expect(jobPayload.safeParse({ kind: 'slot', slot: SLOT, piece: batch }).success).toBe(false)
  })
})
