import { z } from 'zod'
import { DAY_MS, toBucketStart } from '../../../shared/intervals.ts'
import type { Range } from '../../job/define-job.ts'
import { asSent } from '../answer.ts'
import { thin } from '../paging.ts'
import type { Holding } from '../treasury-holdings.ts'

const amounts = z.array(z.object({ date: z.number(), tokens: z.record(z.string(), asSent) }))
const chainTvl = z.object({ tokens: amounts.nullish(), tokensInUsd: amounts.nullish() })

/** Treasury/{slug}: daily amounts by chain, times in Unix seconds (providers document, section 3.1). */
export const treasuryAnswer = z.object({ chainTvls: z.record(z.string(), chainTvl) })

type Answer = z.infer<typeof treasuryAnswer>
type Amounts = z.infer<typeof amounts>[number]

const OWN_TOKENS = 'OwnTokens'
/** Older than this is not what is held now. */
const FRESH_MS = 2 * DAY_MS

/**
 * The series that add up to everything held: those of the chains, and the DAO's own tokens. The series
 * `<Chain>-OwnTokens` are contained in `OwnTokens`, and counted only where that one is missing.
 */
function toParts({ chainTvls }: Answer): [string, z.infer<typeof chainTvl>][] {
  const isPart = OWN_TOKENS in chainTvls ? (key: string) => !key.includes('-') : isChainOrOwn
  return Object.entries(chainTvls).filter(([key]) => isPart(key))
}

const isChainOrOwn = (key: string) => !key.includes('-') || key.endsWith(`-${OWN_TOKENS}`)

/** What is held now: the newest point of each series, unless it is too old to be of `slot` (Unix milliseconds). */
export function toLatestHoldings(answer: Answer, slot: number): Holding[] {
  return toParts(answer).flatMap(([key, { tokens, tokensInUsd }]) => {
    const amount = (tokens ?? []).reduce<Amounts | undefined>(
      (newest, point) => (newest === undefined || point.date > newest.date ? point : newest),
      undefined,
    )
    if (amount === undefined || amount.date * 1000 < slot - FRESH_MS) return []
    return toHoldings(key, amount, toValues(tokensInUsd).get(amount.date))
  })
}

/**
 * What was held on each day inside the range: the first point of the day, because the newest day has two. A day that
 * one series skips between its first and its last point is left out: the other series alone would pass for the whole
 * treasury.
 */
export function toDailyHoldings(answer: Answer, range: Range): Map<number, Holding[]> {
  const days = new Map<number, Holding[]>()
  const gaps = new Set<number>()
  for (const [key, { tokens, tokensInUsd }] of toParts(answer)) {
    const values = toValues(tokensInUsd)
    const points = new Map(
      thin(tokens ?? [], toTime, range).map((point) => [toBucketStart(toTime(point), '1d'), point]),
    )
    for (const [day, point] of points) {
      days.set(day, [...(days.get(day) ?? []), ...toHoldings(key, point, values.get(point.date))])
    }
    for (const day of toInnerDays(tokens ?? [], range)) if (!points.has(day)) gaps.add(day)
  }
  for (const day of gaps) days.delete(day)
  return days
}

const toTime = ({ date }: Amounts) => date * 1000

/** The days of the range between the first and the last of a series. */
function toInnerDays(points: readonly Amounts[], range: Range): number[] {
  const times = points.map(toTime)
  const first = toBucketStart(Math.max(range.from, Math.min(...times)), '1d')
  const last = Math.min(range.to - 1, Math.max(...times))
  const count = Math.max(0, Math.floor((last - first) / DAY_MS) + 1)
  return Array.from({ length: count }, (_, day) => first + day * DAY_MS)
}

function toValues(tokensInUsd: readonly Amounts[] | null | undefined): Map<number, Amounts['tokens']> {
  return new Map((tokensInUsd ?? []).map(({ date, tokens }) => [date, tokens]))
}

/** The provider names tokens by symbol only, which within one series is a token's name, and tells no addresses. */
function toHoldings(key: string, { tokens }: Amounts, values: Amounts['tokens'] = {}): Holding[] {
  return Object.entries(tokens).map(([symbol, quantity]) => {
    const valueUsd = toKnown(values[symbol])
    return {
      ...{ chain: toChain(key), address: null, contract: null, symbol, quantity: toKnown(quantity), valueUsd },
      priceSource: valueUsd === null ? null : 'defillama',
      ...(key.endsWith(OWN_TOKENS) ? { isOwn: true } : {}),
    }
  })
}

/** Chains that the provider names otherwise than the registry does. */
const CHAINS: Readonly<Record<string, string>> = {
  binance: 'bnb',
  bsc: 'bnb',
  'op mainnet': 'optimism',
  xdai: 'gnosis',
}

/** The slug of a series' chain. Own tokens of all chains together have the name of their series. */
function toChain(key: string): string {
  if (key === OWN_TOKENS) return OWN_TOKENS
  const name = key.replace(`-${OWN_TOKENS}`, '').toLowerCase()
  return CHAINS[name] ?? name.replaceAll(' ', '-')
}

function toKnown(value: unknown): number | null {
  return typeof value === 'number' ? value : null
}
