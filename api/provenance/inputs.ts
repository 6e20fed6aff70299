import { z } from 'zod'
import { toMarketCaps } from '../../shared/datasets/market-cap.ts'
import { IS_WHOLE } from '../../shared/datasets/treasury.ts'
import { toTreasuryValues } from '../../shared/datasets/treasury-value.ts'
import { DAY_MS, isWithin, toMs } from '../../shared/intervals.ts'
import { toLifetimes } from '../../shared/registry/ends.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import type { Database } from '../../shared/store/store.ts'
import { readSlotPrices } from '../basket/runs.ts'
import type { StoredValue } from './trace.ts'

/** Most inputs of an answer; the others are counted. */
const MOST_INPUTS = 200

interface Sum {
  readonly dataset: string
  readonly kind: 'token' | 'dao'
  /** SQL of the members' values of a day, with the key of the member as `entity`. */
  readonly sql: string
  /** SQL of the stored rows of the members, and the condition that a row counts. */
  readonly table: string
  readonly counts: string
}

/** The members of the daily sums, as the computation selects them. */
const SUMS: Readonly<Record<string, Sum>> = {
  'market-cap': {
    ...{ dataset: 'prices', kind: 'token', table: 'token_prices', counts: 'market_cap > 0' },
    sql: `SELECT member AS entity, usd FROM (${toMarketCaps()})`,
  },
  'treasury-value': {
    ...{ dataset: 'treasury', kind: 'dao', table: 'dao_treasuries', counts: `value_usd > 0 AND ${IS_WHOLE}` },
    sql: `SELECT member.1 AS entity, usd FROM (${toTreasuryValues()})`,
  },
}

const member = z.object({ entity: z.int(), usd: z.number(), total: z.int(), at: z.int() })

interface Stores {
  readonly db: Database
  readonly registry: Registry
}

/** The stored values that a computed value follows from, largest first, and the number of others. */
export async function readInputs(stores: Stores, { dataset, value }: { dataset: string; value: StoredValue }) {
  if (dataset === 'index') return readIndexMembers(stores, value)
  const sum = SUMS[dataset]
  return sum === undefined ? { computedFrom: [], more: 0 } : readSummed(stores, sum, value.at)
}

/** The members of a daily sum with the time of the row that counts: the first one of the day that has a value. */
async function readSummed({ db, registry }: Stores, { dataset, kind, sql, table, counts }: Sum, day: number) {
  const members = kind === 'token' ? registry.tokens : registry.daos
  const rows = await db.rows({
    name: 'provenance-inputs',
    sql: `SELECT entity, usd, count() OVER () AS total, toUnixTimestamp64Milli(first_at) AS at
FROM (${sql}) AS members
LEFT JOIN (
  SELECT ${kind} AS entity, min(observed_at) AS first_at FROM ${table} FINAL
  WHERE ${isWithin('observed_at')} AND ${counts} GROUP BY ${kind}
) AS firsts USING (entity)
ORDER BY usd DESC LIMIT ${MOST_INPUTS}`,
    params: { ...toLifetimes(members), from: day, to: day + DAY_MS },
    schema: member,
  })
  const named = new Map(members.map((one) => [one.key, one]))
  const computedFrom = rows.map(({ entity, usd, at }) =>
    // Without a match, the join has the first moment of 1970.
    toInput(dataset, { kind, entity: named.get(entity), at: at === 0 ? day : at, values: { usd } }),
  )
  return { computedFrom, more: Math.max(0, (rows[0]?.total ?? 0) - rows.length) }
}

/** The quantities of the active composition with the prices of the slot, which add up to a value of the Index. */
async function readIndexMembers({ db, registry: { index } }: Stores, { at, values }: StoredValue) {
  const composition = index.compositions.find(({ id }) => id === values.composition)
  // Compositions that the registry does not have any more are about to be computed again.
  if (composition === undefined) return { computedFrom: [], more: 0 }
  const slot = toMs(String(values.created_at))
  const keys = composition.elements.map(({ token }) => token.key)
  const priceIn = await readSlotPrices(db, keys, [slot])
  const inputs = composition.elements.map(({ token, quantity }) => {
    const price = priceIn(token.key, slot) ?? null
    const usd = price === null ? null : Number(quantity) * price
    return { usd: usd ?? 0, input: { kind: 'token' as const, entity: token, at, values: { usd, quantity, price } } }
  })
  const sorted = inputs.sort((a, b) => b.usd - a.usd)
  return {
    computedFrom: sorted.slice(0, MOST_INPUTS).map(({ input }) => toInput('prices', input)),
    more: Math.max(0, inputs.length - MOST_INPUTS),
  }
}

function toInput(
  dataset: string,
  input: {
    readonly kind: Sum['kind']
    readonly entity: { readonly id: string; readonly name: string } | undefined
    readonly at: number
    readonly values: Readonly<Record<string, unknown>>
  },
) {
  const { kind, entity: found, at, values } = input
  const observedAt = new Date(at).toISOString()
  const query = found === undefined ? '' : `&id=${found.id}`
  return {
    dataset,
    entity: found === undefined ? null : { type: kind, id: found.id, name: found.name },
    observedAt,
    values,
    request: `/data/provenance?dataset=${dataset}${query}&at=${observedAt}`,
  }
}
