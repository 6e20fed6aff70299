import { expect, it } from 'vitest'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { createAllowance } from '../../workers/job/allowance.ts'
import type { JobState } from '../../workers/job/state.ts'
import type { PostsSource } from '../../workers/providers/x/posts.ts'
import { openSamples } from '../../workers/sentiment/sample.ts'

const SLOT = Date.parse('2024-05-06T00:00:00Z')
const [one, other, third] = loadRegistry().daos
if (one === undefined || other === undefined || third === undefined) throw new Error('three DAOs are needed')
const { signal } = new AbortController()

/** Twenty posts about anybody, ten a page; `bought` are the pages that were paid for. */
function createSource() {
  const bought: string[] = []
  const source: PostsSource = {
    ...{ concurrency: 1, sampleSize: 20, pagesPerRun: 100 },
    fetchPage: async ({ id }, _slot, { read }) => {
      bought.push(`${id} ${read}`)
      return { texts: Array<string>(10).fill('great'), posts: 10, next: read === 0 ? 'more' : undefined }
    },
  }
  return { source, bought }
}

/** `save` is what it takes to remember a value. */
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
  openSamples(source, [one, other, third], SLOT, { state, allowance: createAllowance(pages), signal })

it('samples are read to their end while others are remembered, and never bought again', async () => {
  const { source, bought } = createSource()
  let store = () => {}
  const stored = new Promise<void>((resolve) => {
    store = resolve
  })
  const state = createState(() => (bought.length % 2 === 0 ? stored : Promise.resolve()))
  const samples = await open(source, state)
  expect(await samples.read(one)).toMatchObject({ posts: 20, positive: 20, next: null })
  expect(await samples.read(other)).toMatchObject({ posts: 20, positive: 20, next: null })
  expect(bought).toHaveLength(4)
  let isRemembered = false
  const remembering = samples.remembered().then(() => {
    isRemembered = true
  })
  await new Promise(setImmediate)
  expect(isRemembered).toBe(false)
  store()
  await remembering
  const again = await open(source, state)
  expect(await again.read(one)).toMatchObject({ posts: 20 })
  await again.remembered()
  expect(bought).toHaveLength(4)
})

it('one that the allowance ends goes on where it was', async () => {
  const { source, bought } = createSource()
  const state = createState(async () => {})
  expect(await (await open(source, state, 1)).read(one)).toBeUndefined()
  expect(await (await open(source, state, 1)).read(one)).toMatchObject({ posts: 20 })
  expect(bought).toEqual([`${one.id} 0`, `${one.id} 10`])
})

it('nothing more is bought after one that could not be remembered, which is told', async () => {
  const { source, bought } = createSource()
  const state = createState(async () => {
    if (bought.length === 2) throw new Error('the store is away')
  })
  const samples = await open(source, state)
  expect(await samples.read(one)).toMatchObject({ posts: 20 })
  await new Promise(setImmediate)
  await expect(samples.read(other)).rejects.toThrow('the store is away')
  expect(bought).toHaveLength(2)
  await expect(samples.remembered()).rejects.toThrow('the store is away')
})
