import { afterAll, beforeAll, expect, it } from 'vitest'
import { jobs } from '../../workers/jobs/list.ts'
import { type ApiPool, openApiPool } from './api-pool.ts'
import { toSlotId } from './slot-clock.ts'
import { createStage, type Stage } from './stage.ts'
import { readSlotNumbers } from './stored-slots.ts'

const CLIENTS = 4
const PATHS = [
  '/data/tokens?limit=5',
  '/data/tokens/historic-financial?name=Sushi&interval=5m&start=2024-05-06',
  '/data/daos/treasury?name=Sushi',
  '/data/index/historic?period=1000',
  '/data/status',
]

let stage: Stage
let apis: ApiPool
let slots = 0

beforeAll(async () => {
  stage = await createStage()
  await stage.company.startAll()
  apis = await openApiPool(stage.config, 2)
})
afterAll(async () => {
  await apis?.close()
  await stage?.close()
})

/** Replaces one process after the other: stops each, and continues when its successor is ready. */
async function deploy(): Promise<void> {
  for (let index = 0; index < apis.size; index += 1) await apis.renew(index)
  for (const name of stage.company.names) await stage.company.renew(name)
}

it('rolling deploy loses no slot and answers every request', { timeout: 600_000 }, async () => {
  let isDeployed = false
  apis.request(PATHS, CLIENTS)
  const deployed = deploy().finally(() => {
    isDeployed = true
  })
  for (; !isDeployed || slots < 10; slots += 1) {
    await stage.moveTo(slots)
    await stage.events.untilComplete(jobs.map((job) => toSlotId(job, slots)))
  }
  await deployed

  expect(apis.failures).toEqual([])
  expect([...apis.answers.keys()]).toEqual([200])
  expect(apis.answers.get(200)).toBeGreaterThan(100)
  expect(stage.events.deadLetters).toEqual([])
  for (const job of jobs.filter(({ name }) => BY_SLOT.has(name))) {
    const found = await readSlotNumbers(stage.database.db, job, slots)
    expect(found.length).toBeGreaterThan(0)
    for (const stored of found) {
      const own = stored.map((slot) => slot + (BY_SLOT.get(job.name) ?? 0)).filter((slot) => slot >= 0)
      expect([job.name, own]).toEqual([job.name, Array.from({ length: slots }, (_, slot) => slot)])
    }
  }
  for (const refusal of apis.refusals) console.log(`repeated: ${refusal}`)
  console.log(
    `${slots} slots and ${apis.answers.get(200)} answers while ${apis.size + stage.company.names.length} processes were replaced`,
  )
})

/** Datasets with rows by slot, and the number of slots by which a row's time is before its slot. */
const BY_SLOT: ReadonlyMap<string, number> = new Map([
  ['prices', 1],
  ['index-token', 1],
  ...['tvl', 'holders', 'treasury', 'ratings', 'twitter', 'discord', 'telegram', 'twitter-sentiment'].map(
    (name) => [name, 0] as const,
  ),
])
