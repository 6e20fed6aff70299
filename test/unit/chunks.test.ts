import { describe, expect, it } from 'vitest'
import { tokenPrices } from '../../shared/datasets/token-prices.ts'
import { defineJob, type Entity } from '../../workers/job/define-job.ts'
import { planChunks, toFullBuckets } from '../../workers/schedule/chunks.ts'

const at = (iso: string) => Date.parse(iso)
const entities: Entity[] = [1, 2, 3, 4, 5].map((key) => ({ id: `id${key}`, key, name: `entity ${key}` }))
const job = defineJob({
  name: 'prices',
  cadence: '5m',
  dataset: tokenPrices,
  providers: [],
  entities: () => entities,
  history: { intervals: ['5m'], chunkEntities: 2, chunkPoints: 288 },
  run: async () => [],
})

const range = { from: at('2024-01-01T06:00:00Z'), to: at('2024-01-03T00:05:00Z'), interval: '5m' } as const

describe('planChunks', () => {
  it('skips entities that ended before a chunk, and ends when all have ended', () => {
    const until = at('2024-01-02T12:00:00Z')
    const toPlan = (ended: readonly number[]) =>
      planChunks(
        job,
        entities.map((entity) => (ended.includes(entity.key) ? { ...entity, until } : entity)),
        range,
      ).map(({ payload }) => [payload.entities, new Date(payload.to).toISOString().slice(5, 16)])
    expect(toPlan([2, 5])).toEqual([
      [['id1', 'id2'], '01-02T00:00'],
      [['id3', 'id4'], '01-02T00:00'],
      [['id5'], '01-02T00:00'],
      [['id1', 'id2'], '01-03T00:00'],
      [['id3', 'id4'], '01-03T00:00'],
      [['id5'], '01-02T12:00'],
      [['id1'], '01-03T00:05'],
      [['id3', 'id4'], '01-03T00:05'],
    ])
    expect(toPlan([])).toHaveLength(9)
  })

  const chunks = planChunks(job, entities, range)

  it('covers every entity and time exactly once', () => {
    for (const { id } of entities) {
      const own = chunks.filter(({ payload }) => payload.entities?.includes(id)).map(({ payload }) => payload)
      expect(own[0]?.from).toBe(range.from)
      expect(own.at(-1)?.to).toBe(range.to)
      for (const [index, payload] of own.slice(1).entries()) expect(payload.from).toBe(own[index]?.to)
    }
  })

  it('names jobs by their range, without colons', () => {
    const ids = chunks.map(({ id }) => id)
    expect(new Set(ids).size).toBe(ids.length)
    expect(ids.some((id) => id.includes(':'))).toBe(false)
    expect(planChunks(job, entities, range).map(({ id }) => id)).toEqual(ids)
  })

  it('cuts on a fixed grid, so that a longer range shares its full windows', () => {
    const longer = planChunks(job, entities, { ...range, to: at('2024-01-09T00:00:00Z') }).map(({ id }) => id)
    const shared = chunks.filter(({ payload }) => payload.to - payload.from === 86_400_000)
    expect(shared.length).toBeGreaterThan(0)
    for (const { id } of shared) expect(longer).toContain(id)
  })

  it('plans the same jobs until the last bucket is over', () => {
    const ids = (to: string) => planChunks(job, entities, { ...range, to: at(to) }).map(({ id }) => id)
    expect(ids('2024-01-03T00:01:00Z')).toEqual(ids('2024-01-03T00:05:00Z'))
    expect(ids('2024-01-03T00:05:01Z')).not.toEqual(ids('2024-01-03T00:05:00Z'))
  })

  it('toWholeBuckets() starts with a whole bucket, but not before the first day of history', () => {
    const from = Date.parse('2024-05-06T10:20:00Z')
    const range = { from, to: from + 1, interval: '1d' } as const
    expect(toFullBuckets(range)).toMatchObject({
      from: Date.parse('2024-05-06T00:00:00Z'),
      to: Date.parse('2024-05-07T00:00:00Z'),
    })
    const first = Date.parse('2022-02-01T00:00:00Z')
    expect(toFullBuckets({ from: first, to: first + 1, interval: '7d' })).toMatchObject({ from: first })
  })

  it('returns no chunks for a dataset without history', () => {
    const { history: _, ...without } = job
    expect(planChunks({ ...without, history: undefined }, entities, range)).toEqual([])
  })
})
