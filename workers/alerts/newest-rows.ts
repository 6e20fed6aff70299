import { z } from 'zod'
import type { Database } from '../../shared/store/store.ts'

/** A replacing table with the time `written_at` of each row. */
interface Source<S extends z.ZodRawShape> {
  readonly name: string
  readonly table: string
  /** SQL of each member of a row. */
  readonly columns: Readonly<Record<keyof S & string, string>>
  readonly row: z.ZodObject<S>
  /** The table's sorting key. */
  readonly toKey: (row: z.output<z.ZodObject<S>>) => string
}

/**
 * Creates a function that returns all rows of a table. They stay in memory: a read returns only the rows that were written
 * after the newest known one, and the sum of the hashes of all rows. If another process has stored rows with an earlier
 * time, the sum differs, and all rows are read again. Later reads change nothing that was returned. ClickHouse writes the
 * rows as one record of columns, in which each name occurs once.
 */
export function createNewestRows<S extends z.ZodRawShape>(
  db: Database,
  { name, table, columns, row, toKey }: Source<S>,
): () => Promise<readonly z.output<z.ZodObject<S>>[]> {
  const names = Object.keys(row.shape)
  // An aggregate function skips nulls, but not tuples of them. Sums of millions of hashes of 32 bits are exact numbers in JavaScript.
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
  let known = new Map<string, { readonly hash: number; readonly row: z.output<z.ZodObject<S>> }>()
  let [since, sum] = [0, 0]

  const forget = () => {
    known = new Map()
    ;[since, sum] = [0, 0]
  }
  /** Returns whether the known rows are those of the table. */
  const readNew = async (): Promise<boolean> => {
    const [found] = await db.rows({ name, sql, params: { since }, schema })
    if (found === undefined) return true
    const { hashes, digest, newest, ...values } = found as z.output<typeof schema>
    for (const [index, hash] of (hashes as readonly number[]).entries()) {
      const one = Object.fromEntries(
        names.map((column) => [column, (values as Record<string, unknown[]>)[column]?.[index]]),
      ) as z.output<z.ZodObject<S>>
      const key = toKey(one)
      sum += hash - (known.get(key)?.hash ?? 0)
      known.set(key, { hash, row: one })
    }
    since = newest as number
    return sum === digest
  }
  const refresh = async () => {
    if (!(await readNew())) {
      forget()
      await readNew()
    }
    return [...known.values()].map((one) => one.row)
  }
  // One read after the other: an older result must not replace a newer one.
  let last: Promise<unknown> = Promise.resolve()
  return () => {
    const read = last.catch(() => {}).then(refresh)
    last = read
    return read
  }
}
