import { setTimeout } from 'node:timers/promises'
import { z } from 'zod'
import { toDeriveParams } from '../../shared/datasets/define-dataset.ts'
import { DataError } from '../../shared/errors.ts'
import { toBatches } from '../../shared/group-by.ts'
import { toBucketStart } from '../../shared/intervals.ts'
import { countRows, type Database, type Lock, quoteName, readNewest, withLock } from '../../shared/store/store.ts'
import type { Logger } from '../../shared/telemetry/log.ts'
import { openState } from '../job/state.ts'
import type { RollUp } from './roll-ups.ts'
import { type Shadow, toShadow } from './shadow.ts'

/**
 * Entities per statement: large enough to amortize a statement, small enough to limit the work that a stopped run
 * repeats.
 */
const ENTITIES_PER_BATCH = 10

export interface RebuildOptions {
  readonly log: Logger
  readonly now: () => number
  /** Whether to swap even if the new table has fewer rows than the live one. */
  readonly force: boolean
  /** Whether to discard what an interrupted run has computed: rows that it read may have been removed since. */
  readonly restart?: boolean
  /** Called with the number of entity batches before the computation starts. */
  readonly onPlan: (batches: number) => void
  readonly onStep: () => void
  /** Called when the shadow table is complete and both tables are fed, before the swap. */
  readonly beforeSwap?: () => Promise<void>
}

export interface Rebuilt {
  /** Rows of the live table before and after. */
  readonly before: number
  readonly after: number
}

/**
 * Recomputes a roll-up in a shadow table next to the live table and swaps the two atomically. No row that arrives
 * during the run is lost:
 * - A separate view feeds the shadow table before it is filled.
 * - Both views feed both tables until after the swap.
 * - Rows that arrive during the swap are stored a second time.
 * - A row replaces the row with the same natural key, so storing it twice has no effect.
 *
 * A run stopped before the swap leaves the fed shadow table, and the next run continues with the unfinished batch. A
 * run stopped after the swap leaves the old table as the shadow, which the next run discards.
 * @throws DataError `storage` if ClickHouse fails, another run computes the table, or the new table has fewer rows.
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
  const isStarted = options.restart !== true && /^\d+$/.test(upTo ?? '') && uuid === (await readUuid(db, shadow.stored))
  if (!isStarted) await clear(db, shadow)
  await shadow.create(feed)
  await untilEarlierInsertsEnd(db)
  await fill(db, rollUp, shadow, { state, from: isStarted ? Number(upTo) : -1 }, options)
  const { before, after } = await compare(db, table, shadow.name)
  if (before > 0 && (after === 0 || (after < before && !options.force))) {
    throw new DataError(
      'storage',
      `${table} has ${before} rows and was computed with ${after}: ${rollUp.raw} lacks rows from which ${table} was computed. ` +
        `Nothing is changed; --force swaps unless there are none; to clean up: ${shadow.drops.join('; ')}`,
    )
  }
  await options.beforeSwap?.()
  await lock.requireHeld()
  if ((await readUuid(db, shadow.storedLive)) !== live)
    throw new DataError('storage', `${table} was swapped by another run: this run changed nothing; start it again`)
  await swap(db, shadow, feed)
  return { before, after: await countRows(db, table) }
}

/**
 * Counts the rows of the live table and of its shadow. An insert feeds one after the other, so a row counted in the
 * live table may still be on its way to the shadow. If the shadow has fewer rows, it is counted again after those
 * inserts have ended.
 */
async function compare(db: Database, live: string, shadow: string): Promise<Rebuilt> {
  const before = await countRows(db, live)
  const after = await countRows(db, shadow)
  if (after >= before) return { before, after }
  await untilEarlierInsertsEnd(db)
  return { before, after: await countRows(db, shadow) }
}

/**
 * Swaps the tables and stops the feed. An insert looks up the target tables of its two views one after the other, so an
 * insert during the swap may write to the old table twice. Arriving rows are therefore also written to a third table
 * with a constant name, and stored again after such inserts have ended.
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
 * Waits for inserts that began before the shadow's view existed. Such inserts do not feed the shadow, and may store
 * their rows after the fill has read the source.
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
 * Removes an earlier run's shadow that cannot be continued: the run was stopped before the fill, or after the swap,
 * when the shadow is the former live table. Rows buffered during that swap are stored first.
 */
async function clear(db: Database, shadow: Shadow): Promise<void> {
  if ((await readUuid(db, shadow.arriving)) !== undefined) await shadow.storeArrived()
  await shadow.drop()
}

/** Fills the shadow in batches, starting after the last entity of an earlier run over the same shadow. */
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

/** Reads the entities in batches ordered by key. Returns one empty batch if a row needs all entities. */
async function readBatches(db: Database, { entity, raw }: RollUp): Promise<number[][]> {
  if (entity === undefined) return [[]]
  const sql = `SELECT DISTINCT ${entity} AS key FROM ${raw} ORDER BY key`
  const keys = (await db.rows({ name: 'entities', sql, schema: keyRow })).map(({ key }) => key)
  return toBatches(keys, ENTITIES_PER_BATCH)
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
