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
import { balancesData, countSpam, type Position, toPositions } from './balances.ts'
import { fetchData, openGoldRush } from './client.ts'
import { listUndated, portfolioData, toDailyPositions } from './portfolio.ts'

/** DAOs that are asked for at once; the addresses of one come one after the other. */
const CONCURRENCY = 4

/**
 * GoldRush, formerly Covalent (docs/providers.md, section 11). It needs a key; without one every call is
 * `provider_unconfigured`. Holdings for which it has no quote are priced by DefiLlama, and have no value where that has no
 * price either.
 */
export const goldrush: Provider<TreasurySource, TreasuryDao> = {
  name: 'goldrush',
  cost: '0.5 credits a call and more',
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
        const { positions, spamCount } = found
        const holdings = await toHoldings(new Map([[slot, positions]]), signal, (coins) =>
          priceNow(prices, coins, slot, signal),
        )
        return toTreasuryRow(dao, slot, 'goldrush', { holdings: holdings.get(slot) ?? [], spamCount })
      },
      async fetchHistory(dao, range, signal) {
        refuseWithoutKey()
        // The provider counts whole days back from its own today.
        const days = Math.ceil((now() - range.from) / DAY_MS) + 1
        const { daily, faults } = await fetchDailyPositions(client, dao, range, days, signal)
        const times = [...daily.keys()]
        const holdings = await toHoldings(daily, signal, (coins) => prices.past(coins, times, signal))
        // The past is told without a mark of what is spam.
        const rows = [...holdings].flatMap(
          ([day, held]) => toTreasuryRow(dao, day, 'goldrush', { holdings: held, spamCount: null }) ?? [],
        )
        // A day that is not told here may be told by the next provider: it is not one without a treasury.
        if (rows.length === 0)
          throw new DataError('provider_unknown', `goldrush: no day of the range for all addresses of ${dao.name}`)
        return [...rows, ...faults.map((fault) => toUnreadable<DaoTreasuryRow>(fault, { dao: dao.key }))]
      },
    }
  },
}

type PriceTable = ReadonlyMap<string, ReadonlyMap<number, number>>

async function priceNow(prices: TokenPrices, coins: readonly string[], slot: number, signal: AbortSignal) {
  const found = await prices.now(coins, signal)
  return new Map([...found].map(([coin, price]) => [coin, new Map([[slot, price]])]))
}

/** Positions with a value where one is known. A price that cannot be asked for is a failure, not an unknown price. */
async function toHoldings(
  positions: ReadonlyMap<number, readonly Position[]>,
  signal: AbortSignal,
  findPrices: (coins: readonly string[]) => Promise<PriceTable>,
): Promise<Map<number, Holding[]>> {
  signal.throwIfAborted()
  const unpriced = [...positions.values()]
    .flat()
    .filter(({ valueUsd, quantity }) => valueUsd === null && quantity !== null && quantity !== 0)
  const coins = [...new Set(unpriced.map(({ chain, contract }) => toCoin(chain, contract)))]
  const prices: PriceTable = coins.length === 0 ? new Map() : await findPrices(coins)
  const toHolding = (position: Position, at: number): Holding => {
    const price = prices.get(toCoin(position.chain, position.contract))?.get(at)
    const isPriced = position.valueUsd !== null || position.quantity === null || price === undefined
    return isPriced ? position : { ...position, valueUsd: position.quantity * price, priceSource: 'defillama' }
  }
  return new Map([...positions].map(([at, held]) => [at, held.map((position) => toHolding(position, at))]))
}

/** What all addresses hold now; undefined where one has an empty answer that is not true, or all have. */
async function fetchPositions(client: HttpClient, dao: TreasuryDao, signal: AbortSignal) {
  const positions: Position[] = []
  let [isUsed, spamCount] = [false, 0]
  for (const wallet of dao.wallets) {
    const found = await fetchBalances(client, wallet, DAYS_BEFORE, signal)
    if (found === undefined) return undefined
    if (found === UNUSED) continue
    isUsed = true
    positions.push(...found.positions)
    spamCount += found.spamCount
  }
  return isUsed ? { positions, spamCount } : undefined
}

/** The provider lists nothing of an address, now and in the days before: it was not used on that chain. */
const UNUSED = 'unused'
const DAYS_BEFORE = 7

/**
 * Undefined for an empty answer about an address that held something in so many days before: something is wrong with it,
 * or it was emptied.
 */
async function fetchBalances(client: HttpClient, wallet: Wallet, days: number, signal: AbortSignal) {
  // Spam comes with a mark, so that it is counted here.
  const query = { 'quote-currency': 'USD', nft: 'false' }
  const data = await fetchData(client, wallet, 'balances_v2', balancesData, query, signal)
  if (data.items.length > 0) return { positions: toPositions(data, wallet), spamCount: countSpam(data) }
  const before = await fetchData(client, wallet, 'portfolio_v2', portfolioData, { days }, signal)
  return before.items.length === 0 ? UNUSED : undefined
}

/**
 * What all addresses held, by day; only days of which every address tells. `faults` are what cannot be read of the answers.
 * @throws DataError `provider_malformed` for an empty answer that another one contradicts, and where all are empty.
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
    // What was emptied before the last days, but in the range, is no unused address of the range.
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
  const [first = new Map<number, Position[]>(), ...others] = byWallet
  const shared = [...first.keys()].filter((day) => others.every((other) => other.has(day)))
  return { daily: new Map(shared.map((day) => [day, byWallet.flatMap((wallet) => wallet.get(day) ?? [])])), faults }
}

const toContradicted = ({ address }: Wallet) =>
  new DataError('provider_malformed', `goldrush: an empty answer for ${address}`)
