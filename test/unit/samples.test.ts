import { expect, it } from 'vitest'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { createAllowance, type JobState } from '../../workers/job/state.ts'
import type { PostsSource } from '../../workers/providers/x/posts.ts'
import { loadJudge } from '../../workers/sentiment/model.ts'
import { openSamples } from '../../workers/sentiment/sample.ts'

const SLOT = Date.parse('2024-05-06T00:00:00Z')
const daos = loadRegistry().daos.slice(0, 20)
const [one, second] = daos
if (one === undefined || second === undefined) throw new Error('DAOs are needed')
const { signal } = new AbortController()

/** Twenty posts for any DAO, ten per page. `bought` lists the paid pages. */
function createSource() {
  const bought: string[] = []
  const source: PostsSource = {
    ...{ concurrency: 1, sampleSize: 20, pagesPerRun: 100 },
    fetchPage: async ({ id }, _slot, { read }) => {
      bought.push(`${id} ${read}`)
      return { texts: Array<string>(10).fill('great'), posts: 10, unreadable: 0, next: read === 0 ? 'more' : undefined }
    },
  }
  return { source, bought }
}

/** A job state whose `save` runs the given function first. */
function createState(save: (name: string) => Promise<void>): JobState & { values: Map<string, string> } {
  const values = new Map<string, string>()
  return {
    values,
    get: async (name) => values.get(name),
    set: () => {},
    save: async (name, value) => {
      await save(name)
      values.set(name, value)
    },
  }
}

const open = (source: PostsSource, state: JobState, pages = 100) =>
  openSamples(source, daos, SLOT, { state, allowance: createAllowance(pages), signal })

it('openSamples reads samples while others are saved, and does not buy pages again', async () => {
  const { source, bought } = createSource()
  let store = () => {}
  const stored = new Promise<void>((resolve) => {
    store = resolve
  })
  const state = createState(() => (bought.length % 2 === 0 ? stored : Promise.resolve()))
  const samples = await open(source, state)
  expect(await samples.read(one)).toMatchObject({ posts: 20, positive: 20, next: null })
  expect(await samples.read(second)).toMatchObject({ posts: 20, positive: 20, next: null })
  expect(bought).toHaveLength(4)
  let isRemembered = false
  const remembering = samples.stored().then(() => {
    isRemembered = true
  })
  await new Promise(setImmediate)
  expect(isRemembered).toBe(false)
  store()
  await remembering
  const repeated = await open(source, state)
  expect(await repeated.read(one)).toMatchObject({ posts: 20 })
  await repeated.stored()
  expect(bought).toHaveLength(4)
})

it('openSamples resumes a sample that was interrupted by the allowance', async () => {
  const { source, bought } = createSource()
  const state = createState(async () => {})
  expect(await (await open(source, state, 1)).read(one)).toBeUndefined()
  expect(await (await open(source, state, 1)).read(one)).toMatchObject({ posts: 20 })
  expect(bought).toEqual([`${one.id} 0`, `${one.id} 10`])
})

it('openSamples buys nothing more after a failed save, and reports the failure', async () => {
  const { source, bought } = createSource()
  const state = createState(async () => {
    if (bought.length === 2) throw new Error('the store is away')
  })
  const samples = await open(source, state)
  expect(await samples.read(one)).toMatchObject({ posts: 20 })
  await new Promise(setImmediate)
  await expect(samples.read(second)).rejects.toThrow('the store is away')
  expect(bought).toHaveLength(2)
  await expect(samples.stored()).rejects.toThrow('the store is away')
})

it('openSamples buys at most eight samples ahead of their saves', async () => {
  const { source, bought } = createSource()
  let store = () => {}
  const stored = new Promise<void>((resolve) => {
    store = resolve
  })
  // Saves of finished samples wait for `store`; saves of unfinished samples do not.
  const state = createState(() => (bought.length % 2 === 0 ? stored : Promise.resolve()))
  const samples = await open(source, state)
  const read = (async () => {
    const all = []
    for (const dao of daos) all.push(await samples.read(dao))
    return all
  })()
  await expect.poll(() => bought.length).toBe(16)
  for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate)
  expect(bought).toHaveLength(16)
  store()
  expect(await read).toHaveLength(daos.length)
  await samples.stored()
  expect(state.values.size).toBe(daos.length)
  expect(bought).toHaveLength(2 * daos.length)
})

it('a sample sums the probabilities of its posts and counts those without a known word', async () => {
  const { source } = createSource()
  const texts = ['great', '完全に 未知', ...Array<string>(8).fill('awful')]
  const mixed: PostsSource = {
    ...source,
    fetchPage: async () => ({ texts, posts: 20, unreadable: 0, next: undefined }),
  }
  const sample = await (
    await open(
      mixed,
      createState(async () => {}),
    )
  ).read(one)
  expect(sample).toMatchObject({ positive: 1, neutral: 1, negative: 8, unknown: 1, model: loadJudge().version })
  const { positiveSum = 0, negativeSum = 0 } = sample ?? {}
  const [great, awful] = ['great', 'awful'].map((text) => loadJudge().judge(text).probabilities)
  expect(positiveSum).toBeCloseTo((great?.[2] ?? 0) + 8 * (awful?.[2] ?? 0), 9)
  expect(negativeSum).toBeCloseTo((great?.[0] ?? 0) + 8 * (awful?.[0] ?? 0), 9)
})

it('a sample that another model began is read again from its first post', async () => {
  const { source, bought } = createSource()
  const state = createState(async () => {})
  await (await open(source, state, 1)).read(one)
  const started = JSON.parse(state.values.get(one.id) ?? '{}')
  state.values.set(one.id, JSON.stringify({ ...started, model: 'older-1' }))
  expect(await (await open(source, state)).read(one)).toMatchObject({ posts: 20, model: loadJudge().version })
  expect(bought).toEqual([`${one.id} 0`, `${one.id} 0`, `${one.id} 10`])
})
