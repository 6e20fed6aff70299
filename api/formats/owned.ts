import { z } from 'zod'
import { idValue } from '../../shared/record-values.ts'
import type { Entity } from '../../shared/registry/entities.ts'
import { toObject } from './columns.ts'
import type { Representation } from './representation.ts'

/** Tables of several owners: owner after owner in the order of their ids, with columns of the owner first. */
export interface Owned {
  /** Set if there is one owner only: its rows then have no columns of the owner. */
  readonly isOne: boolean
  readonly representation: Representation
  /** Parameters of the statements with the SQL below. */
  readonly params: Readonly<Record<string, unknown>>
  /** SQL for the id of a row's owner. */
  readonly id: string
  /** SQL for the record of a row, from that of its values. */
  toRecord(values: string): string
}

/** SQL for the condition on a column with the owner's key: one of the parameter `entities`. */
export const IS_ANY = 'IN {entities: Array(UInt64)}'

/** The documentation of a route with tables of several owners. */
export const inTables = (noun: string) =>
  `With another format than JSON the route takes several ${noun}s, each by its id or name: ${noun} after ${noun} in the order of their ids, with the columns \`id\` and \`name\` first; \`limit\` counts the rows of all together.`

/**
 * The form of the rows of some owners. `column` is the column with the owner's key. `more` are further columns of the
 * owner, after `id` and `name`, which `record` does not have; a row has them under the same names.
 */
export function toOwned(
  call: { readonly entities: readonly Pick<Entity, 'id' | 'key' | 'name'>[]; readonly representation: Representation },
  record: z.ZodObject,
  column: string,
  more: z.ZodRawShape = {},
): Owned {
  const { entities, representation } = call
  const labelOf = (list: string) => `transform(${column}, {owners: Array(UInt64)}, {${list}: Array(String)}, '')`
  const id = labelOf('ids')
  const params = {
    ...{ owners: entities.map(({ key }) => key), ids: entities.map((one) => one.id) },
    names: entities.map(({ name }) => name),
  }
  const others = Object.keys(more)
  if (entities.length === 1 && others.length === 0)
    return { isOne: true, representation, params, id, toRecord: (values) => toObject(record, values) }
  const owner = {
    id: idValue.describe('Id of the owner of the row.'),
    name: z.string().describe('Name of the owner of the row.'),
    ...more,
  }
  const owned = z.strictObject({ ...owner, ...record.shape })
  return {
    isOne: false,
    representation: {
      ...representation,
      record: owned,
      fields: [...Object.keys(owner), ...representation.fields],
    },
    params,
    id,
    toRecord: (values) => toObject(owned, [id, labelOf('names'), ...others, values].join(', ')),
  }
}

/** Rows of an owner, by its key. */
interface OwnerCount {
  readonly owner: number
  readonly rows: number
}

/**
 * The owners with the rows of a page: the first ones that together have more than `limit` rows, or all. Counts the rows of
 * `size` owners. If these have too few rows, counts twice as many owners, so a page does not read the rows of all owners.
 * `count` may stop after `most` rows, and may return fewer rows than an owner has, but not more.
 */
export async function findOwnersOfPage<Count extends OwnerCount>(
  keys: readonly number[],
  { limit, size }: { readonly limit: number; readonly size: number },
  count: (owners: readonly number[], most: number) => Promise<readonly Count[]>,
): Promise<{ readonly owners: readonly number[]; readonly counts: ReadonlyMap<number, Count> }> {
  const owners: number[] = []
  const counts = new Map<number, Count>()
  let rows = 0
  let read = 0
  for (const key of keys) {
    if (rows > limit) break
    if (owners.length === read) {
      const batch = keys.slice(read, read + (read === 0 ? size : read))
      for (const one of await count(batch, limit + 1 - rows)) counts.set(one.owner, one)
      read += batch.length
    }
    owners.push(key)
    rows += counts.get(key)?.rows ?? 0
  }
  return { owners, counts }
}
