import { z } from 'zod'
import { groupBy } from '../../shared/group-by.ts'
import { toMs } from '../../shared/intervals.ts'
import type { Database } from '../../shared/store/store.ts'
import { type Memory, NO_MEMORY } from './rule.ts'
import {
  type FoundSuspect,
  findSuspects,
  openPriceState,
  type PriceState,
  SUSPECTS_MS,
  type SuspectChange,
  writeMemories,
  writeSuspects,
} from './state.ts'

interface Decided extends FoundSuspect {
  readonly decidedSlot: number
}

const checkedSlot = z.object({ token: z.number(), slot: z.string() })

const keyOf = ({ token, slot, provider }: Pick<FoundSuspect, 'token' | 'slot' | 'provider'>) =>
  `${token} ${slot} ${provider}`

const releasedRow = z.object({ token: z.number(), at: z.int() })

/** The prices that are stored although no other provider has confirmed them, by token and time. */
async function readReleased(
  db: Database,
  params: { readonly tokens: readonly number[]; readonly from: number; readonly to: number },
): Promise<ReadonlySet<string>> {
  const rows = await db.rows({
    name: 'replay-released-prices',
    sql: `SELECT token, toUnixTimestamp64Milli(observed_at) AS at FROM price_sources FINAL
WHERE token IN {tokens: Array(UInt64)} AND agreement = 'released'
  AND observed_at >= fromUnixTimestamp64Milli({from: Int64}, 'UTC') AND observed_at < fromUnixTimestamp64Milli({to: Int64}, 'UTC')`,
    params,
    schema: releasedRow,
  })
  return new Set(rows.map(({ token, at }) => `${token} ${at}`))
}

/** The memories and suspects of a replay: those before `begin` are the stored ones, the others those of its slots. */
export function createReplayedDecisions(
  db: Database,
  { begin, end }: { readonly begin: number; readonly end: number },
) {
  const loaded = new Set<number>()
  /** The states of each token by slot, in the order of slots. */
  const memories = new Map<number, Map<number, Memory>>()
  const suspects = new Map<string, Decided>()

  const findBefore = (token: number, slot: number) => {
    const slots = [...(memories.get(token)?.keys() ?? [])].filter((one) => one < slot)
    return slots.length === 0 ? undefined : memories.get(token)?.get(Math.max(...slots))
  }
  function write(found: readonly FoundSuspect[], { state, decidedSlot }: SuspectChange) {
    for (const one of found) suspects.set(keyOf(one), { ...one, state, decidedSlot })
  }

  const state: Omit<PriceState, 'readLastPrices'> = {
    async readMemories(tokens, slot) {
      const found = tokens.flatMap((token): [number, Memory][] => {
        const memory = findBefore(token, slot)
        return memory === undefined ? [] : [[token, memory]]
      })
      const written = tokens.filter((token) => memories.get(token)?.has(slot))
      return { before: new Map(found), written: new Set(written) }
    },
    readSuspects: async (tokens, slot) => {
      const own = new Set(tokens)
      const isOpen = (one: Decided) => one.state === 'suspect' || (one.state === 'released' && one.decidedSlot >= slot)
      return [...suspects.values()]
        .filter((one) => own.has(one.token) && one.slot >= slot - SUSPECTS_MS && one.slot <= slot && isOpen(one))
        .sort((a, b) => a.token - b.token || a.slot - b.slot || (a.provider < b.provider ? -1 : 1))
    },
    writeMemories: async (slot, written) => {
      for (const [token, memory] of written) {
        const own = memories.get(token) ?? new Map<number, Memory>()
        memories.set(token, own.set(slot, memory))
      }
    },
    writeSuspects: async (found, change) =>
      write(
        found.map((one) => ({ ...one, state: change.state })),
        change,
      ),
  }

  return {
    state,
    /** Reads the stored state of these tokens before the replay. */
    async load(tokens: readonly number[]): Promise<void> {
      const open = tokens.filter((token) => !loaded.has(token))
      if (open.length === 0) return
      const stored = openPriceState(db)
      const { before } = await stored.readMemories(open, begin)
      for (const [token, memory] of before) memories.set(token, new Map([[begin - 1, memory]]))
      const found = await stored.readSuspects(open, begin)
      const earlier = found.filter((one) => one.slot < begin && one.state !== 'taking_out')
      write(earlier, { state: 'suspect', decidedSlot: begin - 1 })
      for (const token of open) loaded.add(token)
    },
    /**
     * Replaces the stored decisions of the slots by the replayed ones. Suspects that were decided after the range, or
     * released at their own times by an operator, are not changed.
     */
    async store(): Promise<void> {
      const tokens = [...loaded]
      const rows = await db.rows({
        name: 'replay-checked-slots',
        sql: `SELECT token, slot FROM price_checks FINAL WHERE token IN {tokens: Array(UInt64)}
AND slot >= fromUnixTimestamp64Milli({begin: Int64}, 'UTC') AND slot < fromUnixTimestamp64Milli({end: Int64}, 'UTC')`,
        params: { tokens, begin, end },
        schema: checkedSlot,
      })
      const slots = new Map<number, Set<number>>()
      const add = (slot: number, token: number) => slots.set(slot, (slots.get(slot) ?? new Set<number>()).add(token))
      for (const { token, slot } of rows) add(toMs(slot), token)
      for (const [token, own] of memories) for (const slot of own.keys()) if (slot >= begin) add(slot, token)
      for (const [slot, own] of slots) {
        const after = [...own].map((token): [number, Memory] => [token, findBefore(token, slot + 1) ?? NO_MEMORY])
        await writeMemories(db, slot, new Map(after))
      }
      const stored = await findSuspects(db, { tokens, from: begin, to: end })
      const decidedLater = await findSuspects(db, { tokens, from: begin - SUSPECTS_MS, to: end, decidedFrom: end })
      const released = await readReleased(db, { tokens, from: begin - SUSPECTS_MS, to: end })
      const later = new Set(decidedLater.map(keyOf))
      const isFinal = (one: FoundSuspect) => later.has(keyOf(one)) || released.has(`${one.token} ${one.at}`)
      const obsolete = stored
        .filter((one) => one.state !== 'released' && !suspects.has(keyOf(one)))
        .map((one): Decided => ({ ...one, state: 'released', decidedSlot: one.slot }))
      const own = [...suspects.values()].filter((one) => one.decidedSlot >= begin)
      const changed = groupBy(
        [...obsolete, ...own].filter((one) => !isFinal(one)),
        ({ state: after, decidedSlot }) => `${after} ${decidedSlot}`,
      )
      for (const group of changed.values()) {
        const [first] = group
        if (first !== undefined) await writeSuspects(db, group, first)
      }
    },
  }
}
