import { z } from 'zod'
import { IS_RUN_OF_PRICE, MOST_AHEAD_MS } from '../../shared/datasets/token-prices.ts'
import { groupBy } from '../../shared/group-by.ts'
import { HOUR_MS, type TimeRange, toBucketStart, toMs } from '../../shared/intervals.ts'
import type { Database } from '../../shared/store/store.ts'
import type { ConfirmationReplay, TakenOut } from '../job/define-job.ts'
import { confirmPrices } from './confirmation.ts'
import { createReplayedDecisions } from './replayed-decisions.ts'
import type { LastPrice } from './rule.ts'
import { findSuspects, OWN_MS, type PriceState, SUSPECTS_MS, UNCHANGED_MS } from './state.ts'
import { removePrices, toTakenOut, type WrongPrices } from './take-out.ts'

/** A price that a slot may read, and when it was stored. Times are Unix milliseconds. */
interface Observation {
  readonly at: number
  readonly price: number
  readonly provider: string
  readonly storedAt: number
}

type Row = Readonly<Record<string, unknown>>

const toKey = (token: number, at: number) => `${token} ${at}`
const keyOf = (row: object) => toKey(Number((row as Row).token), toMs(String((row as Row).observed_at)))

/**
 * Decides about the prices of a range again. `runs` are the starts of the replayed runs. The state before the range is
 * the stored one. In the range it follows from the replayed runs alone, so decisions that a faulty decoder has caused
 * have no effect.
 */
export function openPriceReplay(db: Database, range: TimeRange, runs: readonly number[]): ConfirmationReplay {
  const begin = toBucketStart(range.from, '5m')
  const observed = new Map<number, Map<number, Observation>>()
  const stored = createStoredPrices(db, runs)
  const decisions = createReplayedDecisions(db, { begin, end: range.to })
  /** The start of the run that has taken a price out. */
  const takenOutBy = new Map<string, number>()
  /** Start of the present run. */
  let now = begin

  const state: PriceState = {
    ...decisions.state,
    async readLastPrices(tokens, slot) {
      const last = new Map<number, LastPrice>()
      const prices = await stored.read(tokens, slot)
      for (const token of tokens) {
        const own = observed.get(token) ?? new Map<number, Observation>()
        const others = (prices.get(token) ?? []).filter(({ at, storedAt }) => !own.has(at) && storedAt <= now)
        const all = [...others, ...own.values()].filter(({ at }) => at >= slot - UNCHANGED_MS && at < slot - OWN_MS)
        const found = toLast(all.sort((a, b) => a.at - b.at))
        if (found !== undefined) last.set(token, found)
      }
      const older = await stored.readOlder(
        tokens.filter((token) => !last.has(token)),
        slot,
      )
      return new Map([...last, ...older])
    },
  }

  async function takeOut({ found }: WrongPrices, slot: number): Promise<readonly TakenOut[]> {
    const wrong = found.flatMap((one) =>
      [...(observed.get(one.token)?.values() ?? [])]
        .filter(({ provider, at }) => provider === one.provider && at >= one.since - OWN_MS && at < slot - OWN_MS)
        .map(({ at, price }) => toTakenOut(one, { observed_at: new Date(at).toISOString(), price })),
    )
    for (const { token, at } of wrong) {
      observed.get(token)?.delete(at)
      takenOutBy.set(toKey(token, at), now)
    }
    await state.writeSuspects(wrong, { state: 'taken_out', decidedSlot: slot })
    return wrong.map(({ token, provider, at }) => ({ entity: token, provider, at }))
  }

  return {
    async open(input, collectedAt) {
      now = collectedAt
      await decisions.load(input.entities.map(({ key }) => key))
      return confirmPrices({ state, takeOut }, input)
    },
    note(results, collectedAt) {
      // The oldest prices that the rule reads are a day old.
      const oldest = collectedAt - SUSPECTS_MS
      for (const { provider, rows } of results)
        for (const row of rows as readonly Row[]) {
          const [token, at] = [Number(row.token), toMs(String(row.observed_at))]
          const own = observed.get(token) ?? new Map<number, Observation>()
          observed.set(token, own)
          if (at >= oldest) own.set(at, { at, price: Number(row.price), provider, storedAt: collectedAt })
        }
      for (const own of observed.values()) for (const at of own.keys()) if (at < oldest) own.delete(at)
    },
    isTakenOut(row, collectedAt) {
      const by = takenOutBy.get(keyOf(row))
      return by !== undefined && collectedAt < by
    },
    async readTakenOutLater() {
      const found = await findSuspects(db, { from: begin - OWN_MS, to: range.to, decidedFrom: range.to })
      const takenOut = new Set(
        found.flatMap(({ state: own, token, at }) => (IS_TAKEN_OUT.has(own) ? [toKey(token, at)] : [])),
      )
      return (row) => takenOut.has(keyOf(row))
    },
    remove: (values) =>
      removePrices(
        db,
        values.map(({ entity, at }) => ({ token: entity, at })),
      ),
    store: () => decisions.store(),
  }
}

const IS_TAKEN_OUT: ReadonlySet<string> = new Set(['taking_out', 'taken_out'])

/** The last of prices in the order of time. */
function toLast(observed: readonly Observation[]): LastPrice | undefined {
  const last = observed.at(-1)
  if (last === undefined) return undefined
  const { at, price, provider } = last
  const other = observed.findLastIndex((one) => one.price !== price)
  return { at, price, provider, unchangedSince: observed[other + 1]?.at ?? at }
}

const storedRow = z.object({
  ...{ token: z.number(), at: z.int(), price: z.number(), provider: z.string(), storedAt: z.int() },
})
const olderRow = z.object({ token: z.number(), at: z.int(), price: z.number() })

const before = (name: string) => `fromUnixTimestamp64Milli({${name}: Int64}, 'UTC')`
const WITHIN = `token IN {tokens: Array(UInt64)} AND observed_at >= ${before('from')} AND observed_at < ${before('to')}`

/** Reads the stored prices that are not of the replayed runs, an hour at a time. */
function createStoredPrices(db: Database, runs: readonly number[]) {
  const hours = new Map<number, { tokens: ReadonlySet<number>; prices: ReadonlyMap<number, readonly Observation[]> }>()

  // The version of a stored price has the minutes from its time to the start of its run.
  async function readHour(tokens: readonly number[], from: number) {
    const cached = hours.get(from)
    if (cached !== undefined && tokens.every((token) => cached.tokens.has(token))) return cached.prices
    const all = [...new Set([...tokens, ...(cached?.tokens ?? [])])]
    const rows = await db.rows({
      name: 'replay-prices',
      sql: `SELECT p.token AS token, p.at AS at, p.price AS price, s.provider AS provider, p.at + p.minutes * 60000 AS storedAt
FROM (
  SELECT token, toUnixTimestamp64Milli(observed_at) AS at, price, toInt64(version % 268435456) AS minutes
  FROM token_prices FINAL WHERE ${WITHIN}
) AS p
LEFT JOIN (
  SELECT token, toUnixTimestamp64Milli(observed_at) AS at, provider FROM price_sources FINAL WHERE ${WITHIN}
) AS s ON s.token = p.token AND s.at = p.at
WHERE NOT arrayExists(run -> ${IS_RUN_OF_PRICE}, {runs: Array(Int64)})`,
      params: { tokens: all, from, to: from + HOUR_MS, runs: runs.filter((run) => run >= from - MOST_AHEAD_MS) },
      schema: storedRow,
    })
    const prices = groupBy(rows, ({ token }) => token)
    hours.set(from, { tokens: new Set(all), prices })
    for (const hour of hours.keys()) if (hour < from - 2 * UNCHANGED_MS) hours.delete(hour)
    return prices
  }

  return {
    /** The prices of the hours that the rule reads in a slot. */
    async read(tokens: readonly number[], slot: number): Promise<ReadonlyMap<number, readonly Observation[]>> {
      const found = new Map<number, Observation[]>()
      for (let hour = toBucketStart(slot - UNCHANGED_MS, '1h'); hour < slot; hour += HOUR_MS)
        for (const [token, prices] of await readHour(tokens, hour))
          found.set(token, [...(found.get(token) ?? []), ...prices])
      return found
    },
    /** The newest price before these hours, without its provider. */
    async readOlder(tokens: readonly number[], slot: number): Promise<ReadonlyMap<number, LastPrice>> {
      if (tokens.length === 0) return new Map()
      const rows = await db.rows({
        name: 'replay-older-prices',
        sql: `SELECT token, price, toUnixTimestamp64Milli(observed_at) AS at FROM token_prices FINAL
WHERE token IN {tokens: Array(UInt64)} AND observed_at < ${before('to')} ORDER BY token, observed_at DESC LIMIT 1 BY token`,
        params: { tokens, to: slot - UNCHANGED_MS },
        schema: olderRow,
      })
      return new Map(rows.map(({ token, price, at }) => [token, { price, at, unchangedSince: at, provider: '' }]))
    },
  }
}
