import { z } from 'zod'
import { NATIVE_COIN } from '../../../shared/datasets/treasury.ts'
import { groupBy } from '../../../shared/group-by.ts'
import { DAY_MS } from '../../../shared/intervals.ts'
import { findEntities } from '../rule-entities.ts'
import { formatTime } from '../state.ts'
import { type Evaluate, formatValue, NUMBER, type Result, toEntityFacts } from './condition.ts'

/** Chain, contract and symbol. The contract identifies an asset; without one, the symbol does on its chain. */
const asset = { chain: z.string(), contract: z.string().nullable(), symbol: z.string() }

const treasuryRow = z.object({
  dao: z.number(),
  at: z.int(),
  collectedAt: z.int(),
  source: z.string(),
  held: z.array(z.object({ ...asset, quantity: z.number(), valueUsd: z.number().nullable() })),
  unread: z.array(z.object(asset)),
  spam: z.array(z.object({ chain: z.string(), contract: z.string() })),
  isTotals: z.coerce.boolean(),
})

type TreasuryDay = Pick<z.infer<typeof treasuryRow>, 'at' | 'held' | 'unread' | 'spam' | 'isTotals'>
type Asset = z.infer<typeof treasuryRow>['unread'][number]

/** The amount of an asset when it was last read. */
interface Amount extends Asset {
  readonly at: number
  /** Null if it was not read yet. */
  readonly quantity: number | null
  readonly price: number | null
}

/**
 * The assets of a treasury on a day, by key. An asset that cannot be read has the amount of the day before. So has one
 * that the source marks as spam: it was not spent.
 */
interface Amounts {
  readonly byKey: ReadonlyMap<string, Amount>
  /** Chains of which an unnamed part was not read since the first day: any of their assets may be missing. */
  readonly unknownChains: ReadonlySet<string>
  readonly isTotals: boolean
}

const toKey = ({ chain, contract, symbol }: Asset) => JSON.stringify([chain, contract, contract === null ? symbol : ''])
const isUnnamed = ({ contract, symbol }: Asset) => contract === null && symbol === ''

/** Returns the assets of a day. `before` are those of the previous day from the same source, if there is one. */
export function toAmounts({ at, held, unread, spam, isTotals }: TreasuryDay, before?: Amounts): Amounts {
  const byKey = new Map<string, Amount>()
  const addTo = ({ chain, contract, symbol, quantity, valueUsd }: TreasuryDay['held'][number]) => {
    const key = toKey({ chain, contract, symbol })
    const sum = byKey.get(key)
    // Totals per token have no contracts: two of one symbol are two tokens that cannot be distinguished.
    const total = sum === undefined ? quantity : isTotals || sum.quantity === null ? null : sum.quantity + quantity
    const price = valueUsd !== null && quantity > 0 ? valueUsd / quantity : null
    byKey.set(key, { chain, contract, symbol, at, quantity: total, price: price ?? sum?.price ?? null })
  }
  held.forEach(addTo)
  const lostChains = new Set(unread.filter(isUnnamed).map(({ chain }) => chain))
  const lost = new Map(unread.filter((one) => !isUnnamed(one)).map((one) => [toKey(one), one]))
  for (const [key, one] of [...byKey, ...(before?.byKey ?? [])]) if (lostChains.has(one.chain)) lost.set(key, one)
  const absent = before === undefined ? null : 0
  for (const [key, { chain, contract, symbol }] of lost) {
    const isUnknown = before?.unknownChains.has(chain) === true
    const never = { chain, contract, symbol, at, quantity: isUnknown ? null : absent, price: null }
    byKey.set(key, before?.byKey.get(key) ?? never)
  }
  for (const one of spam) {
    const key = toKey({ ...one, symbol: '' })
    byKey.set(key, before?.byKey.get(key) ?? { ...one, symbol: '', at, quantity: null, price: null })
  }
  const unknownChains = [...lostChains].filter((chain) => before === undefined || before.unknownChains.has(chain))
  return { byKey, unknownChains: new Set(unknownChains), isTotals }
}

type Movement = Asset & { readonly usd: number; readonly quantity: number; readonly from: number }

/**
 * The largest movement of an asset between two days of a treasury, at the prices of the later day; null without one.
 * `from` is the time of the earlier amount.
 */
export function findMovement(before: Amounts, after: Amounts, direction: 'in' | 'out' | 'any'): Movement | null {
  if (before.isTotals !== after.isTotals) return null
  const keys = new Set([...before.byKey.keys(), ...after.byKey.keys()])
  const moves = [...keys].flatMap((key): Movement[] => {
    const [earlier, later] = [before.byKey.get(key), after.byKey.get(key)]
    const known = later ?? earlier
    const price = later?.price ?? earlier?.price ?? null
    if (known === undefined || price === null || before.unknownChains.has(known.chain)) return []
    const [old, now] = [earlier ? earlier.quantity : 0, later ? later.quantity : 0]
    if (old === null || now === null || now === old) return []
    const quantity = now - old
    if (direction !== 'any' && quantity > 0 !== (direction === 'in')) return []
    const { chain, contract, symbol } = known
    return [{ chain, contract, symbol, quantity, usd: quantity * price, from: earlier?.at ?? Number.NaN }]
  })
  const size = ({ usd }: Movement) => Math.abs(usd)
  return moves.reduce<Movement | null>((most, one) => (most && size(most) >= size(one) ? most : one), null)
}

const TREASURY_WITHIN_MS = 8 * DAY_MS

/** The contract of an asset in a text: two tokens may have the same symbol. */
const toContractText = ({ chain, contract }: Asset) =>
  contract === null || contract === NATIVE_COIN ? '' : ` (${contract} on ${chain})`

const NAMED = 'chain String, contract Nullable(String), symbol String'
const HELD = `Array(Tuple(${NAMED}, quantity Float64, valueUsd Nullable(Float64)))`
const SQL = `SELECT dao, toUnixTimestamp64Milli(observed_at) AS at, toUnixTimestamp64Milli(collected_at) AS collectedAt, source,
  empty(holdings) AS isTotals,
  if(isTotals,
    CAST(arrayMap(one -> tuple('', NULL, one.symbol, one.quantity, one.value_usd), tokens), '${HELD}'),
    CAST(arrayMap(one -> tuple(one.chain, one.contract, one.symbol, one.quantity, one.value_usd), holdings), '${HELD}')) AS held,
  CAST(arrayMap(one -> tuple(one.chain, one.contract, one.symbol), unread), 'Array(Tuple(${NAMED}))') AS unread, spam
FROM dao_treasuries FINAL WHERE observed_at >= fromUnixTimestamp64Milli({since: Int64}, 'UTC') ORDER BY dao, observed_at`

export const evaluateTreasuries: Evaluate<'treasury'> = async (rules, { db, registry, now }) => {
  const rows = await db.rows({
    name: 'alert-treasuries',
    sql: SQL,
    params: { since: now - TREASURY_WITHIN_MS },
    schema: treasuryRow,
  })
  const byDao = new Map([...groupBy(rows, ({ dao }) => dao)].map(([dao, days]) => [dao, toComparable(days)]))
  return new Map(
    rules.map((rule): [string, Result] => {
      const { movedUsd, direction } = rule.what
      const events = (findEntities(rule, registry) ?? []).flatMap((entity) =>
        (byDao.get(entity.key) ?? []).flatMap(({ day, previous, before, after }) => {
          const moved = findMovement(before, after, direction)
          if (moved === null || Math.abs(moved.usd) < movedUsd) return []
          const from = Number.isNaN(moved.from) ? previous.at : moved.from
          return {
            ...toEntityFacts(entity, '/data/daos/treasury/historic'),
            // A back-fill collects earlier days again, which are no news.
            ...{
              subject: `${entity.id} ${day.at}`,
              at: Math.min(day.collectedAt, day.at + DAY_MS),
              observedAt: day.at,
            },
            ...{ value: moved.usd, before: null, threshold: movedUsd, unit: 'USD' },
            describe: () => ({
              title: `${entity.name}: treasury ${moved.usd > 0 ? 'received' : 'spent'} ${formatValue(Math.abs(moved.usd), 'USD')} of ${moved.symbol}`,
              text: `${NUMBER.format(Math.abs(moved.quantity))} ${moved.symbol}${toContractText(moved)} between ${formatTime(from)} and ${formatTime(day.at)}.`,
            }),
          }
        }),
      )
      return [rule.name, { type: 'events', events }]
    }),
  )
}

type Row = z.infer<typeof treasuryRow>

/** Pairs each day with the day before it, if both are of one source: two sources count different assets. */
function toComparable(days: readonly Row[]) {
  const pairs: { day: Row; previous: Row; before: Amounts; after: Amounts }[] = []
  let last: { readonly day: Row; readonly amounts: Amounts } | undefined
  for (const day of days) {
    const earlier = last?.day.source === day.source ? last : undefined
    const amounts = toAmounts(day, earlier?.amounts)
    if (earlier !== undefined) pairs.push({ day, previous: earlier.day, before: earlier.amounts, after: amounts })
    last = { day, amounts }
  }
  return pairs
}
