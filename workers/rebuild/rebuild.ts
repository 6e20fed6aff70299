import { setTimeout } from 'node:timers/promises'
import { z } from 'zod'
import { toBatches } from '../../shared/batches.ts'
import { toDeriveParams } from '../../shared/datasets/define-dataset.ts'
import { DataError } from '../../shared/errors.ts'
import { toBucketStart } from '../../shared/intervals.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import { countRows } from '../../shared/store/count-rows.ts'
import { readNewest } from '../../shared/store/freshness.ts'
import { type Lock, withLock } from '../../shared/store/lock.ts'
import { quoteName } from '../../shared/store/topology.ts'
import type { Logger } from '../../shared/telemetry/log.ts'
import { openState } from '../job/state.ts'
import type { RollUp } from './roll-ups.ts'
import { type Shadow, toShadow } from './shadow.ts'

/** Computed at once: enough to be worth a statement, few enough that a stopped run has little to repeat. */
const ENTITIES_AT_ONCE = 10

export interface RebuildOptions {
  readonly log: Logger
  readonly now: () => number
  /** Swaps also when the new table has fewer rows than the live one. */
  readonly force: boolean
  /** Called when it is known in how many batches of entities the table is computed. */
  readonly onPlan: (batches: number) => void
  readonly onStep: () => void
  /** Called with everything computed and both tables fed, before they are swapped. */
  readonly beforeSwap?: () => Promise<void>
}

export interface Rebuilt {
  /** Rows of the live table before and after. */
  readonly before: number
  readonly after: number
}

/**
 * Computes a roll-up anew beside the live table and puts it in its place at once. No row that arrives meanwhile is lost:
 * the shadow table is fed by a view of its own before it is filled, both views feed both tables until after the swap,
 * what arrives during the swap is stored once more, and every row replaces by its natural key, so that being stored twice changes nothing. A run that was stopped leaves
 * the shadow behind, fed, and the next one goes on with the batch that was not finished. One that was stopped after the swap
 * leaves the old table in the shadow's place, from which nothing is taken.
 * @throws DataError `storage` when ClickHouse fails, another run computes the table, or the new table has fewer rows.
 */
export async function rebuild(db: Database, rollUp: RollUp, options: RebuildOptions): Promise<Rebuilt> {
  const name = `rebuild ${db.name}.${rollUp.table}`
  const taken = `${rollUp.table} is being computed by another run: wait until it has ended`
  return withLock(db, { name, taken, log: options.log }, (lock) => rebuildAlone(db, rollUp, options, lock))
}

async function rebuildAlone(db: Database, rollUp: RollUp, options: RebuildOptions, lock: Lock): Promise<Rebuilt> {
  const { table, feed } = rollUp
  const shadow = toShadow(db, table)
  const live = await readUuid(db, shadow.storedLive)
  const state = openState(db, 'rebuild', options.now)
  const [uuid, upTo] = ((await state.get(table)) ?? '').split(' ')
  const isBegun = /^\d+$/.test(upTo ?? '') && uuid === (await readUuid(db, shadow.stored))
  if (!isBegun) await clear(db, shadow)
  await shadow.create(feed)
  await untilEarlierInsertsEnd(db)
  await fill(db, rollUp, shadow, { state, from: isBegun ? Number(upTo) : -1 }, options)
  const { before, after } = await compare(db, table, shadow.name)
  if (before > 0 && (after === 0 || (after < before && !options.force))) {
    throw new DataError(
      'storage',
      `${table} has ${before} rows and was computed with ${after}: ${rollUp.raw} lacks what ${table} was made of. ` +
        `Nothing is changed; --force swaps unless there are none; to clean up: ${shadow.drops.join('; ')}`,
    )
  }
  await options.beforeSwap?.()
  lock.requireHeld()
  if ((await readUuid(db, shadow.storedLive)) !== live)
    throw new DataError('storage', `${table} was swapped by somebody else meanwhile: nothing is changed by this run`)
  await swap(db, shadow, feed)
  return { before, after: await countRows(db, table) }
}

/**
 * The rows of the live table and of its shadow. An insert feeds one after the other: a row that is counted in the live
 * table may still be on its way to the shadow, so the shadow has fewer only if it has when that insert has ended.
 */
async function compare(db: Database, live: string, shadow: string): Promise<Rebuilt> {
  const before = await countRows(db, live)
  const after = await countRows(db, shadow)
  if (after >= before) return { before, after }
  await untilEarlierInsertsEnd(db)
  return { before, after: await countRows(db, shadow) }
}

/**
 * Swaps the tables and ends the feed. An insert looks up the tables of its two views one after the other: one that is
 * under way at the swap may find the old table both times. So what arrives is kept in a third table as well, whose name
 * stays the same, and is stored once more when such inserts have ended.
 */
async function swap(db: Database, shadow: Shadow, feed: string): Promise<void> {
  await shadow.keepArriving(feed)
  await untilEarlierInsertsEnd(db)
  await shadow.swap()
  await untilEarlierInsertsEnd(db)
  await shadow.storeArrived()
  await shadow.drop()
}

/**
 * An insert that began before the shadow's view was there does not feed it, and may store its rows after they were read
 * to fill it: such inserts have to end first.
 */
async function untilEarlierInsertsEnd(db: Database): Promise<void> {
  const since = performance.now()
  const processes =
    db.cluster === undefined ? 'system.processes' : `clusterAllReplicas(${quoteName(db.cluster)}, system.processes)`
  for (;;) {
    const [row] = await db.rows({
      name: 'earlier-inserts',
      sql: `SELECT count() AS inserts FROM ${processes} WHERE query_kind = 'Insert' AND elapsed >= {age: Float64}`,
      params: { age: (performance.now() - since) / 1000 },
      schema: z.object({ inserts: z.int() }),
    })
    if (row === undefined || row.inserts === 0) return
    await setTimeout(INSERT_POLL_MS)
  }
}

const INSERT_POLL_MS = 100

/**
 * Removes what an earlier run left behind that cannot be gone on with: it was stopped before anything was filled, or after
 * the swap, when the shadow is the table that was live before. What it kept of the swap's time is stored first.
 */
async function clear(db: Database, shadow: Shadow): Promise<void> {
  if ((await readUuid(db, shadow.arriving)) !== undefined) await shadow.storeArrived()
  await shadow.drop()
}

/** Fills the shadow batch by batch, after the entity up to which an earlier run over the same shadow came. */
async function fill(
  db: Database,
  rollUp: RollUp,
  shadow: Shadow,
  { state, from }: { state: ReturnType<typeof openState>; from: number },
  { now, onPlan, onStep }: RebuildOptions,
): Promise<void> {
  const uuid = await readUuid(db, shadow.stored)
  const newest = rollUp.dataset === undefined ? null : await readNewest(db, rollUp.dataset)
  const slot = toBucketStart(newest ?? now(), rollUp.dataset?.cadence ?? '1d')
  const batches = await readBatches(db, rollUp)
  onPlan(batches.length)
  for (const entities of batches) {
    const last = entities.at(-1) ?? 0
    if (last > from) {
      const params = toDeriveParams({ entities, read: entities, slot })
      await db.command({ name: 'fill-shadow', sql: rollUp.fill(shadow.name), params })
      state.set(rollUp.table, `${uuid} ${last}`)
      await state.store()
    }
    onStep()
  }
}

const keyRow = z.object({ key: z.number() })

/** The entities in batches, in the order of their keys; one empty batch where a row needs all of them at once. */
async function readBatches(db: Database, { entity, raw }: RollUp): Promise<number[][]> {
  if (entity === undefined) return [[]]
  const sql = `SELECT DISTINCT ${entity} AS key FROM ${raw} ORDER BY key`
  const keys = (await db.rows({ name: 'entities', sql, schema: keyRow })).map(({ key }) => key)
  return toBatches(keys, ENTITIES_AT_ONCE)
}

async function readUuid(db: Database, table: string): Promise<string | undefined> {
  const [row] = await db.rows({
    name: 'uuid',
    sql: 'SELECT toString(uuid) AS uuid FROM system.tables WHERE database = currentDatabase() AND name = {table: String}',
    params: { table },
    schema: z.object({ uuid: z.string() }),
  })
  return row?.uuid
}
