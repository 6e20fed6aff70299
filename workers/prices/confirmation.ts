import { isDeepStrictEqual } from 'node:util'
import { DataError } from '../../shared/errors.ts'
import { groupBy } from '../../shared/group-by.ts'
import { type TimeRange, toMs } from '../../shared/intervals.ts'
import type { Database } from '../../shared/store/store.ts'
import type {
  CheckedRows,
  Confirmation,
  ConfirmationInput,
  Confirmed,
  PlausibilityCheck,
  TakenOut,
} from '../job/define-job.ts'
import {
  type Decided,
  type Decision,
  decidePrice,
  isNearSuspect,
  isPlausible,
  type LastPrice,
  type Memory,
  NO_MEMORY,
  type Quote,
} from './rule.ts'
import {
  type FoundSuspect,
  findSuspects,
  openPriceState,
  type PriceState,
  type StoredSuspect,
  toEvidence,
} from './state.ts'
import { takeOutPrices, type Wrong, type WrongPrices } from './take-out.ts'

type Row = Readonly<Record<string, unknown>>

/** The facts about one token in the slot. */
interface TokenCase {
  readonly key: number
  readonly name: string
  readonly last: LastPrice | undefined
  readonly before: Memory
  readonly suspects: readonly FoundSuspect[]
  /** The usable quotes by provider, with their rows. */
  readonly quotes: Map<string, { readonly quote: Quote; readonly row: Row }>
  decided: Decided | undefined
  /** Whether `take` has returned the stored row. */
  isReturned: boolean
}

const toQuote = (provider: string, row: Row): Quote => ({
  provider,
  price: Number(row.price),
  at: toMs(String(row.observed_at)),
})

/** A row with the evidence for its price; the defaults of the columns are those of a price that was not compared. */
function withEvidence(row: Row, trusted: NonNullable<Decided['stored']>): Row {
  const isPlain = trusted.agreement === 'single' && trusted.checkedWith.length === 0
  return isPlain ? row : { ...row, ...toEvidence(trusted) }
}

/** Where a confirmation reads its state, and how it removes wrong prices. */
export interface PriceStores {
  readonly state: PriceState
  takeOut(wrong: WrongPrices, slot: number): Promise<readonly TakenOut[]>
}

/** Applies the rule of `rule.ts` to the quotes of a slot. */
export const openPriceConfirmation = (db: Database, input: ConfirmationInput): Promise<Confirmation> =>
  confirmPrices({ state: openPriceState(db), takeOut: (wrong, slot) => takeOutPrices(db, wrong, slot) }, input)

/** The same with other stores, as for a replay. */
export async function confirmPrices(
  { state, takeOut }: PriceStores,
  { entities, slot, sources, answersFrom, log }: ConfirmationInput,
): Promise<Confirmation> {
  const keys = entities.map(({ key }) => key)
  const [lastPrices, memories, suspects] = await Promise.all([
    state.readLastPrices(keys, slot),
    state.readMemories(keys, slot),
    state.readSuspects(keys, slot),
  ])
  const suspectsOf = groupBy(suspects, ({ token }) => token)
  const cases = new Map(
    entities.map((entity): [number, TokenCase] => [
      entity.key,
      {
        key: entity.key,
        name: entity.name,
        last: lastPrices.get(entity.key),
        before: memories.before.get(entity.key) ?? NO_MEMORY,
        suspects: suspectsOf.get(entity.key) ?? [],
        quotes: new Map(),
        decided: undefined,
        isReturned: false,
      },
    ]),
  )
  const coversOf = new Map(entities.map((entity) => [entity.key, sources.filter(({ covers }) => covers(entity))]))
  const placeOf = (provider: string) => sources.findIndex((source) => source.provider === provider)
  const witnesses = sources.filter(({ isWitness }) => isWitness).map(({ provider }) => provider)

  /** Decides with the answers of the providers before `place`. */
  function decide(one: TokenCase, place: number): Decision {
    const covering = coversOf.get(one.key) ?? []
    const asked = covering.filter(({ provider }) => placeOf(provider) < place)
    const decision = decidePrice({
      slot,
      last: one.last,
      memory: one.before,
      suspects: one.suspects.filter((suspect) => suspect.slot < slot && suspect.state !== 'taking_out'),
      asked: asked.map(({ provider }) => ({ provider, quote: one.quotes.get(provider)?.quote })),
      remaining: covering.slice(asked.length).map(({ provider }) => provider),
      witnesses,
    })
    if (decision.kind === 'decided') one.decided = decision
    return decision
  }

  const all = () => [...cases.values()]
  const toSuspects = (one: TokenCase): readonly StoredSuspect[] =>
    (one.decided?.suspects ?? []).map((suspect) => ({
      ...suspect,
      token: one.key,
      row: one.quotes.get(suspect.provider)?.row ?? {},
      lastPrice: one.last?.price ?? null,
      lastAt: one.last?.at ?? null,
      reason: one.decided?.reason ?? '',
    }))

  return {
    isRequested(provider, { key }) {
      const one = cases.get(key)
      if (one === undefined || one.decided !== undefined) return false
      const decision = decide(one, placeOf(provider))
      return decision.kind === 'ask' && decision.next === provider
    },

    take(provider, checked) {
      const place = placeOf(provider) + 1
      const refused = new Map(checked.refused)
      const rows: object[] = []
      const taken = new Set<TokenCase>()
      for (const row of checked.rows as readonly Row[]) {
        const one = cases.get(Number(row.token))
        if (one === undefined) continue
        const quote = toQuote(provider, row)
        if (quote.at >= answersFrom) {
          one.quotes.set(provider, { quote, row })
          taken.add(one)
        } else if (isPlausible(quote, one.last, slot)) rows.push(row)
        else refused.set(one.key, toOutdated(quote, one.last))
      }
      for (const one of taken) {
        const decision = decide(one, place)
        const stored = decision.kind === 'decided' ? decision.stored : undefined
        const found = one.quotes.get(provider)
        if (stored?.quote.provider !== provider || found === undefined) continue
        one.isReturned = true
        rows.push(withEvidence(found.row, stored))
      }
      return { ...checked, rows, refused } satisfies CheckedRows
    },

    finish(): Confirmed {
      const rows: { provider: string; row: object }[] = []
      const [answered, withheld] = [new Map<number, string>(), new Map<number, string>()]
      for (const one of all()) {
        if (one.quotes.size === 0) continue
        if (one.decided === undefined) decide(one, sources.length)
        const { decided } = one
        if (decided === undefined) continue
        const { stored, reason } = decided
        for (const { suspect, trusted } of toReleased(one))
          rows.push({ provider: suspect.provider, row: withEvidence(suspect.row, trusted) })
        const found = stored && one.quotes.get(stored.quote.provider)
        if (stored === undefined || found === undefined) withheld.set(one.key, reason)
        else if (!one.isReturned) {
          rows.push({ provider: stored.quote.provider, row: withEvidence(found.row, stored) })
          answered.set(one.key, stored.quote.provider)
        }
      }
      for (const [key, reason] of withheld) log.warn({ token: cases.get(key)?.name, reason }, 'price withheld')
      const exclusions = toExclusions(all())
      const excluded = new Map(
        sources.map(({ provider }) => [provider, exclusions.filter((one) => one.provider === provider).length]),
      )
      return { rows, answered, withheld, excluded, failures: toFailures(exclusions) }
    },

    takeOut: () =>
      takeOut(
        {
          found: all().flatMap(toWrong),
          unfinished: suspects.filter((one) => one.state === 'taking_out'),
        },
        slot,
      ),

    async store() {
      const changed = all().flatMap((one): [number, Memory][] => {
        if (one.decided === undefined) return []
        const isWritten = memories.written.has(one.key)
        return isWritten || !isDeepStrictEqual(one.decided.memory, one.before) ? [[one.key, one.decided.memory]] : []
      })
      await state.writeMemories(slot, new Map(changed))
      const added = all().flatMap(toSuspects)
      const isAdded = (suspect: FoundSuspect) =>
        added.some(({ token, provider }) => token === suspect.token && provider === suspect.provider)
      // An earlier attempt of the slot may have had fewer answers.
      const obsolete = suspects.filter(
        (one) => one.slot === slot && cases.get(one.token)?.decided !== undefined && !isAdded(one),
      )
      const released = all().flatMap((one) => toReleased(one).map(({ suspect }) => suspect))
      await state.writeSuspects(added, { state: 'suspect', decidedSlot: slot })
      await state.writeSuspects([...obsolete, ...released], { state: 'released', decidedSlot: slot })
    },
  }
}

/** The stored form of the suspects that a decision releases. */
function toReleased({ decided, suspects }: TokenCase) {
  return (decided?.released ?? []).flatMap(({ suspect, trusted }) => {
    const found = suspects.find((one) => one === suspect)
    return found === undefined ? [] : [{ suspect: found, trusted }]
  })
}

function toWrong({ key, last, decided }: TokenCase): Wrong[] {
  if (decided?.takenOut === undefined || last === undefined || decided.stored === undefined) return []
  const { provider, since } = decided.takenOut
  const others = [decided.stored.quote]
  return [{ token: key, provider, since: Math.min(since, last.at), others }]
}

const toOutdated = ({ provider, price, at }: Quote, last: LastPrice | undefined) =>
  new DataError(
    'provider_unknown',
    `${provider}: its newest value ${price} is of ${new Date(at).toISOString()} and not confirmed, last ${last?.price ?? 'unknown'}`,
  )

interface NamedExclusion {
  readonly provider: string
  /** Name of the token. */
  readonly name: string
}

const toExclusions = (cases: readonly TokenCase[]): NamedExclusion[] =>
  cases.flatMap(({ name, before, decided }) =>
    (decided?.memory ?? before).exclusions.map(({ provider }) => ({ provider, name })),
  )

/** Names the providers whose prices of some tokens are not stored. */
function toFailures(excluded: readonly NamedExclusion[]): Confirmed['failures'] {
  return [...groupBy(excluded, ({ provider }) => provider)].map(([provider, own]) => {
    const names = own.slice(0, MOST_NAMES).map(({ name }) => name)
    const more = own.length > names.length ? ` and ${own.length - names.length} more` : ''
    const reason = `${provider}: its prices are not used for ${names.join(', ')}${more}: other providers differ from them`
    return { provider, reason: new DataError('provider_malformed', reason) }
  })
}

const MOST_NAMES = 5

/**
 * Creates the check of price history. The check rejects a price that is near a suspect of the same time, because
 * history alone does not confirm a suspect. Other prices of that time are stored.
 */
export async function openSuspectCheck(
  db: Database,
  tokens: readonly number[],
  { from, to }: TimeRange,
): Promise<PlausibilityCheck> {
  const found = await findSuspects(db, { tokens, from, to: to + SLOT_AFTER_MS })
  const suspectsOf = groupBy(
    found.filter(({ state }) => state !== 'released'),
    ({ token }) => token,
  )
  return (provider, checked, { onRejected }) => {
    if (suspectsOf.size === 0) return checked
    const refused = new Map(checked.refused)
    const rows = (checked.rows as readonly Row[]).filter((row) => {
      const quote = toQuote(provider, row)
      const suspect = suspectsOf.get(Number(row.token))?.find((one) => isNearSuspect(quote, one))
      if (suspect === undefined) return true
      const reason = `${provider}: price not confirmed: ${quote.price}; ${suspect.provider} had ${suspect.price} at ${new Date(suspect.at).toISOString()}`
      refused.set(Number(row.token), new DataError('provider_malformed', reason))
      return false
    })
    const count = checked.rows.length - rows.length
    if (count > 0) onRejected?.(`${provider}: price: like one that was not confirmed`, count)
    return { ...checked, rows, rejected: checked.rejected + count, refused }
  }
}

/** The slot of a suspect begins up to a slot after the observation. */
const SLOT_AFTER_MS = 10 * 60_000
