import { EventEmitter, once } from 'node:events'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { z } from 'zod'
import { DataError, toReason } from '../../shared/errors.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import { withLock } from '../../shared/store/lock.ts'
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

const toReasonOf = (work: () => void) => {
  try {
    work()
  } catch (error) {
    return toReason(error)
  }
}
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

it('withLock does not release the lock of its next owner after it lost its own', async () => {
  const steps = new EventEmitter()
  const [began, observed] = [once(steps, 'began'), once(steps, 'over')]
  let next: Promise<number | undefined> | undefined
  await withLock(db, lock, async ({ requireHeld }) => {
    await kill()
    await expect.poll(() => toReasonOf(requireHeld)).toMatch(/was lost/)
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
