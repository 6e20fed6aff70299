import { goldrushDeclaration } from '../../../shared/config/providers/goldrush.ts'
import type { DaoTreasuryRow } from '../../../shared/datasets/treasury.ts'
import { DataError } from '../../../shared/errors.ts'
import { DAY_MS } from '../../../shared/intervals.ts'
import type { HttpClient } from '../../http/client.ts'
import type { Provider, Range } from '../../job/define-job.ts'
import { toUnreadable } from '../answer.ts'
import type { TreasurySource } from '../contracts/treasury.ts'
import type { TreasuryDao, Wallet } from '../contracts/treasury-daos.ts'
import { openPrices, type TokenPrices, toCoin } from '../defillama/prices.ts'
import { type Holding, toTreasuryRow } from '../treasury-holdings.ts'
import { balancesData, countSpam, type Position, toPositions, toSpam } from './balances.ts'
import { fetchData, openGoldRush } from './client.ts'
import { listUndated, portfolioData, toDailyPositions } from './portfolio.ts'

/** Number of DAOs requested concurrently; the addresses of one DAO are requested in sequence. */
const CONCURRENCY = 4

/**
 * GoldRush, formerly Covalent (docs/providers.md, section 11). Without a key, every call is `provider_unconfigured`.
 * Holdings without a quote are priced by DefiLlama, and have no value if DefiLlama has no price either.
 */
export const goldrush: Provider<TreasurySource, TreasuryDao> = {
  name: 'goldrush',
  cost: goldrushDeclaration.cost,
  covers: ({ wallets }) => wallets.length > 0 && wallets.every(({ chainId }) => chainId !== null),
  connect(context) {
    const { config, now = Date.now } = context
    const { apiKey } = config.providers.goldrush
    const client = openGoldRush(context)
    const prices = openPrices(context)
    const refuseWithoutKey = () => {
      if (apiKey === undefined) throw new DataError('provider_unconfigured', 'goldrush: GOLDRUSH_API_KEY is not set')
    }
    return {
      concurrency: CONCURRENCY,
      async fetchTreasury(dao, slot, signal) {
        refuseWithoutKey()
        const found = await fetchPositions(client, dao, signal)
        if (found === undefined) return undefined
        const { positions, ...spam } = found
        const holdings = await toHoldings(new Map([[slot, positions]]), signal, (coins) =>
          priceNow(prices, coins, slot, signal),
        )
        return toTreasuryRow(dao, slot, 'goldrush', { holdings: holdings.get(slot) ?? [], ...spam })
      },
      async fetchHistory(dao, range, signal) {
        refuseWithoutKey()
        // The provider counts whole days back from its current day.
        const days = Math.ceil((now() - range.from) / DAY_MS) + 1
        const { daily, faults } = await fetchDailyPositions(client, dao, range, days, signal)
        const times = [...daily.keys()]
        const holdings = await toHoldings(daily, signal, (coins) => prices.past(coins, times, signal))
        // The provider does not mark spam in the past.
        const rows = [...holdings].flatMap(
          ([day, held]) => toTreasuryRow(dao, day, 'goldrush', { holdings: held, spamCount: null }) ?? [],
        )
        // The next provider may have these days: missing rows do not mean that there was no treasury.
        if (rows.length === 0)
          throw new DataError('provider_unknown', `goldrush: no day of the range for all addresses of ${dao.name}`)
        return [...rows, ...faults.map((fault) => toUnreadable<DaoTreasuryRow>(fault, { dao: dao.key }))]
      },
    }
  },
}

type PriceTable = Awaited<ReturnType<TokenPrices['past']>>

async function priceNow(source: TokenPrices, coins: readonly string[], slot: number, signal: AbortSignal) {
  const { prices, faults } = await source.now(coins, signal)
  return { prices: new Map([...prices].map(([coin, price]) => [coin, new Map([[slot, price]])])), faults }
}

/** Adds known values to positions. If a price request fails, the run fails: the price is not treated as unknown. */
async function toHoldings(
  positions: ReadonlyMap<number, readonly Position[]>,
  signal: AbortSignal,
  findPrices: (coins: readonly string[]) => Promise<PriceTable>,
): Promise<Map<number, Holding[]>> {
  signal.throwIfAborted()
  const isUnpriced = ({ valueUsd, quantity }: Position) => valueUsd === null && quantity !== null && quantity !== 0
  const toCoins = ({ chain, contract }: Position) => (contract === null ? [] : [toCoin(chain, contract)])
  const coins = [...new Set([...positions.values()].flat().filter(isUnpriced).flatMap(toCoins))]
  const { prices, faults }: PriceTable =
    coins.length === 0 ? { prices: new Map(), faults: new Map() } : await findPrices(coins)
  const toHolding = (position: Position, at: number): Holding => {
    const [coin = ''] = toCoins(position)
    const [price, fault] = [prices.get(coin)?.get(at), faults.get(coin)]
    if (position.valueUsd !== null || !position.quantity) return position
    if (price !== undefined) return { ...position, valueUsd: position.quantity * price, priceSource: 'defillama' }
    return fault === undefined ? position : { ...position, fault: position.fault ?? fault }
  }
  return new Map([...positions].map(([at, held]) => [at, held.map((position) => toHolding(position, at))]))
}

/**
 * Fetches the current holdings of all addresses. Undefined if the response for one address is falsely empty, or if all
 * are empty.
 */
async function fetchPositions(client: HttpClient, dao: TreasuryDao, signal: AbortSignal) {
  const positions: Position[] = []
  const spam: ReturnType<typeof toSpam> = []
  let [isUsed, spamCount] = [false, 0]
  for (const wallet of dao.wallets) {
    const found = await fetchBalances(client, wallet, DAYS_BEFORE, signal)
    if (found === undefined) return undefined
    if (found === UNUSED) continue
    isUsed = true
    positions.push(...found.positions)
    spam.push(...found.spam)
    spamCount += found.spamCount
  }
  return isUsed ? { positions, spamCount, spam } : undefined
}

/** The address was never used on that chain: the provider lists no balance, also not in the days before. */
const UNUSED = 'unused'
const DAYS_BEFORE = 7

/**
 * Fetches the balances of an address. Undefined if the response is empty although the address held something in the
 * given days: the response is wrong, or the address was emptied.
 */
async function fetchBalances(client: HttpClient, wallet: Wallet, days: number, signal: AbortSignal) {
  // Spam is included with a mark, so it can be counted.
  const query = { 'quote-currency': 'USD', nft: 'false' }
  const data = await fetchData(client, wallet, 'balances_v2', balancesData, query, signal)
  if (data.items.length > 0)
    return { positions: toPositions(data, wallet), spamCount: countSpam(data), spam: toSpam(data, wallet) }
  const before = await fetchData(client, wallet, 'portfolio_v2', portfolioData, { days }, signal)
  return before.items.length === 0 ? UNUSED : undefined
}

/**
 * Fetches the holdings of all addresses by day, only for days that every address has. `faults` are the unreadable
 * parts.
 * @throws DataError `provider_malformed` for an empty response that another response contradicts, and if all responses
 *   are empty.
 */
async function fetchDailyPositions(
  client: HttpClient,
  dao: TreasuryDao,
  range: Range,
  days: number,
  signal: AbortSignal,
): Promise<{ daily: Map<number, Position[]>; faults: readonly string[] }> {
  const byWallet: Map<number, Position[]>[] = []
  const faults: string[] = []
  let isUsed = false
  for (const wallet of dao.wallets) {
    // An address emptied during the range is not an unused address of the range, so the whole range is checked.
    const current = await fetchBalances(client, wallet, days, signal)
    if (current === undefined) throw toContradicted(wallet)
    if (current === UNUSED) continue
    isUsed = true
    const data = await fetchData(client, wallet, 'portfolio_v2', portfolioData, { days }, signal)
    faults.push(...listUndated(data))
    if (data.items.length > 0) byWallet.push(toDailyPositions(data, current.positions, wallet, range))
    else if (current.positions.length > 0) throw toContradicted(wallet)
  }
  if (!isUsed) throw new DataError('provider_malformed', `goldrush: empty answers for all addresses of ${dao.name}`)
  const [first = new Map<number, Position[]>(), ...rest] = byWallet
  const shared = [...first.keys()].filter((day) => rest.every((ofWallet) => ofWallet.has(day)))
  return { daily: new Map(shared.map((day) => [day, byWallet.flatMap((wallet) => wallet.get(day) ?? [])])), faults }
}

const toContradicted = ({ address }: Wallet) =>
  new DataError('provider_malformed', `goldrush: an empty answer for ${address}`)
