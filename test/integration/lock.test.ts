import { EventEmitter, once } from 'node:events'
import { PassThrough } from 'node:stream'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { z } from 'zod'
import { DataError } from '../../shared/errors.ts'
import { type Database, withLock } from '../../shared/store/store.ts'
import { createTestConfig, createTestDatabase, type TestDatabase } from '../support/database.ts'
import { silent } from '../support/silent.ts'

let database: TestDatabase
let db: Database
beforeAll(async () => {
  database = await createTestDatabase(createTestConfig())
  db = database.db
})
afterAll(() => database?.drop())

const lock = { name: 'a lock of the test', taken: 'taken', log: silent }
const kill = () =>
  db.command({ name: 'kill', sql: 'KILL QUERY WHERE query_id = {name: String} SYNC', params: { name: lock.name } })

const countHolders = async () => {
  const sql = 'SELECT count() AS holders FROM system.processes WHERE query_id = {name: String}'
  const schema = z.object({ holders: z.number() })
  const [row] = await db.rows({ name: 'holders', sql, params: { name: lock.name }, schema })
  return row?.holders
}

it('withLock returns the result of finished work if the lock cannot be released', async () => {
  const unavailable: Database = { ...db, command: () => Promise.reject(new DataError('storage', 'away')) }
  expect(await withLock(unavailable, lock, async () => 'done')).toBe('done')
  await kill()
})

/** A database that has not yet seen the end of its statements, like that of a process that was frozen. */
const unaware: () => Database = () => ({
  ...db,
  stream: async (statement) => {
    const [seen, stream] = [new PassThrough(), await db.stream(statement)]
    stream.once('data', (chunk) => seen.write(chunk))
    seen.once('close', () => stream.destroy())
    return seen
  },
})

it('withLock asks the server whether the lock is held, and does not release the lock of the next owner', async () => {
  const steps = new EventEmitter()
  const [began, observed] = [once(steps, 'began'), once(steps, 'over')]
  let next: Promise<number | undefined> | undefined
  await withLock(unaware(), lock, async ({ requireHeld }) => {
    await requireHeld()
    await kill()
    await expect(requireHeld()).rejects.toThrow(/was lost/)
    next = withLock(db, lock, async () => {
      steps.emit('began')
      await observed
      return countHolders()
    })
    await began
    await expect(requireHeld()).rejects.toThrow(/was lost/)
  })
  steps.emit('over')
  expect(await next).toBe(1)
})

it('withLock does not release the lock of its next owner if it has not noticed the loss', async () => {
  const steps = new EventEmitter()
  const [began, observed] = [once(steps, 'began'), once(steps, 'over')]
  let next: Promise<number | undefined> | undefined
  await withLock(unaware(), lock, async () => {
    await kill()
    next = withLock(db, lock, async () => {
      steps.emit('began')
      await observed
      return countHolders()
    })
    await began
  })
  steps.emit('over')
  expect(await next).toBe(1)
})
