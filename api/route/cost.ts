import { z } from 'zod'
import { DAY_MS, INTERVAL_SECONDS, INTERVALS, type Interval } from '../../shared/intervals.ts'

/** A request costs one unit, and if its answer is not cached another one for each of this many stored values. */
const VALUES_PER_UNIT = 5_000
/** Values that count for a list which ClickHouse searches as a whole, such as the votes of a DAO. */
export const VALUES_PER_LIST = 20_000

/** The range of a query: from its start, or none, until its end or now. In milliseconds. */
function toLength({ start, end }: Readonly<Record<string, unknown>>, now: number): number {
  if (typeof start !== 'number') return 0
  return Math.max(0, Math.min(typeof end === 'number' ? end : now, now) - start)
}

/** Days of a query. */
export const countDays = (query: Readonly<Record<string, unknown>>, now: number): number =>
  Math.ceil(toLength(query, now) / DAY_MS)

/** The finest interval of a parameter. */
function findFinest(schema: z.ZodType | undefined): Interval | undefined {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault) return findFinest(schema.unwrap() as z.ZodType)
  return schema instanceof z.ZodEnum ? INTERVALS.find((one) => one === schema.options[0]) : undefined
}

/**
 * Estimates the stored values behind the answer to a query: of a series its buckets, of each entity; of a list a fixed
 * number for each further entity.
 */
export function estimateValues(
  shape: Readonly<Record<string, z.ZodType>>,
  query: Readonly<Record<string, unknown>>,
  { entities, now }: { readonly entities: number; readonly now: number },
): number {
  const finest = findFinest(shape.interval)
  if (finest === undefined) return Math.max(0, entities - 1) * VALUES_PER_LIST
  // A table of several entities has the default of `limit` for each.
  const { interval = finest, points, limit = shape.limit?.safeParse(undefined).data } = query
  const buckets = toLength(query, now) / (INTERVAL_SECONDS[interval as Interval] * 1000)
  const most = [buckets, points, limit].filter((one) => typeof one === 'number')
  return Math.max(1, entities) * Math.ceil(Math.min(...most))
}

/** The units of a request whose answer is not cached (docs/contract.md, section 11). */
export const toUnits = (values: number): number => 1 + Math.floor(values / VALUES_PER_UNIT)
