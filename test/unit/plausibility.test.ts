import { describe, expect, it } from 'vitest'
import { DAY_MS, HOUR_MS } from '../../shared/intervals.ts'
import type { Database } from '../../shared/store/store.ts'
import treasury from '../../workers/jobs/treasury.ts'
import tvl from '../../workers/jobs/tvl.ts'
import { silent } from '../support/silent.ts'

const AT = Date.parse('2024-05-06T00:00:00Z')

describe.each([
  {
    name: 'treasury',
    job: treasury,
    entity: 'dao',
    value: 'value_usd',
    believedMs: 3 * DAY_MS,
    code: 'provider_unknown',
  },
  { name: 'tvl', job: tvl, entity: 'dao', value: 'tvl_usd', believedMs: 6 * HOUR_MS, code: 'provider_unknown' },
])('plausibility check of the job $name', ({ job, entity, value, believedMs, code }) => {
  /** Compares values of entity 1 with the last stored value of 1000 at `AT`. */
  const open = async () => {
    const db = { rows: async () => [{ entity: 1, value: 1000, at: AT }] } as unknown as Database
    const plausibility = await job.openPlausibilityCheck?.(db, [1, 2])
    const rejected: string[] = []
    const onRejected = (reason: string) => void rejected.push(reason)
    const check = (provider: string, amount: number, { after = 1, key = 1 } = {}) => {
      const row = { [entity]: key, [value]: amount, observed_at: new Date(AT + after).toISOString() }
      const all = { rows: [row], rejected: 0, refused: new Map() }
      return plausibility?.(provider, all, { log: silent, onRejected }) ?? all
    }
    return { check, rejected }
  }

  it.each([4_900, 205])('stores %d after 1000', async (amount) => {
    const { check } = await open()
    expect(check('one', amount)).toMatchObject({ rows: [{ [value]: amount }], rejected: 0, refused: new Map() })
  })

  it.each([75_000, 5_001, 199, 0])('refuses the entity with %d after 1000, and counts the row', async (amount) => {
    const { check, rejected } = await open()
    const { rows, rejected: count, refused } = check('one', amount)
    expect([rows, count]).toEqual([[], 1])
    expect(refused.get(1)).toMatchObject({
      code,
      message: expect.stringMatching(new RegExp(`^one: a .* of ${amount} is`)),
    })
    expect(rejected).toEqual([expect.stringContaining(value)])
  })

  it('stores a value that a second provider confirms within 20 %', async () => {
    const { check } = await open()
    expect(check('one', 1e6).rows).toEqual([])
    expect(check('two', 2e6).rows).toEqual([])
    expect(check('three', 1.1e6).rows).toHaveLength(1)
  })

  it('stores a value that differs from a value that is too old to compare', async () => {
    const { check } = await open()
    expect(check('one', 1e6, { after: believedMs }).rows).toEqual([])
    expect(check('one', 5e6, { after: believedMs + 1 }).rows).toHaveLength(1)
  })

  it('stores the first value of an entity', async () => {
    const { check } = await open()
    expect(check('one', 1e6, { key: 2 }).rows).toHaveLength(1)
  })
})
