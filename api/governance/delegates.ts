import { z } from 'zod'
import { delegations } from '../../shared/datasets/delegations.ts'
import type { Dao } from '../../shared/registry/entities.ts'
import type { Database } from '../../shared/store/store.ts'
import type { CacheReader, Sized } from '../cache/cache.ts'
import { type Answer, answerRecords, defineKeyset, type Representation, toOwned } from '../formats/formats.ts'
import { Problem } from '../problem/problem.ts'

const reading = z.object({ read_at: z.int() })

/** The time of a reading in Unix milliseconds; undefined if there was none. */
interface CachedReading extends Sized {
  readonly readAt: number | undefined
}

/** When the delegations of a DAO's voting token were last read completely, in Unix milliseconds; undefined if never. */
export async function findDelegationsRead(reader: CacheReader, dao: Dao): Promise<number | undefined> {
  const { key, votingToken } = dao
  const load = async (db: Database): Promise<CachedReading> => {
    const [row] = await db.rows({
      name: 'delegation-reading',
      sql: `SELECT toUnixTimestamp64Milli(read_at) AS read_at FROM delegation_readings FINAL
WHERE dao = {dao: UInt64} AND space = {space: String}`,
      params: { dao: key, space: votingToken?.space ?? '' },
      schema: reading,
    })
    return { size: 0, readAt: row?.read_at }
  }
  const cacheKey = `delegation-reading ${key} ${votingToken?.space}`
  const { readAt } = await reader.cache.get(cacheKey, { datasets: [delegations.name] }, load, reader)
  return readAt
}

/**
 * Like `findDelegationsRead`.
 * @throws Problem `no_data` if they were never read completely.
 */
export async function requireDelegations(reader: CacheReader, dao: Dao, daoName = 'this DAO'): Promise<number> {
  const readAt = await findDelegationsRead(reader, dao)
  if (readAt !== undefined) return readAt
  const { votingToken } = dao
  const unread = 'was not read to its end yet'
  const why = `Its voting token ${votingToken === null ? 'is not known, or has no delegations' : unread}.`
  throw new Problem('no_data', `There are no delegations of ${daoName}. ${why}`)
}

const NEWEST_PARTS = [
  ['block_number', 'UInt64', 'descending'],
  ['log_index', 'UInt32', 'descending'],
] as const
const NEWEST_FIRST = defineKeyset(...NEWEST_PARTS)
const OF_DAOS =
  "dao IN {owners: Array(UInt64)} AND space = transform(dao, {owners: Array(UInt64)}, {spaces: Array(String)}, '')"
const OF_SEVERAL = defineKeyset(['dao', 'UInt64'], ['delegate', 'String'], ...NEWEST_PARTS)

/**
 * Answers with events of a DAO's voting token, newest first. `table` has a row for each event, with `at`, `block_number` and
 * `log_index`; `record` and `values` are its record, and `isWanted` selects events. `order` is the same order in the columns
 * of the table's key: ClickHouse then reads from its end, and only as many rows as the page has. With FINAL, it would read all.
 * A table with `delegate` may have several DAOs and delegates: DAO after DAO, delegate after delegate.
 * @throws Problem `no_data` as `requireDelegations` does.
 */
export async function answerTokenEvents(
  call: CacheReader & {
    readonly db: Database
    readonly entities: readonly Dao[]
    readonly query: { readonly limit: number }
    readonly representation: Representation
  },
  events: {
    readonly name: string
    readonly table: string
    readonly record: z.ZodObject
    readonly values: string
    readonly order?: string
    readonly isWanted?: string
    readonly params?: Readonly<Record<string, unknown>>
    /** The columns of a delegate, if events of several DAOs or delegates are requested. */
    readonly ofSeveral?: z.ZodRawShape | undefined
  },
): Promise<Answer> {
  const { entities: daos, query, representation } = call
  const { name, table, record, values, order, isWanted = 'true', params, ofSeveral } = events
  const nameOf = ({ name }: Dao) => (daos.length === 1 ? undefined : name)
  const readAt = await Promise.all(daos.map((dao) => requireDelegations(call, dao, nameOf(dao))))
  const owned = toOwned(call, record, 'dao', ofSeveral)
  const [keyset, isOfDao, event] =
    ofSeveral === undefined
      ? [NEWEST_FIRST, 'dao = {dao: UInt64} AND space = {space: String}', '']
      : [OF_SEVERAL, OF_DAOS, 'dao, delegate, ']
  const { after } = representation
  if (after !== '') keyset.read(after)
  const spaces = daos.map(({ votingToken }) => votingToken?.space ?? '')
  const answer = await answerRecords(
    { ...call, representation: owned.representation },
    {
      name,
      sql: `SELECT toDateTime64(at, 3, 'UTC') AS as_of, ${keyset.place} AS page_key, ${owned.toRecord(values)} AS record
FROM ${table} WHERE ${isOfDao} AND ${isWanted}${keyset.isAfter(after)}
ORDER BY ${order ?? keyset.order}, collected_at DESC LIMIT 1 BY ${event}block_number, log_index LIMIT {limit: UInt32}`,
      params: { ...params, ...owned.params, dao: daos[0]?.key, space: spaces[0], spaces },
      page: query.limit,
    },
  )
  // A table is as old as the oldest reading of its DAOs.
  return { ...answer, asOf: Math.min(...readAt) }
}

/** The keys of the DAOs whose delegations were read completely. */
export async function findDelegating(db: Database, daos: readonly Dao[]): Promise<number[]> {
  const own = daos.flatMap(({ key, votingToken }) => (votingToken === null ? [] : [{ key, space: votingToken.space }]))
  const rows = await db.rows({
    name: 'delegating-daos',
    sql: 'SELECT dao FROM delegation_readings FINAL WHERE dao IN {daos: Array(UInt64)} AND has({spaces: Array(String)}, space)',
    params: { daos: own.map(({ key }) => key), spaces: own.map(({ space }) => space) },
    schema: z.object({ dao: z.number() }),
  })
  return rows.map(({ dao }) => dao)
}

/** The newest power of each delegate with any, and when it first had any; with `past` that of the moment `at`. */
export const toPowers = (isPast: boolean): string =>
  isPast
    ? `SELECT delegate, argMax(power, (block_number, log_index)) AS units, minIf(at, power > 0) AS first_at, any(decimals) AS decimals
  FROM delegate_powers WHERE dao = {dao: UInt64} AND space = {space: String} AND at <= fromUnixTimestamp64Milli({at: Int64}, 'UTC')
  GROUP BY delegate HAVING units > 0`
    : `SELECT delegate, argMaxMerge(last_power) AS units, min(first_at) AS first_at, any(decimals) AS decimals
  FROM delegate_powers_latest WHERE dao = {dao: UInt64} AND space = {space: String}
  GROUP BY delegate HAVING units > 0`

/** How many accounts delegate to each delegate at the moment `at`. */
export const DELEGATORS = `SELECT delegate, count() AS delegators FROM
  (
    SELECT delegator, argMax(to_delegate, (block_number, log_index)) AS delegate FROM delegation_events
    WHERE dao = {dao: UInt64} AND space = {space: String} AND at <= fromUnixTimestamp64Milli({at: Int64}, 'UTC')
    GROUP BY delegator
  )
  WHERE delegate != '' GROUP BY delegate`
