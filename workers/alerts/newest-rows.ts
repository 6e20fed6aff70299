import { z } from 'zod'
import type { Database } from '../../shared/store/store.ts'

/** A replacing table whose newest rows are kept in memory. */
interface Source<S extends z.ZodRawShape> {
  readonly name: string
  readonly table: string
  /** SQL of each member of a row. */
  readonly columns: Readonly<Record<keyof S & string, string>>
  readonly row: z.ZodObject<S>
  /** The table's sorting key, without the time when a row was written. */
  readonly toKey: (row: z.output<z.ZodObject<S>>) => string
}

/**
 * Creates a function that passes the rows of a table with `written_at` to `change`: first all of them, later those that
 * were written after the newest one before. The same statement sums hashes of all rows. If another process has stored
 * rows with an earlier time, the sum differs, and all rows are read again after `clear`. ClickHouse writes the rows as one
 * record of columns, in which each name occurs once.
 */
export function createNewestRows<S extends z.ZodRawShape>(
  db: Database,
  { name, table, columns, row, toKey }: Source<S>,
  listener: { clear(): void; change(row: z.output<z.ZodObject<S>>): void },
): () => Promise<void> {
  const names = Object.keys(row.shape)
  // A hash of 32 bits, so that sums of millions of them are exact numbers in JavaScript.
  const sql = `SELECT ${names.map((one) => `groupArrayIf(tuple(t.${one}), isNew).1 AS ${one}`).join(', ')},
  groupArrayIf(rowHash, isNew) AS hashes, sum(rowHash) AS digest, toUnixTimestamp64Milli(max(writtenAt)) AS newest
FROM
(
  SELECT ${names.map((one) => `${columns[one]} AS ${one}`).join(', ')}, written_at AS writtenAt,
    toUInt32(cityHash64(toJSONString(tuple(${names.map((one) => columns[one]).join(', ')}, written_at))) % 4294967296) AS rowHash,
    written_at > fromUnixTimestamp64Milli({since: Int64}, 'UTC') AS isNew
  FROM ${table} FINAL
) AS t`
  const members = Object.fromEntries(names.map((one) => [one, z.array(row.shape[one] as unknown as z.ZodType)]))
  const schema = z.object({ ...members, hashes: z.array(z.int()), digest: z.int(), newest: z.int() })
  let hashes = new Map<string, number>()
  let [since, sum] = [0, 0]

  const clear = () => {
    hashes = new Map()
    ;[since, sum] = [0, 0]
    listener.clear()
  }
  /** Returns whether the cache equals the table. */
  const readNew = async (): Promise<boolean> => {
    const [found] = await db.rows({ name, sql, params: { since }, schema })
    if (found === undefined) return true
    const { hashes: newHashes, digest, newest, ...values } = found as z.output<typeof schema>
    for (const [index, hash] of (newHashes as readonly number[]).entries()) {
      const one = Object.fromEntries(
        names.map((column) => [column, (values as Record<string, unknown[]>)[column]?.[index]]),
      ) as z.output<z.ZodObject<S>>
      const key = toKey(one)
      const known = hashes.get(key)
      if (known === hash) continue
      sum += hash - (known ?? 0)
      hashes.set(key, hash)
      listener.change(one)
    }
    since = newest as number
    return sum === digest
  }
  const refresh = async () => {
    if (await readNew()) return
    clear()
    await readNew()
  }
  // One read after the other: an older result must not replace a newer one.
  let last: Promise<void> = Promise.resolve()
  return () => {
    last = last.catch(() => {}).then(refresh)
    return last
  }
}
