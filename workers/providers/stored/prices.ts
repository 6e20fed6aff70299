import { z } from 'zod'
import { type IndexPointRow, SLOT_PRICES } from '../../../shared/datasets/index-points.ts'
import { INTERVAL_SECONDS, type TimeRange, toBucketStart } from '../../../shared/intervals.ts'
import type { BasketIndex, Composition } from '../../../shared/registry/index-records.ts'
import type { Database } from '../../../shared/store/store.ts'
import type { Logger } from '../../../shared/telemetry/log.ts'
import type { Candidate, Provider } from '../../job/define-job.ts'
import type { IndexSource } from '../contracts/index-points.ts'

const SLOT_MS = INTERVAL_SECONDS['5m'] * 1000

/** A range of whole slots with one active composition. */
interface CompositionRange extends TimeRange {
  readonly composition: Composition
}

/**
 * Computes the index from the stored prices. The same prices give the same points, independent of the time of the
 * computation and of how the range is split (docs/contract.md, section 4).
 */
export const storedPrices: Provider<IndexSource, BasketIndex> = {
  name: 'stored-prices',
  cost: 'free',
  covers: () => true,
  connect: ({ db, log }) => ({
    async fetchPoints(index, range, signal) {
      const rows: Candidate<IndexPointRow>[][] = []
      for (const own of toCompositionRanges(index, range)) rows.push(await fetchRange(db, log, index, own, signal))
      return rows.flat()
    },
  }),
}

/** Splits a range where another composition becomes active. A slot uses the composition that is active at its start. */
export function toCompositionRanges(index: BasketIndex, range: TimeRange): CompositionRange[] {
  return index.compositions.flatMap((composition, at) => {
    const next = index.compositions[at + 1]?.validFrom ?? Number.POSITIVE_INFINITY
    const from = Math.max(toBucketStart(range.from, '5m'), toSlotAfter(Math.max(composition.validFrom, index.launch)))
    const to = Math.min(toSlotAfter(range.to), toSlotAfter(next))
    return from < to ? [{ composition, from, to }] : []
  })
}

/** Returns the first slot that begins at or after a time. */
const toSlotAfter = (ms: number) => Math.ceil(ms / SLOT_MS) * SLOT_MS

const point = z.object({ at: z.int(), read_at: z.string(), observed_at: z.string(), value: z.number() })
const computedPoint = point.extend({ lacking: z.array(z.number()) })
const storedPoint = point.extend({ composition: z.string() })

type Point = z.infer<typeof storedPoint>

// The sum uses the order of the parameters, because float sums depend on their order.
const COMPUTED = `
SELECT toUnixTimestamp(slot) * 1000 AS at, now64(3, 'UTC') AS read_at, newest_at AS observed_at,
  arrayFilter(token -> NOT has(present, token), {tokens: Array(UInt64)}) AS lacking,
  arraySum((token, quantity) -> quantity * mapFromArrays(present, prices)[token],
    {tokens: Array(UInt64)}, {quantities: Array(Float64)}) AS value
FROM
(
  SELECT slot, groupArray(token) AS present, groupArray(first_price) AS prices, max(first_at) AS newest_at
  FROM
  (
    ${SLOT_PRICES}
  )
  GROUP BY slot
)
ORDER BY slot`

const STORED = `
SELECT toUnixTimestamp64Milli(created_at) AS at, now64(3, 'UTC') AS read_at, observed_at, value_usd AS value, composition
FROM index_points FINAL
WHERE index_key = {index: UInt64}
  AND created_at >= fromUnixTimestamp64Milli({from: Int64}, 'UTC')
  AND created_at < fromUnixTimestamp64Milli({to: Int64}, 'UTC')`

/** Returns the new and changed points of a range, and retractions of stored points that are no longer valid. */
async function fetchRange(
  db: Database,
  log: Logger,
  index: BasketIndex,
  { composition, from, to }: CompositionRange,
  signal: AbortSignal,
): Promise<Candidate<IndexPointRow>[]> {
  const members = composition.elements.toSorted((a, b) => a.token.key - b.token.key)
  const tokens = members.map(({ token }) => token.key)
  const quantities = members.map(({ quantity }) => Number(quantity))
  const params = { from, to, tokens, quantities, index: index.key }
  // A retraction has the time at which its point was read. Points are read before prices, so that a point computed from
  // prices read later wins over the retraction.
  const stored = await db.rows({ name: 'index-stored', sql: STORED, params, schema: storedPoint, signal })
  const computed = await db.rows({ name: 'index-computed', sql: COMPUTED, params, schema: computedPoint, signal })
  logIncomplete(log, composition, computed)
  const points = computed.flatMap(({ lacking, ...point }) =>
    lacking.length > 0 ? [] : [{ ...point, composition: composition.id }],
  )
  const before = new Map(stored.map((point) => [point.at, point]))
  const after = new Set(points.map(({ at }) => at))
  const changed = points.filter((point) => !isSame(before.get(point.at), point))
  return [
    ...changed.map((point) => toRow(index, point, false)),
    ...stored.filter(({ at }) => !after.has(at)).map((point) => toRow(index, point, true)),
  ]
}

function isSame(before: Point | undefined, { value, composition, observed_at }: Point): boolean {
  return before?.value === value && before.composition === composition && before.observed_at === observed_at
}

function toRow(index: BasketIndex, point: Point, isRetracted: boolean): Candidate<IndexPointRow> {
  return {
    index_key: index.key,
    created_at: new Date(point.at).toISOString(),
    observed_at: point.observed_at,
    value_usd: point.value,
    composition: point.composition,
    is_retracted: isRetracted,
    computed_at: point.read_at,
  }
}

/**
 * Logs the slots without a point. If only some members have a price, there is no point: without a member, it would be
 * the value of a different basket.
 */
function logIncomplete(log: Logger, { elements }: Composition, computed: readonly z.infer<typeof computedPoint>[]) {
  const incomplete = computed.filter(({ lacking }) => lacking.length > 0)
  if (incomplete.length === 0) return
  const counts: Record<string, number> = {}
  for (const key of incomplete.flatMap(({ lacking }) => lacking)) {
    const symbol = elements.find(({ token }) => token.key === key)?.token.symbol ?? String(key)
    counts[symbol] = (counts[symbol] ?? 0) + 1
  }
  log.info({ incomplete: incomplete.length, of: computed.length, lacking: counts }, 'slots without an index point')
}
