import { z } from 'zod'
import { tokenPrice } from '../../../shared/datasets/token-prices.ts'
import { DataError } from '../../../shared/errors.ts'
import type { HttpClient } from '../../http/client.ts'
import { orNull } from '../answer.ts'
import { fetchPrices } from '../evm/dex/quote-prices.ts'
import { type BlockState, orNone, type StateQuestion } from './contract-views.ts'
import { type Decimal, toDecimal } from './decimal.ts'

/** The price of one ether in dollars, and its source. */
export interface EtherPrice {
  readonly usd: Decimal
  readonly source: 'chainlink' | 'defillama'
}

/** Chainlink's ETH/USD feed by chain (docs/providers.md, section 16). */
const FEEDS: Readonly<Record<string, string>> = { ethereum: '0x5f4ec3df9cbd43714fe2740f5e3616155c5b8419' }
const FEED_PLACES = 8
/** The feed is updated at least once an hour. If the last update is older than two hours, the feed is not used. */
const OLDEST_SECONDS = 2 * 3600

const ETHER = 'coingecko:ethereum'

const round = z
  .tuple([z.bigint(), z.bigint(), z.bigint(), z.bigint(), z.bigint()])
  .transform(([, answer, , updatedAt]) => ({ answer, updatedAt: Number(updatedAt) }))

type Round = z.infer<typeof round>

/**
 * Returns the call to the chain's feed. On a chain without a feed, the call goes to an address without a contract,
 * which returns an empty result.
 */
export function latestRoundOf(chain: string, state: BlockState): StateQuestion<Round | undefined> {
  return orNone(state.view(FEEDS[chain] ?? `0x${'0'.repeat(40)}`, 'latestRoundData', [], round))
}

/**
 * Returns the price of ether at a block's time (Unix seconds): the feed's price if it is fresh, or else DefiLlama's
 * from at most half an hour before.
 * @throws DataError `provider_unavailable` if neither has a fresh price: an older one would be a guess.
 */
export async function toEtherPrice(
  feed: Round | undefined,
  seconds: number,
  prices: HttpClient,
  signal: AbortSignal,
): Promise<EtherPrice> {
  if (feed !== undefined && isUsable(feed, seconds))
    return { usd: { units: feed.answer, places: FEED_PLACES }, source: 'chainlink' }
  const usd = (await fetchPrices(prices, ETHER, seconds, seconds, signal))(seconds)
  if (usd !== undefined) return { usd: toDecimal(String(usd)), source: 'defillama' }
  const message = 'the price of ether is not known: Chainlink has no fresh one, and DefiLlama none'
  throw new DataError('provider_unavailable', message)
}

/** A block cannot contain an update later than the block. */
const isUsable = ({ answer, updatedAt }: Round, seconds: number): boolean =>
  orNull(tokenPrice, Number(answer) / 10 ** FEED_PLACES) !== null &&
  updatedAt <= seconds &&
  seconds - updatedAt <= OLDEST_SECONDS
