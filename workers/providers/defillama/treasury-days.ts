import { z } from 'zod'
import { heldQuantity, heldValue } from '../../../shared/datasets/treasury.ts'
import { DAY_MS, toBucketStart } from '../../../shared/intervals.ts'
import type { Range } from '../../job/define-job.ts'
import { asSent, isTime, isUnreadable, listOf, mapOf, orNull } from '../answer.ts'
import { thin } from '../paging.ts'
import type { Holding } from '../treasury-holdings.ts'

const amounts = listOf(z.object({ date: asSent, tokens: z.record(z.string(), asSent).optional().catch(undefined) }))
const chainTvl = z.object({ tokens: amounts.nullish(), tokensInUsd: amounts.nullish().catch(null) })

/** /treasury/{slug}: daily amounts by chain, times in Unix seconds (docs/providers.md, section 3.1). */
export const treasuryAnswer = z.object({ chainTvls: mapOf(chainTvl) })

type Answer = z.infer<typeof treasuryAnswer>

/** The amounts of a series at one time, in Unix milliseconds. */
interface Amounts {
  readonly at: number
  readonly tokens: Readonly<Record<string, unknown>>
}

const OWN_TOKENS = 'OwnTokens'
/** Amounts older than this are not current. */
const FRESH_MS = 2 * DAY_MS

/**
 * Series that are summed in addition to the DAO's own tokens: those of chains, by lower-case name. Any other series
 * counts something else or the same again, such as `staking`, `pool2`, or `borrowed`, which is debt. A chain that is
 * missing here is left out and reported.
 */
const SUMMED: ReadonlySet<string> = new Set([
  ...['ethereum', 'arbitrum', 'arbitrum nova', 'optimism', 'op mainnet', 'base', 'polygon', 'polygon zkevm', 'scroll'],
  ...[
    'linea',
    'unichain',
    'zksync era',
    'starknet',
    'blast',
    'mode',
    'mantle',
    'manta',
    'taiko',
    'metis',
    'boba',
    'zora',
  ],
  ...[
    'ink',
    'soneium',
    'world chain',
    'wc',
    'fraxtal',
    'swellchain',
    'lisk',
    'hemi',
    'plume mainnet',
    'katana',
    'abstract',
  ],
  ...[
    'binance',
    'bsc',
    'op_bnb',
    'avalanche',
    'avax',
    'fantom',
    'sonic',
    'xdai',
    'gnosis',
    'celo',
    'cronos',
    'kava',
    'canto',
  ],
  ...[
    'moonbeam',
    'moonriver',
    'aurora',
    'harmony',
    'heco',
    'okexchain',
    'rootstock',
    'ronin',
    'klaytn',
    'kaia',
    'filecoin',
  ],
  ...['berachain', 'hyperliquid l1', 'plasma', 'monad', 'sei', 'flare', 'pulse', 'evmos', 'fuse', 'telos', 'core'],
  ...[
    'solana',
    'bitcoin',
    'tron',
    'near',
    'sui',
    'aptos',
    'ton',
    'cardano',
    'polkadot',
    'algorand',
    'stellar',
    'hedera',
  ],
  ...[
    'cosmos',
    'cosmoshub',
    'osmosis',
    'terra',
    'terra2',
    'injective',
    'thorchain',
    'dydx',
    'litecoin',
    'doge',
    'ripple',
    'eos',
  ],
])

/** Documented series of DefiLlama that are intentionally left out. */
const NOT_SUMMED: ReadonlySet<string> = new Set([
  ...[
    'borrowed',
    'doublecounted',
    'dcandlsoverlap',
    'liquidstaking',
    'offers',
    'pool2',
    'staking',
    'treasury',
    'vesting',
  ],
])

interface Series {
  readonly key: string
  readonly points: readonly Amounts[]
  readonly values: ReadonlyMap<number, Amounts['tokens']>
  /** Number of its unreadable points. */
  readonly unreadable: number
  /** Returns whether the series has only an unreadable point on a day, or may have one. */
  readonly isLostOn: (day: number) => boolean
}

/**
 * Returns the series that add up to all holdings: those of the chains, and the DAO's own tokens. `OwnTokens` includes
 * the series `<Chain>-OwnTokens`, which are counted only if `OwnTokens` is missing. Any other series of a chain
 * (`<Chain>-<name>`) is a part of it.
 */
function toSeries({ chainTvls }: Answer): Series[] {
  const isOwn = OWN_TOKENS in chainTvls ? (key: string) => key === OWN_TOKENS : isOwnOfChain
  const isPart = (key: string) => isOwn(key) || SUMMED.has(key.toLowerCase())
  return Object.entries(chainTvls).flatMap(([key, chain]) => {
    if (!isPart(key)) return []
    const sent = chain.tokens ?? []
    const points = sent.flatMap((point) => toAmounts(point) ?? [])
    const values = (chain.tokensInUsd ?? []).flatMap((point) => toAmounts(point) ?? [])
    const unreadable = isUnreadable(chain) ? 1 : sent.length - points.length
    const isLostOn = isUnreadable(chain) ? () => true : toLostDays(sent, points)
    return [{ key, points, unreadable, isLostOn, values: new Map(values.map(({ at, tokens }) => [at, tokens])) }]
  })
}

/** An unreadable point without a time is of any day before the first or after the last readable point. */
function toLostDays(sent: z.infer<typeof amounts>, points: readonly Amounts[]): Series['isLostOn'] {
  const days = new Set(points.map(({ at }) => toBucketStart(at, '1d')))
  const bad = sent.filter((point) => toAmounts(point) === undefined)
  const badDays = new Set(bad.map(({ date }) => toBucketStart(toTime(date), '1d')))
  const [first, last] = [...days].reduce(
    ([least, most], day) => [Math.min(least, day), Math.max(most, day)],
    [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY],
  )
  const isOutside = (day: number) => day < first || day > last
  return (day) => !days.has(day) && (badDays.has(day) || (badDays.has(Number.NaN) && isOutside(day)))
}

/** A series of which a day cannot be read: it may hold anything. */
const toUnreadSeries = (key: string): Holding => ({
  ...{ chain: toChain(key), address: null, contract: null, symbol: '', quantity: null, valueUsd: null },
  ...{ priceSource: null, fault: 'chainTvls.*.tokens: a day without readable amounts' },
})

const isOwnOfChain = (key: string) => key.endsWith(`-${OWN_TOKENS}`)

function toAmounts({ date, tokens }: z.infer<typeof amounts>[number]): Amounts | undefined {
  const at = toTime(date)
  return isTime(at) && tokens !== undefined ? { at, tokens } : undefined
}

/** Unix milliseconds; NaN if the date is no time. */
function toTime(date: unknown): number {
  const at = Number(date ?? Number.NaN) * 1000
  return isTime(at) ? at : Number.NaN
}

/** Lists the unreadable parts of the summed series. */
export function listUnreadable(answer: Answer): string[] {
  const count = toSeries(answer).reduce((sum, { unreadable }) => sum + unreadable, 0)
  return Array.from({ length: count }, () => 'chainTvls.*.tokens: expected a time and amounts')
}

/** Lists series that are left out although they may belong to a chain. */
export function listUnknown({ chainTvls }: Answer): string[] {
  const isRecognized = (key: string) =>
    key === OWN_TOKENS || [SUMMED, NOT_SUMMED].some((names) => names.has(key.toLowerCase()))
  return Object.keys(chainTvls).flatMap((key) =>
    key.includes('-') || isRecognized(key) ? [] : [`chainTvls.${key}: no chain`],
  )
}

/**
 * Returns the current holdings: the newest point of each series, unless it is too old for `slot` (Unix milliseconds).
 */
export function toLatestHoldings(answer: Answer, slot: number): Holding[] {
  return toSeries(answer).flatMap(({ key, points, values, isLostOn }) => {
    const past = points.filter(({ at }) => at <= slot + FRESH_MS)
    const newest = past.reduce<Amounts | undefined>(
      (newest, point) => (newest === undefined || point.at > newest.at ? point : newest),
      undefined,
    )
    const today = toBucketStart(slot, '1d')
    const isAfterNewest = (day: number) => newest === undefined || day > newest.at
    if ([today - DAY_MS, today].some((day) => isAfterNewest(day) && isLostOn(day))) return [toUnreadSeries(key)]
    if (newest === undefined || newest.at < slot - FRESH_MS) return []
    return toHoldings(key, newest, values.get(newest.at))
  })
}

/**
 * Returns the holdings of each day inside the range, from the first point of the day, because the newest day has two. A
 * day that a series skips between its first and its last point is left out: the other series alone must not count as
 * the whole treasury.
 */
export function toDailyHoldings(answer: Answer, range: Range): Map<number, Holding[]> {
  const days = new Map<number, Holding[]>()
  const gaps = new Set<number>()
  const series = toSeries(answer)
  for (const { key, points, values } of series) {
    const firsts = new Map(thin(points, ({ at }) => at, range).map((point) => [toBucketStart(point.at, '1d'), point]))
    for (const [day, point] of firsts) {
      days.set(day, [...(days.get(day) ?? []), ...toHoldings(key, point, values.get(point.at))])
    }
    for (const day of toInnerDays(points, range)) if (!firsts.has(day)) gaps.add(day)
  }
  for (const day of gaps) days.delete(day)
  for (const [day, holdings] of days)
    holdings.push(...series.flatMap(({ key, isLostOn }) => (isLostOn(day) ? [toUnreadSeries(key)] : [])))
  return days
}

/** Returns the days of the range between the first and the last point of a series. */
function toInnerDays(points: readonly Amounts[], range: Range): number[] {
  const times = points.map(({ at }) => at)
  const first = toBucketStart(Math.max(range.from, Math.min(...times)), '1d')
  const last = Math.min(range.to - 1, Math.max(...times))
  const count = Math.max(0, Math.floor((last - first) / DAY_MS) + 1)
  return Array.from({ length: count }, (_, day) => first + day * DAY_MS)
}

/** The provider names tokens only by symbol, which is unique within a series, and has no addresses. */
function toHoldings(key: string, { tokens }: Amounts, values: Amounts['tokens'] | undefined): Holding[] {
  return Object.entries(tokens).map(([symbol, quantity]) => {
    const value = values !== undefined && Object.hasOwn(values, symbol) ? (values[symbol] ?? null) : null
    const valueUsd = orNull(heldValue, value)
    const isLost = values === undefined || (value !== null && valueUsd === null)
    return {
      ...{
        chain: toChain(key),
        address: null,
        contract: null,
        symbol,
        quantity: orNull(heldQuantity, quantity),
        valueUsd,
      },
      priceSource: valueUsd === null ? null : 'defillama',
      ...(key.endsWith(OWN_TOKENS) ? { isOwn: true } : {}),
      ...(isLost ? { fault: 'tokensInUsd.*: no value that can be' } : {}),
    }
  })
}

/** Chains with other names at the provider than in the registry. */
const CHAINS: Readonly<Record<string, string>> = {
  binance: 'bnb',
  bsc: 'bnb',
  'op mainnet': 'optimism',
  xdai: 'gnosis',
}

/** Returns the slug of a series' chain. The own tokens of all chains together have the name of their series. */
function toChain(key: string): string {
  if (key === OWN_TOKENS) return OWN_TOKENS
  const name = key.replace(`-${OWN_TOKENS}`, '').toLowerCase()
  return CHAINS[name] ?? name.replaceAll(' ', '-')
}
