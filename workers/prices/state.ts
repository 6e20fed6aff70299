import { z } from 'zod'
import { HOUR_MS, toMs } from '../../shared/intervals.ts'
import type { Database } from '../../shared/store/store.ts'
import type { Decided, LastPrice, Memory, Suspect } from './rule.ts'

/** Suspects older than this no longer matter to the rule, which waits at most a day. */
export const SUSPECTS_MS = 26 * HOUR_MS
/** The rule compares unchanged prices of at most six hours. */
export const UNCHANGED_MS = 7 * HOUR_MS
/** Prices observed later belong to the slot itself, if it is decided again. */
export const OWN_MS = 2 * 60_000

/** The state of tokens before a slot, and after it. */
export interface PriceState {
  readLastPrices(tokens: readonly number[], slot: number): Promise<ReadonlyMap<number, LastPrice>>
  readMemories(tokens: readonly number[], slot: number): Promise<FoundMemories>
  readSuspects(tokens: readonly number[], slot: number): Promise<readonly FoundSuspect[]>
  writeMemories(slot: number, memories: ReadonlyMap<number, Memory>): Promise<void>
  writeSuspects(suspects: readonly StoredSuspect[], change: SuspectChange): Promise<void>
}

/** The state in the database. */
export const openPriceState = (db: Database): PriceState => ({
  readLastPrices: (tokens, slot) => readLastPrices(db, tokens, slot),
  readMemories: (tokens, slot) => readMemories(db, tokens, slot),
  readSuspects: (tokens, slot) => readSuspects(db, tokens, slot),
  writeMemories: (slot, memories) => writeMemories(db, slot, memories),
  writeSuspects: (suspects, change) => writeSuspects(db, suspects, change),
})

/** The states before a slot, and the tokens for which an earlier attempt of the slot has written one. */
export interface FoundMemories {
  readonly before: ReadonlyMap<number, Memory>
  readonly written: ReadonlySet<number>
}

/** The new state of suspects, and the slot that decides it. */
export interface SuspectChange {
  readonly state: SuspectState
  readonly decidedSlot: number
}

const lastRow = z.object({
  token: z.number(),
  price: z.number(),
  at: z.int(),
  unchangedSince: z.int(),
  provider: z.string(),
})

const time = 'toUnixTimestamp64Milli'
const at = (name: string) => `fromUnixTimestamp64Milli({${name}: Int64}, 'UTC')`

/** The last price of each token before a slot. Older prices are read from the newest quotes. */
async function readLastPrices(
  db: Database,
  tokens: readonly number[],
  slot: number,
): Promise<ReadonlyMap<number, LastPrice>> {
  const rows = await db.rows({
    name: 'last-prices',
    sql: `SELECT l.token AS token, l.price AS price, l.at AS at, l.since AS unchangedSince, s.provider AS provider
FROM
(
  SELECT token, arraySort(groupArray((${time}(observed_at), p.price))) AS observed, observed[-1].2 AS price, observed[-1].1 AS at,
    observed[arrayLastIndex(one -> one.2 != observed[-1].2, observed) + 1].1 AS since
  FROM (SELECT token, observed_at, price FROM token_prices FINAL
    WHERE token IN {tokens: Array(UInt64)} AND observed_at >= ${at('from')} AND observed_at < ${at('to')}) AS p
  GROUP BY token
) AS l
LEFT JOIN
(
  SELECT token, ${time}(observed_at) AS at, provider FROM price_sources FINAL
  WHERE token IN {tokens: Array(UInt64)} AND observed_at >= ${at('from')} AND observed_at < ${at('to')}
) AS s ON s.token = l.token AND s.at = l.at
UNION ALL
SELECT token, price, ${time}(observed_at) AS at, ${time}(observed_at) AS unchangedSince, '' AS provider
FROM token_quotes FINAL WHERE token IN {tokens: Array(UInt64)} AND observed_at < ${at('from')}`,
    params: { tokens, from: slot - UNCHANGED_MS, to: slot - OWN_MS },
    schema: lastRow,
  })
  return new Map(rows.map(({ token, ...last }) => [token, last]))
}

const exclusion = z.object({
  provider: z.string(),
  since: z.string(),
  recovered: z.number(),
  frozen_at: z.number().nullable(),
})
const memoryRow = z.object({
  token: z.number(),
  slot: z.string(),
  exclusions: z.array(exclusion),
  difference_at: z.string().nullable(),
  gaps: z.record(z.string(), z.number()),
})

async function readMemories(db: Database, tokens: readonly number[], slot: number): Promise<FoundMemories> {
  const rows = await db.rows({
    name: 'price-checks',
    sql: `SELECT token, slot, exclusions, difference_at, gaps FROM price_checks FINAL
WHERE token IN {tokens: Array(UInt64)} AND slot <= ${at('slot')} ORDER BY slot DESC LIMIT 2 BY token`,
    params: { tokens, slot },
    schema: memoryRow,
  })
  const [before, written] = [new Map<number, Memory>(), new Set<number>()]
  for (const { token, slot: writtenIn, exclusions, difference_at, gaps } of rows) {
    if (toMs(writtenIn) >= slot) written.add(token)
    else if (!before.has(token))
      before.set(token, {
        exclusions: exclusions.map(({ since, frozen_at, ...one }) => ({
          ...one,
          since: toMs(since),
          frozenAt: frozen_at,
        })),
        differenceAt: difference_at === null ? null : toMs(difference_at),
        gaps,
      })
  }
  return { before, written }
}

export async function writeMemories(db: Database, slot: number, memories: ReadonlyMap<number, Memory>): Promise<void> {
  const rows = [...memories].map(([token, { exclusions, differenceAt, gaps }]) => ({
    token,
    slot: toText(slot),
    exclusions: exclusions.map(({ since, frozenAt, ...one }) => ({
      ...one,
      since: toText(since),
      frozen_at: frozenAt,
    })),
    difference_at: differenceAt === null ? null : toText(differenceAt),
    gaps,
  }))
  if (rows.length > 0) await db.insert({ table: 'price_checks', rows })
}

const toText = (ms: number) => new Date(ms).toISOString()

/** A suspect with the row that is stored at its release. */
export interface StoredSuspect extends Suspect {
  readonly token: number
  readonly row: Readonly<Record<string, unknown>>
  readonly lastPrice: number | null
  readonly lastAt: number | null
  readonly reason: string
}

const STATES = ['suspect', 'released', 'taking_out', 'taken_out'] as const
export type SuspectState = (typeof STATES)[number]

export interface FoundSuspect extends StoredSuspect {
  readonly state: SuspectState
}

const suspectRow = z.object({
  token: z.number(),
  slot: z.string(),
  provider: z.string(),
  observed_at: z.string(),
  price: z.number(),
  others: z.array(z.object({ provider: z.string(), price: z.number(), observed_at: z.string() })),
  last_price: z.number().nullable(),
  last_at: z.string().nullable(),
  reason: z.string(),
  is_withheld: z.boolean(),
  state: z.enum(STATES),
  quote: z.string(),
})

const COLUMNS =
  'token, slot, provider, observed_at, price, others, last_price, last_at, reason, is_withheld, state, quote'

function toSuspect(row: z.infer<typeof suspectRow>): FoundSuspect {
  const { observed_at, is_withheld, last_price, last_at, quote, others, slot, ...rest } = row
  return {
    ...rest,
    slot: toMs(slot),
    at: toMs(observed_at),
    others: others.map((one) => ({ provider: one.provider, price: one.price, at: toMs(one.observed_at) })),
    isWithheld: is_withheld,
    lastPrice: last_price,
    lastAt: last_at === null ? null : toMs(last_at),
    row: z.record(z.string(), z.unknown()).parse(JSON.parse(quote)),
  }
}

/**
 * The suspects of tokens up to a slot, oldest first: those that no earlier slot has released, and those that are not
 * taken out completely.
 */
async function readSuspects(db: Database, tokens: readonly number[], slot: number): Promise<readonly FoundSuspect[]> {
  const rows = await db.rows({
    name: 'suspect-prices',
    sql: `SELECT ${COLUMNS} FROM suspect_prices FINAL
WHERE token IN {tokens: Array(UInt64)} AND slot >= ${at('from')} AND slot <= ${at('slot')}
  AND (state IN ('suspect', 'taking_out') OR state = 'released' AND decided_slot >= ${at('slot')})
ORDER BY token, slot, provider`,
    params: { tokens, slot, from: slot - SUSPECTS_MS },
    schema: suspectRow,
  })
  return rows.map(toSuspect)
}

/** All suspects of a range of time, for the operator. `decidedFrom` selects those whose state a slot from then on has changed. */
export async function findSuspects(
  db: Database,
  {
    tokens,
    from,
    to,
    decidedFrom = 0,
  }: {
    readonly tokens?: readonly number[] | undefined
    readonly from: number
    readonly to: number
    readonly decidedFrom?: number
  },
): Promise<readonly FoundSuspect[]> {
  const rows = await db.rows({
    name: 'suspect-prices',
    sql: `SELECT ${COLUMNS} FROM suspect_prices FINAL
WHERE slot >= ${at('from')} AND slot < ${at('to')} AND decided_slot >= ${at('decidedFrom')}${tokens === undefined ? '' : ' AND token IN {tokens: Array(UInt64)}'}
ORDER BY token, slot, provider`,
    params: { from, to, decidedFrom, ...(tokens === undefined ? {} : { tokens }) },
    schema: suspectRow,
  })
  return rows.map(toSuspect)
}

export async function writeSuspects(
  db: Database,
  suspects: readonly StoredSuspect[],
  { state, decidedSlot }: SuspectChange,
): Promise<void> {
  const rows = suspects.map((one) => ({
    token: one.token,
    slot: toText(one.slot),
    provider: one.provider,
    observed_at: toText(one.at),
    price: one.price,
    others: one.others.map(({ provider, price, at: observedAt }) => ({
      provider,
      price,
      observed_at: toText(observedAt),
    })),
    last_price: one.lastPrice,
    last_at: one.lastAt === null ? null : toText(one.lastAt),
    reason: one.reason,
    is_withheld: one.isWithheld,
    state,
    quote: JSON.stringify(one.row),
    decided_slot: toText(decidedSlot),
  }))
  if (rows.length > 0) await db.insert({ table: 'suspect_prices', rows })
}

/** The columns of a stored price about its evidence. */
export const toEvidence = ({ agreement, checkedWith, deviation }: NonNullable<Decided['stored']>) => ({
  agreement,
  checked_with: checkedWith,
  deviation,
})
