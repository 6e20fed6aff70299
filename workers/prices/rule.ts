import { DAY_MS, HOUR_MS, INTERVAL_SECONDS } from '../../shared/intervals.ts'

/**
 * The rule that decides which price of a slot is stored (docs/operations.md). The rule reads no clock and no store:
 * equal inputs give equal decisions, so a slot may be decided again after any failure.
 */

const MINUTE_MS = 60_000
const SLOT_MS = INTERVAL_SECONDS['5m'] * 1000

/** Two prices agree up to this deviation. An agreeing provider may differ by the usual gap between two markets. */
const AGREEING = 0.05
/** An excluded provider counts as recovered in a slot below this deviation, and returns after several such slots. */
const RECOVERED = AGREEING / 2
const RECOVERED_SLOTS = 3
/** Above this deviation from the last price, three providers must agree. The largest real move of an hour was x1.69. */
const LARGE = Math.log(1.75)
/** The deviation from the last stored price up to which a price needs no confirmation, by the age of that price. */
const BANDS = [
  { upToMs: 10 * MINUTE_MS, deviation: 0.1 },
  { upToMs: HOUR_MS, deviation: 0.2 },
  { upToMs: 6 * HOUR_MS, deviation: 0.3 },
]
const WIDEST_BAND = 0.3
/** An unchanged price is compared with another provider after this time, and again after each hour. */
const FROZEN_MS = HOUR_MS
const FROZEN_PEGGED_MS = 6 * HOUR_MS
/** An unchanged price is frozen if another provider has moved by more than this in the meantime. */
const MOVED = 0.01
/** A price this near to one dollar counts as pegged. */
const PEGGED = 0.02
/** A quote whose own time is older than this needs a confirmation. */
const OLD_MS = 15 * MINUTE_MS
const OLD_PEGGED_MS = 6 * HOUR_MS
/** A difference found by an audit counts if the next slot has it, too. One slot between them may be missed. */
const AUDIT_MS = HOUR_MS
const AUDIT_REPEAT_MS = 2 * SLOT_MS
/** Without another provider, a price is believed after this many observations over this time within this deviation. */
const PERSISTENT = { observations: 6, ms: 30 * MINUTE_MS, deviation: 0.1 }
/** The same for a large deviation from the last price. */
const LARGE_PERSISTENT_MS = DAY_MS
/** A suspect is compared with the prices of other providers for this time. */
const CONFIRMABLE_MS = 30 * MINUTE_MS
/** History has the price of a slot at another time within this distance. */
const SAME_TIME_MS = 10 * MINUTE_MS
/** Deviations are compared with the bounds after rounding, because a quotient of two decimals is not exact. */
const EPSILON = 1e-9

export type Agreement = 'single' | 'confirmed' | 'median' | 'persisted' | 'released'

/** A usable price of one provider: positive and finite. Times are Unix milliseconds. */
export interface Quote {
  readonly provider: string
  readonly price: number
  readonly at: number
}

/** The newest stored price of a token. */
export interface LastPrice extends Omit<Quote, 'provider'> {
  /** Empty if it is unknown, as for prices of earlier versions. */
  readonly provider: string
  /** The time of the first stored price of those that are equal to this one. */
  readonly unchangedSince: number
}

/** A provider whose prices of a token are not stored. */
export interface Exclusion {
  readonly provider: string
  /** The slot of the first deviation. */
  readonly since: number
  /** Consecutive slots in which it agreed again. */
  readonly recovered: number
  /** The unchanged price of a frozen provider, which must change before it counts as recovered. */
  readonly frozenAt: number | null
}

/** A price that was not stored. */
export interface Suspect extends Quote {
  readonly slot: number
  /** The prices of the other providers in its slot. */
  readonly others: readonly Quote[]
  /** Whether the slot has no price at all. */
  readonly isWithheld: boolean
}

/** The facts about a token before a slot. */
export interface Memory {
  readonly exclusions: readonly Exclusion[]
  /** The slot in which an audit found a difference that the next slot must confirm. */
  readonly differenceAt: number | null
  /** ln(price of the provider / price of the first provider), while the first provider's price was moving. */
  readonly gaps: Readonly<Record<string, number>>
}

export const NO_MEMORY: Memory = { exclusions: [], differenceAt: null, gaps: {} }

export interface PriceCase {
  readonly slot: number
  readonly last: LastPrice | undefined
  readonly memory: Memory
  /** The suspects of the token before the slot that were not released, oldest first. */
  readonly suspects: readonly Suspect[]
  /** The providers that were asked, in order; `quote` is undefined if a provider has no usable price. */
  readonly asked: readonly { readonly provider: string; readonly quote: Quote | undefined }[]
  /** The providers of the token that can still be asked, in order. */
  readonly remaining: readonly string[]
  /** Providers that confirm prices, and are stored only if no other price can be trusted. */
  readonly witnesses: readonly string[]
}

/** A price to store, with the evidence for it. */
export interface Trusted {
  readonly quote: Quote
  readonly agreement: Agreement
  /** The providers whose prices it was compared with. */
  readonly checkedWith: readonly string[]
  /** The largest deviation from the agreeing ones; from the nearest one if none agrees; null if not compared. */
  readonly deviation: number | null
}

export interface Decided {
  readonly kind: 'decided'
  /** The price of the slot; undefined if no price can be trusted. */
  readonly stored: Trusted | undefined
  /** Earlier suspects that are stored at their own times. */
  readonly released: readonly { readonly suspect: Suspect; readonly trusted: Trusted }[]
  readonly suspects: readonly Suspect[]
  /** Why there is no price; empty if there is one. */
  readonly reason: string
  readonly memory: Memory
  /** Stored prices of the provider since this slot are wrong. */
  readonly takenOut: { readonly provider: string; readonly since: number } | undefined
}

/** `ask`: the provider `next` must be queried for the token before the rule can decide. */
export type Decision = { readonly kind: 'ask'; readonly next: string } | Decided

/** The deviation of two prices: |ln(a / b)|. */
const deviate = (a: number, b: number): number => Math.abs(Math.log(a / b))

export const isUsable = (price: unknown): price is number =>
  typeof price === 'number' && Number.isFinite(price) && price > 0

const isWithin = (deviation: number, bound: number): boolean => deviation <= bound + EPSILON

const agree = (a: Quote, b: Quote): boolean => isWithin(deviate(a.price, b.price), AGREEING)

/** Whether a price needs no confirmation, except for its age and for being unchanged. */
export function isPlausible(quote: Quote, last: LastPrice | undefined, slot: number): boolean {
  const band = last && toBand(last, slot)
  return last !== undefined && band !== undefined && isWithin(deviate(quote.price, last.price), band)
}

/** Whether a price of history is the suspect again: of about the same time and about as high. */
export const isNearSuspect = (quote: Quote, suspect: Pick<Suspect, 'price' | 'at'>): boolean =>
  Math.abs(quote.at - suspect.at) <= SAME_TIME_MS && isWithin(deviate(quote.price, suspect.price), AGREEING)

/** Whether all prices of a slot are compared with another provider. */
const isAudit = (slot: number): boolean => slot % AUDIT_MS === 0

/** Decides the price of a token in a slot, or names the next provider to query. */
export function decidePrice(priceCase: PriceCase): Decision {
  const { asked, remaining, witnesses, last, slot, memory } = priceCase
  const quotes = asked.flatMap(({ quote }) => quote ?? [])
  const [next] = remaining
  const ask = next === undefined ? undefined : ({ kind: 'ask', next } as const)
  const [first] = quotes
  if (first === undefined)
    return next !== undefined && !witnesses.includes(next) && ask ? ask : decide(priceCase, undefined)
  const isExcluded = ({ provider }: Quote) => memory.exclusions.some((one) => one.provider === provider)
  const isDoubted = isExcluded(first) || isInDoubt(first, priceCase)
  const isCompared = isAudit(slot) || isDifferenceOpen(priceCase)
  if (!isDoubted && !isCompared) return decide(priceCase, single(first))
  const [, second] = quotes
  if (second === undefined) {
    // An audit alone queries one other provider. A doubt queries all of them.
    const isAsked = isDoubted || asked.length <= asked.findIndex(({ quote }) => quote === first) + 1
    return isAsked && ask ? ask : decideAlone(first, priceCase, isExcluded(first))
  }
  if (isFrozen(first, second, priceCase)) return decide(priceCase, single(second), { frozen: first })
  const pair = findAgreeing(quotes)
  if (pair === undefined) {
    // A second provider with late values also differs, so the first difference of an audit does not count.
    if (!isDoubted && !isDifferenceOpen(priceCase))
      return decide(priceCase, { ...single(first), ...compared(first, [second]) }, { isDifferent: true })
    return ask ?? decide(priceCase, chooseNear(quotes, priceCase, isExcluded), { isUnconfirmed: true })
  }
  const candidate = chooseAgreed(pair, witnesses, isExcluded)
  if (candidate === undefined) return ask ?? decide(priceCase, undefined)
  const isLarge = last !== undefined && !isWithin(deviate(candidate.price, last.price), LARGE)
  if (isLarge && pair.length < Math.max(3, quotes.length)) return ask ?? decide(priceCase, undefined)
  return decide(priceCase, toAgreed(candidate, pair, priceCase, isExcluded), { pair })
}

const single = (quote: Quote): Trusted => ({ quote, agreement: 'single', checkedWith: [], deviation: null })

/** The members about the comparison of a quote with others. */
function compared(quote: Quote, others: readonly Quote[]): Pick<Trusted, 'checkedWith' | 'deviation'> {
  const partners = others.filter(({ provider }) => provider !== quote.provider)
  const deviations = partners.map(({ price }) => deviate(quote.price, price))
  return {
    checkedWith: partners.map(({ provider }) => provider),
    deviation: deviations.length === 0 ? null : Math.max(...deviations),
  }
}

function toAgreed(
  candidate: Quote,
  pair: readonly Quote[],
  { asked }: PriceCase,
  isExcluded: (quote: Quote) => boolean,
): Trusted {
  const facts = compared(candidate, pair)
  const isConfirmed = pair.some((quote) => quote !== candidate && !isExcluded(quote))
  const isMedian = asked.length > 2 && pair.length < asked.length
  return { quote: candidate, agreement: !isConfirmed ? 'single' : isMedian ? 'median' : 'confirmed', ...facts }
}

function toBand(last: LastPrice, slot: number): number | undefined {
  const age = slot - last.at
  return BANDS.find(({ upToMs }) => age <= upToMs)?.deviation
}

function isInDoubt(quote: Quote, { last, slot }: PriceCase): boolean {
  if (last === undefined || slot - quote.at > (isPegged(quote.price) ? OLD_PEGGED_MS : OLD_MS)) return true
  if (!isPlausible(quote, last, slot)) return true
  const unchangedMs = toUnchangedMs(quote, last, slot)
  const limit = toFrozenMs(quote.price)
  // Asked once when the time is over, and then each hour.
  const before = unchangedMs - SLOT_MS
  return unchangedMs >= limit && (before < limit || Math.floor(unchangedMs / HOUR_MS) > Math.floor(before / HOUR_MS))
}

const isPegged = (price: number) => deviate(price, 1) <= PEGGED

const toFrozenMs = (price: number) => (isPegged(price) ? FROZEN_PEGGED_MS : FROZEN_MS)

function toUnchangedMs(quote: Quote, last: LastPrice | undefined, slot: number): number {
  const isSame = last !== undefined && quote.price === last.price && ['', quote.provider].includes(last.provider)
  return isSame ? slot - last.unchangedSince : 0
}

/** Whether the price is unchanged although the other provider has moved since their usual gap was recorded. */
function isFrozen(quote: Quote, other: Quote, priceCase: PriceCase): boolean {
  const { last, slot, memory } = priceCase
  const gap = memory.gaps[other.provider]
  if (gap === undefined || toUnchangedMs(quote, last, slot) < toFrozenMs(quote.price)) return false
  if (!isNearLast(other, priceCase)) return false
  if (memory.exclusions.some(({ provider }) => provider === quote.provider)) return false
  return Math.abs(Math.log(other.price / quote.price) - gap) > MOVED
}

const isDifferenceOpen = ({ memory: { differenceAt }, slot }: PriceCase): boolean =>
  differenceAt !== null && slot > differenceAt && slot - differenceAt <= AUDIT_REPEAT_MS

/** Returns the largest group of quotes that agree with one of them, in their order; undefined if no two agree. */
function findAgreeing(quotes: readonly Quote[]): readonly Quote[] | undefined {
  const groups = quotes.map((centre) => quotes.filter((quote) => agree(centre, quote)))
  const largest = groups.reduce((best, group) => (group.length > best.length ? group : best), [] as readonly Quote[])
  return largest.length < 2 ? undefined : largest
}

/**
 * Returns the first quote that agrees with all of the group, or else the one nearest to their median. Witnesses come
 * last.
 */
function chooseAgreed(
  pair: readonly Quote[],
  witnesses: readonly string[],
  isExcluded: (quote: Quote) => boolean,
): Quote | undefined {
  const usable = pair.filter((quote) => !isExcluded(quote))
  const full = usable.filter(({ provider }) => !witnesses.includes(provider))
  const candidates = full.length > 0 ? full : usable
  const sorted = pair.map(({ price }) => price).sort((a, b) => a - b)
  const middle = sorted[Math.floor((sorted.length - 1) / 2)] ?? Number.NaN
  const toDistance = ({ price }: Quote) => deviate(price, middle)
  const isCentral = (quote: Quote) => pair.every((other) => agree(quote, other))
  return candidates.find(isCentral) ?? candidates.toSorted((a, b) => toDistance(a) - toDistance(b))[0]
}

/** Without an agreement: the first quote near the last price. */
function chooseNear(
  quotes: readonly Quote[],
  priceCase: PriceCase,
  isExcluded: (quote: Quote) => boolean,
): Trusted | undefined {
  const near = quotes.find((quote) => !isExcluded(quote) && isNearLast(quote, priceCase))
  if (near === undefined) return undefined
  const others = quotes.filter((quote) => quote !== near)
  const closest = others.toSorted((a, b) => deviate(a.price, near.price) - deviate(b.price, near.price)).slice(0, 1)
  return { ...single(near), ...compared(near, closest), checkedWith: others.map(({ provider }) => provider) }
}

function isNearLast(quote: Quote, { last, slot }: PriceCase): boolean {
  if (last === undefined) return false
  return isWithin(deviate(quote.price, last.price), toBand(last, slot) ?? WIDEST_BAND)
}

/** Decides with a single price and no other provider that has one. A first price contradicts no other. */
function decideAlone(first: Quote, priceCase: PriceCase, isExcluded: boolean): Decided {
  const isFirst = priceCase.last === undefined
  if (!isExcluded && (isFirst || isNearLast(first, priceCase))) return decide(priceCase, single(first))
  const { suspects, last, slot } = priceCase
  const isAlone = (one: Suspect) => one.provider === first.provider && one.others.length === 0 && one.isWithheld
  const alone = suspects.slice(suspects.findLastIndex((one) => !isAlone(one)) + 1)
  const isLike = (one: Suspect) => isWithin(deviate(one.price, first.price), PERSISTENT.deviation)
  const run = alone.slice(alone.findLastIndex((one) => !isLike(one)) + 1)
  const [begin] = run
  const isLarge = last !== undefined && !isWithin(deviate(first.price, last.price), LARGE)
  const since = isLarge ? alone[0] : begin
  const neededMs = isLarge ? LARGE_PERSISTENT_MS : PERSISTENT.ms
  const prices = [...run.map(({ price }) => price), first.price]
  const isSteady = isWithin(deviate(Math.max(...prices), Math.min(...prices)), PERSISTENT.deviation)
  const hasPersisted =
    run.length + 1 >= PERSISTENT.observations && isSteady && since !== undefined && slot - since.slot >= neededMs
  if (isExcluded || !hasPersisted) return decide(priceCase, undefined)
  const agreement = isLarge ? 'released' : 'persisted'
  const toTrusted = ({ provider, price, at }: Quote): Trusted => ({
    ...single({ provider, price, at }),
    agreement,
  })
  const released = run.map((suspect) => ({ suspect, trusted: toTrusted(suspect) }))
  return { ...decide(priceCase, toTrusted(first)), released }
}

interface Found {
  /** The quotes that agree. */
  readonly pair?: readonly Quote[]
  /** A quote that is unchanged although others moved. */
  readonly frozen?: Quote
  /** Whether an audit found a difference for the first time. */
  readonly isDifferent?: boolean
  /** Whether no price of another provider agrees with the stored one. */
  readonly isUnconfirmed?: boolean
}

/** Returns the decision, with the state of the token after the slot. */
function decide(priceCase: PriceCase, stored: Trusted | undefined, found: Found = {}): Decided {
  const { slot, memory, asked, last, suspects } = priceCase
  const { pair = [], frozen, isDifferent = false, isUnconfirmed = false } = found
  const quotes = asked.flatMap(({ quote }) => quote ?? [])
  const toDeviating = ({ quote }: Trusted) =>
    quotes.filter((one) => one !== quote && !pair.includes(one) && !agree(one, quote))
  // One of two different prices is no evidence against the other.
  const deviating = stored === undefined || pair.length < 2 ? [] : toDeviating(stored)
  const exclusions = toExclusions(priceCase, { stored, deviating, frozen })
  const isKnown = ({ provider }: Quote) => memory.exclusions.some((one) => one.provider === provider)
  const doubted = stored === undefined ? quotes : isUnconfirmed ? toDeviating(stored) : deviating
  const newSuspects = doubted
    .filter((quote) => stored === undefined || !isKnown(quote))
    .map((quote) => ({
      ...quote,
      slot,
      others: quotes.filter((one) => one !== quote),
      isWithheld: stored === undefined,
    }))
  const [wrong] = deviating.filter((quote) => quote.provider === last?.provider)
  const isFoundByAudit =
    isDifferenceOpen(priceCase) &&
    wrong !== undefined &&
    last !== undefined &&
    pair.length > 1 &&
    pair.every(({ price }) => !isWithin(deviate(price, last.price), AGREEING))
  return {
    kind: 'decided',
    stored,
    released: stored === undefined ? [] : releaseConfirmed(suspects, stored, pair, slot),
    suspects: newSuspects,
    reason: stored === undefined && quotes.length > 0 ? toReason(quotes, last) : '',
    memory: { exclusions, differenceAt: isDifferent ? slot : null, gaps: toGaps(priceCase, quotes) },
    takenOut: isFoundByAudit ? { provider: wrong.provider, since: memory.differenceAt ?? slot } : undefined,
  }
}

function toExclusions(
  { slot, memory, asked }: PriceCase,
  {
    stored,
    deviating,
    frozen,
  }: { stored: Trusted | undefined; deviating: readonly Quote[]; frozen: Quote | undefined },
): readonly Exclusion[] {
  const kept = memory.exclusions.flatMap((exclusion): Exclusion[] => {
    const quote = asked.find(({ provider }) => provider === exclusion.provider)?.quote
    if (quote === undefined || stored === undefined || stored.quote.provider === exclusion.provider) return [exclusion]
    const isRecovered = quote.price !== exclusion.frozenAt && deviate(quote.price, stored.quote.price) < RECOVERED
    const recovered = isRecovered ? exclusion.recovered + 1 : 0
    return recovered >= RECOVERED_SLOTS ? [] : [{ ...exclusion, recovered }]
  })
  const isKept = ({ provider }: Quote) => memory.exclusions.some((one) => one.provider === provider)
  const added = [...(frozen ? [frozen] : []), ...deviating]
    .filter(
      (quote, index, all) => !isKept(quote) && all.findIndex(({ provider }) => provider === quote.provider) === index,
    )
    .map((quote) => ({
      provider: quote.provider,
      since: slot,
      recovered: 0,
      frozenAt: quote === frozen ? quote.price : null,
    }))
  return [...kept, ...added]
}

/** Records the usual gap to the first provider, unless its price is unchanged, which may mean that it is frozen. */
function toGaps({ memory, last, slot }: PriceCase, [first, ...others]: readonly Quote[]): Memory['gaps'] {
  if (first === undefined || others.length === 0) return memory.gaps
  const isUnchanged = toUnchangedMs(first, last, slot) > SLOT_MS
  const measured = others
    .filter((other) => agree(first, other) && !(isUnchanged && memory.gaps[other.provider] !== undefined))
    .map(({ provider, price }) => [provider, Math.round(Math.log(price / first.price) * 1e4) / 1e4] as const)
  return { ...memory.gaps, ...Object.fromEntries(measured) }
}

/** Returns the earlier suspects that a price of another provider confirms now. */
function releaseConfirmed(
  suspects: readonly Suspect[],
  stored: Trusted,
  pair: readonly Quote[],
  slot: number,
): Decided['released'] {
  return suspects.flatMap((suspect) => {
    if (slot - suspect.slot > CONFIRMABLE_MS) return []
    const confirming = pair.filter((quote) => quote.provider !== suspect.provider && agree(quote, suspect))
    if (confirming.length === 0 || !agree(stored.quote, suspect)) return []
    const { provider, price, at } = suspect
    const quote = { provider, price, at }
    return [{ suspect, trusted: { quote, agreement: 'confirmed' as const, ...compared(quote, confirming) } }]
  })
}

/** For example `price not confirmed: coinmarketcap 12.1, coingecko 3, last 6`. */
function toReason(quotes: readonly Quote[], last: LastPrice | undefined): string {
  const named = quotes.map(({ provider, price }) => `${provider} ${price}`)
  return `price not confirmed: ${[...named, last === undefined ? 'no last price' : `last ${last.price}`].join(', ')}`
}
