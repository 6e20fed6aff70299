import { z } from 'zod'
import { toMarketCaps } from '../../shared/datasets/market-cap.ts'
import { toTreasuryValues } from '../../shared/datasets/treasury-value.ts'
import { DAY_MS } from '../../shared/intervals.ts'
import { toLifetimes } from '../../shared/registry/ends.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import type { Database } from '../../shared/store/store.ts'

/** Most inputs of an answer; the others are counted. */
const MOST_INPUTS = 200

interface Sum {
  readonly dataset: string
  readonly kind: 'token' | 'dao'
  /** SQL of the members' values of a day, with the key of the member as `entity`. */
  readonly sql: string
}

/** The members of the daily sums, as the computation selects them. */
const SUMS: Readonly<Record<string, Sum>> = {
  'market-cap': {
    dataset: 'prices',
    kind: 'token',
    sql: `SELECT member AS entity, usd, count() OVER () AS total FROM (${toMarketCaps()})`,
  },
  'treasury-value': {
    dataset: 'treasury',
    kind: 'dao',
    sql: `SELECT member.1 AS entity, usd, count() OVER () AS total FROM (${toTreasuryValues()})`,
  },
}

const member = z.object({ entity: z.int(), usd: z.number(), total: z.int() })

/** The stored values that a computed value follows from, largest first, and the number of others. */
export async function readInputs(
  { db, registry }: { readonly db: Database; readonly registry: Registry },
  { dataset, at }: { readonly dataset: string; readonly at: number },
) {
  const sum = SUMS[dataset]
  if (sum === undefined) return { computedFrom: [], more: 0 }
  const members = sum.kind === 'token' ? registry.tokens : registry.daos
  const rows = await db.rows({
    name: 'provenance-inputs',
    sql: `${sum.sql} ORDER BY usd DESC LIMIT ${MOST_INPUTS}`,
    params: { ...toLifetimes(members), from: at, to: at + DAY_MS },
    schema: member,
  })
  const named = new Map(members.map(({ key, id, name }) => [key, { type: sum.kind, id, name }]))
  // The first value of the day counts, so the newest one before the day's end may be a later one.
  const observedAt = new Date(at).toISOString()
  const computedFrom = rows.map(({ entity, usd }) => {
    const found = named.get(entity) ?? null
    const query = found === null ? '' : `&id=${found.id}`
    const request = `/data/provenance?dataset=${sum.dataset}${query}&at=${observedAt}`
    return { dataset: sum.dataset, entity: found, observedAt, values: { usd }, request }
  })
  return { computedFrom, more: Math.max(0, (rows[0]?.total ?? 0) - rows.length) }
}
