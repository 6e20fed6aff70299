import { afterAll, beforeAll, expect, it } from 'vitest'
import { z } from 'zod'
import { openState } from '../../workers/job/state.ts'
import { createTestConfig, createTestDatabase, type TestDatabase } from '../support/database.ts'

const DAY = 86_400_000

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase(createTestConfig())
})
afterAll(() => database.drop())

it('job state deletes temporary entries after a month and keeps cursors', async () => {
  const { db } = database
  for (const ago of [31, 29]) {
    for (const job of ['rebuild', 'commits', 'dex-trades']) {
      const state = openState(db, job, () => Date.now() - ago * DAY)
      state.set(`${ago} days`, 'x')
      await state.store()
    }
  }
  await db.command({ name: 'merge', sql: 'OPTIMIZE TABLE job_state FINAL' })
  const sql = "SELECT concat(job, ' ', name) AS state FROM job_state FINAL ORDER BY state"
  const remaining = await db.rows({ name: 'left', sql, schema: z.object({ state: z.string() }) })
  expect(remaining.map(({ state }) => state)).toEqual([
    'commits 29 days',
    'dex-trades 29 days',
    'dex-trades 31 days',
    'rebuild 29 days',
  ])
})

it('job state accepts new values after a clock that was ahead', async () => {
  const { db } = database
  const open = (ahead: number) => openState(db, 'governance', () => Date.now() + ahead)
  await open(DAY).save('cursor', 'first')
  const state = open(0)
  expect(await state.get('cursor')).toBe('first')
  state.set('cursor', 'second')
  expect(await state.store()).toBe(true)
  expect(await open(0).get('cursor')).toBe('second')
  // A write without a read gets a later version too, and so do the following ones.
  const second = open(0)
  second.set('cursor', 'third')
  await second.store()
  await second.save('cursor', 'fourth')
  expect(await open(0).get('cursor')).toBe('fourth')
})

it('job state reads concurrent requests with one statement, for any number of names', async () => {
  const { db } = database
  const names = Array.from({ length: 2500 }, (_, number) => `pool "${number}", 'of' \\n\n`)
  const before = openState(db, 'dex-trades', Date.now)
  for (const name of names) before.set(name, `read ${name}`)
  await before.store()
  const counted = { statements: 0 }
  const rows: typeof db.rows = (statement) => {
    counted.statements += 1
    return db.rows(statement)
  }
  const state = openState({ ...db, rows }, 'dex-trades', Date.now)
  const found = await Promise.all([...names, 'of nobody', ...names.slice(0, 10)].map((name) => state.get(name)))
  expect(found).toEqual([
    ...names.map((name) => `read ${name}`),
    undefined,
    ...names.slice(0, 10).map((name) => `read ${name}`),
  ])
  expect(counted.statements).toBe(3)
  expect(await openState(db, 'governance', Date.now).get(names[0] as string)).toBeUndefined()
})

it('job state batches values that are saved during an insert, and keeps the later of two', async () => {
  const { db } = database
  const inserted: string[][] = []
  const insert: typeof db.insert = (options) => {
    inserted.push((options.rows as { name: string }[]).map(({ name }) => name))
    return db.insert(options)
  }
  const state = openState({ ...db, insert }, 'twitter-sentiment', Date.now)
  await Promise.all([
    state.save('a', 'first'),
    new Promise(setImmediate).then(() =>
      Promise.all(['b', 'c', 'a', 'c'].map((name, at) => state.save(name, String(at)))),
    ),
  ])
  expect(inserted).toEqual([['a'], ['b', 'c', 'a']])
  const second = openState(db, 'twitter-sentiment', Date.now)
  expect(await Promise.all(['a', 'b', 'c'].map((name) => second.get(name)))).toEqual(['2', '0', '3'])
})

it('job state rejects only the save calls of values that were not stored', async () => {
  const { db } = database
  let isUnavailable = true
  const insert: typeof db.insert = async (options) => {
    if (isUnavailable) throw new Error('away')
    await db.insert(options)
  }
  const state = openState({ ...db, insert }, 'twitter-sentiment', Date.now)
  const saving = state.save('d', 'lost')
  await expect(saving).rejects.toThrow('away')
  isUnavailable = false
  await state.save('e', 'stored')
  const second = openState(db, 'twitter-sentiment', Date.now)
  expect(await Promise.all(['d', 'e'].map((name) => second.get(name)))).toEqual([undefined, 'stored'])
})
