import { createHash } from 'node:crypto'
import type { Dao } from '../../shared/registry/entities.ts'
import { toNoiseKey, unit } from './noise.ts'
import { DAY, type TreasuryHolding, type WorldRegistry } from './world.ts'

/**
 * A transfer of the simulated world: the value of a transaction, a payment by a contract, or a log of a token. Times in
 * Unix seconds, addresses in lower case; the contract of a native coin is empty.
 */
export interface Movement {
  readonly list: 'txlist' | 'txlistinternal' | 'tokentx'
  readonly hash: string
  readonly time: number
  readonly from: string
  readonly to: string
  readonly value: bigint
  readonly contract: string
  readonly symbol: string
  readonly decimals: number
  readonly isFailed?: true
}

/** The transfers of an address between two times (Unix seconds), oldest first. */
export type TransfersOf = (chain: string, address: string, from: number, to: number) => readonly Movement[]

type HoldingsOf = (chain: string, address: string, at: number) => readonly TreasuryHolding[] | null

const WETH = '0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2'
const STETH = '0xae7ab96520de3a18e5e111b5eaab095312d7fe84'
const SETTLEMENT = '0x9008d19f58aabd9ed0d60971565aa8510560ab41'
const ZERO = `0x${'0'.repeat(40)}`
/** The simulated world begins then. */
const START = Date.UTC(2022, 0, 1)

const toHash = (text: string) => `0x${createHash('sha256').update(text).digest('hex')}`
const toAddress = (text: string) => toHash(text).slice(0, 42)

interface Wallet {
  readonly chain: string
  readonly address: string
  readonly dao: Dao
}

/**
 * Wallets pay contributors every month and grants now and then, collect fees every week, sell tokens every quarter, and
 * stake, wrap and move coins. Strangers send tokens named like real ones, claim transfers from the wallet, and transfer
 * nothing.
 */
export function createSimulatedTransfers(registry: WorldRegistry, seed: number, holdingsOf: HoldingsOf): TransfersOf {
  const byAddress = new Map<string, Wallet[]>()
  for (const dao of registry.daos)
    for (const { chain, address } of dao.treasuries) {
      const own = dao.treasuries.filter((one) => one.chain === chain)
      byAddress.set(
        `${chain}:${address}`,
        own.map((one) => ({ chain, address: one.address, dao })),
      )
    }
  return (chain, address, from, to) => {
    const wallets = byAddress.get(`${chain}:${address.toLowerCase()}`) ?? []
    const found: Movement[] = []
    const first = Math.max(START, Math.floor((from * 1000) / DAY) * DAY)
    for (let day = first; day <= to * 1000; day += DAY)
      for (const wallet of wallets)
        for (const one of toDay(wallet, wallets, day, seed, holdingsOf))
          if ((one.from === address || one.to === address) && one.time >= from && one.time <= to) found.push(one)
    return found.sort((a, b) => a.time - b.time)
  }
}

const NOTHING: readonly Movement[] = []

/** The transfers of a wallet on a day, as a function of seed, wallet and day. */
function toDay(
  { chain, address, dao }: Wallet,
  wallets: readonly Wallet[],
  day: number,
  seed: number,
  holdingsOf: HoldingsOf,
): readonly Movement[] {
  const key = toNoiseKey(seed, `transfers ${chain}:${address}`)
  const number = day / DAY
  const phase = Math.floor(unit(key, -1) * 90)
  const isOn = (period: number, offset: number) => (number + phase) % period === offset
  const hasSpam = unit(key, number * 8) < 0.05
  const hasGrant = unit(key, number * 8 + 1) < 0.04
  if (!isOn(30, 0) && !isOn(30, 3) && !isOn(7, 1) && !isOn(90, 45) && !isOn(180, 60) && !hasSpam && !hasGrant)
    return NOTHING
  const holdings = holdingsOf(chain, address, day) ?? []
  const stable = holdings.find(({ type }) => type === 'stablecoin')
  const coin = holdings.find(({ isNative }) => isNative)
  const token = holdings.find(({ isOwn }) => isOwn)
  const movements: Movement[] = []
  let event = 0
  /** A transaction at a time of the day, called by the wallet's signer or by a stranger. */
  const transact = (name: string, isOwn: boolean) => {
    event += 1
    const hash = toHash(`${seed} ${chain} ${address} ${number} ${name}`)
    const time = Math.floor(day / 1000) + 3600 * event + Math.floor(unit(key, number * 8 + event) * 3000)
    const add = (one: Omit<Movement, 'hash' | 'time'>) => void movements.push({ hash, time, ...one })
    const native = { list: 'txlistinternal', contract: '', symbol: '', decimals: 18 } as const
    const call = {
      ...native,
      list: 'txlist',
      from: toAddress(`signer of ${dao.slug}`),
      to: address,
      value: 0n,
    } as const
    if (isOwn) add(call)
    return {
      add,
      pay: (to: string, of: TreasuryHolding | undefined, parts: number) =>
        of !== undefined &&
        of.balance > 0n &&
        add({ ...toAsset(of), from: address, to, value: of.balance / BigInt(parts) }),
      receive: (from: string, of: TreasuryHolding | undefined, parts: number) =>
        of !== undefined &&
        of.balance > 0n &&
        add({ ...toAsset(of), from, to: address, value: of.balance / BigInt(parts) }),
      native,
    }
  }
  if (isOn(30, 0)) {
    const { pay } = transact('payroll', true)
    // Two contributors have the same pay.
    for (const n of [0, 1, 2]) pay(toAddress(`contributor ${Math.max(1, n)} of ${dao.slug}`), stable, 90)
  }
  if (isOn(30, 3)) {
    const other = wallets.find((one) => one.address !== address)
    if (other !== undefined) transact('consolidation', true).pay(other.address, stable ?? coin, 200)
    const failed = transact('failed', false)
    if (coin !== undefined)
      failed.add({ ...failed.native, list: 'txlist', from: ZERO, to: address, value: coin.balance, isFailed: true })
  }
  if (isOn(7, 1)) transact('fees', false).receive(toAddress(`fee collector of ${dao.slug}`), coin, 150)
  if (isOn(90, 45)) {
    const { pay, receive } = transact('sale', true)
    pay(SETTLEMENT, token, 100)
    receive(SETTLEMENT, stable, 40)
  }
  if (isOn(180, 60) && chain === 'ethereum' && coin !== undefined) {
    const value = coin.balance / 50n
    const wrap = transact('wrap', true)
    wrap.add({ ...wrap.native, from: address, to: WETH, value })
    const stake = transact('stake', true)
    stake.add({ ...stake.native, from: address, to: STETH, value })
    stake.add({
      list: 'tokentx',
      from: ZERO,
      to: address,
      value: value - 1n,
      contract: STETH,
      symbol: 'stETH',
      decimals: 18,
    })
  }
  if (hasGrant) transact('grant', true).pay(toAddress(`grantee ${number % 40} of ${dao.slug}`), coin, 400)
  if (hasSpam) {
    const { add } = transact('spam', false)
    const fake = { list: 'tokentx', contract: toAddress(`spam ${number % 17}`), symbol: 'USDC', decimals: 6 } as const
    add({ ...fake, from: toAddress('airdrop'), to: address, value: 5_000_000_000n })
    add({ ...fake, from: address, to: toAddress(`victim ${number}`), value: 25_000_000_000n })
    if (stable !== undefined) add({ ...toAsset(stable), from: address, to: toAddress(`poison ${number}`), value: 0n })
  }
  return movements
}

const toAsset = ({ isNative, contract, symbol, decimals }: TreasuryHolding) =>
  isNative
    ? ({ list: 'txlistinternal', contract: '', symbol: '', decimals: 18 } as const)
    : ({ list: 'tokentx', contract, symbol, decimals } as const)
