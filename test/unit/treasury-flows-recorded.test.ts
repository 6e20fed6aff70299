import { describe, expect, it } from 'vitest'
import type { TreasuryFlowRow } from '../../shared/datasets/treasury-flows.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { classifyTransfers, type FlowFacts } from '../../workers/flows/classify.ts'
import { toFlowRows } from '../../workers/flows/flow-rows.ts'
import type { Transfer } from '../../workers/flows/transfer.ts'
import { WRAPPED_COINS } from '../../workers/flows/wrapped-coins.ts'
import {
  hasFlowData,
  readBalances,
  readDecentralandTransfers,
  readEnsTransfers,
  readExpected,
  readLedger,
  type Seen,
  toDistinct,
  toUnits,
} from '../support/flow-data.ts'

const ENS = { id: 'e'.repeat(24), key: 1 }
const DECENTRALAND = { id: 'd'.repeat(24), key: 2 }
const ENS_TREASURIES = loadRegistry().daoBySlug.get('ens')?.treasuries ?? []
const NONE = new Map<string, ReadonlySet<string>>()
const WETH = WRAPPED_COINS.ethereum?.address ?? ''

/** Facts with these own addresses on every chain, in which every asset is listed. */
const toFacts = (own: Iterable<string>): FlowFacts => {
  const wallets = new Set(own)
  return {
    isOwn: (_, address) => wallets.has(address),
    find: () => undefined,
    findAsset: () => undefined,
    isListed: () => true,
    isWrapper: (chain, address) => WRAPPED_COINS[chain]?.address === address,
  }
}

/** Rows without the token legs of wraps, which no recorded row has. */
const isRecorded = (row: TreasuryFlowRow) =>
  !(row.contract_address === WETH && (row.sender === WETH || row.recipient === WETH))

const toKey = (chain: string, hash: string, contract: string, from: string, to: string, units: bigint | string) =>
  [chain, hash, contract, from, to, units].join(' ')
const keyOfTransfer = (transfer: Transfer) =>
  toKey(
    transfer.chain,
    transfer.transactionHash,
    transfer.contractAddress,
    transfer.sender,
    transfer.recipient,
    transfer.baseUnits,
  )

/**
 * The number of recorded rows by the direction of their transfer. The token legs of wraps are not added: no source of the
 * recording has them, and with them a wrap has the direction of a swap.
 */
function countDirections(seen: readonly Seen[], transfers: readonly Transfer[], facts: FlowFacts) {
  const flows = classifyTransfers(transfers, NONE, facts)
  const directions = new Map(flows.map(({ transfer, direction }) => [keyOfTransfer(transfer), direction]))
  const counts: Record<string, number> = { internal: 0, swap: 0, in: 0, out: 0 }
  for (const { transfer } of seen) {
    const direction = directions.get(keyOfTransfer(transfer)) ?? 'missing'
    counts[direction] = (counts[direction] ?? 0) + 1
  }
  return counts
}

interface Sums {
  in: bigint
  out: bigint
  inCount: number
  outCount: number
}

/** Sums of rows by wallet, asset and month, seen from each of these wallets. */
function sumByMonth(
  rows: readonly Pick<
    TreasuryFlowRow,
    'chain' | 'contract_address' | 'base_units' | 'sender' | 'recipient' | 'recorded_at'
  >[],
  wallets: ReadonlySet<string>,
) {
  const sums = new Map<string, Sums>()
  for (const row of rows)
    for (const [wallet, side] of [
      [row.sender, 'out'],
      [row.recipient, 'in'],
    ] as const) {
      if (!wallets.has(wallet)) continue
      const key = [row.chain, wallet, row.contract_address || 'native', row.recorded_at.slice(0, 7)].join(' ')
      const own = sums.get(key) ?? { in: 0n, out: 0n, inCount: 0, outCount: 0 }
      own[side] += BigInt(row.base_units)
      own[`${side}Count`] += 1
      sums.set(key, own)
    }
  return sums
}

function readExpectedSums(dao: string) {
  const rows = readExpected().filter((row) => row.dao === dao)
  return new Map(
    rows.map((row) => [
      [row.chain, row.wallet, row.contractAddress, row.month].join(' '),
      {
        in: toUnits(String(row.in)),
        out: toUnits(String(row.out)),
        inCount: Number(row.inCount),
        outCount: Number(row.outCount),
      },
    ]),
  )
}

describe.skipIf(!hasFlowData)('recorded transfers of ENS', () => {
  const seen = hasFlowData ? readEnsTransfers() : []
  const wallets = new Set(seen.map(({ wallet }) => wallet))
  const facts = toFacts(wallets)
  const rowsOf = (of: readonly Seen[], own = facts) => toFlowRows(ENS, toDistinct(of), NONE, own)

  it('finds every transfer once, with the sums of each wallet, asset and month', () => {
    expect(seen).toHaveLength(1276)
    const rows = rowsOf(seen).filter(isRecorded)
    expect(sumByMonth(rows, wallets)).toEqual(readExpectedSums('ens'))
    expect(rows.filter(({ direction }) => direction === 'internal')).toHaveLength(16)
    expect(countDirections(seen, toDistinct(seen), facts)).toEqual({ internal: 32, swap: 25, in: 425, out: 794 })
  })

  it('stores nothing of rows that are no transfer, and zero transfers as spam', () => {
    const all = readEnsTransfers({ all: true })
    expect(all).toHaveLength(1310)
    const ignored = all.filter(({ row }) => ['zero', 'self', 'not-a-party'].includes(row.ignore ?? ''))
    const rows = toFlowRows(ENS, toDistinct(ignored), NONE, facts)
    expect(rows.every(({ kind, rule }) => kind === 'spam' && rule === 'zero-quantity')).toBe(true)
    expect(ignored.filter(({ row }) => row.ignore === 'zero')).toHaveLength(15)
  })

  it('has the totals of the assets, to the last digit', () => {
    const rows = rowsOf(seen).filter(isRecorded)
    const total = (contract: string, side: 'sender' | 'recipient') =>
      rows
        .filter((row) => row.contract_address === contract && wallets.has(row[side]))
        .reduce((sum, row) => sum + BigInt(row.base_units), 0n)
    const both = (contract: string) => [total(contract, 'recipient'), total(contract, 'sender')]
    const USDC = '0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48'
    const TOKEN = '0xc18360217d8f7ab5e7c516566761ea12ce7f9d72'
    expect(both(USDC)).toEqual([toUnits('29437231.144127'), toUnits('25666913.401691')])
    expect(both(TOKEN)).toEqual([toUnits('10397526.047252341105622185'), toUnits('540290.450622194389611151')])
    expect(both('')).toEqual([toUnits('50357.732133986938510046'), toUnits('43347.599716470000000003')])
    expect(both(WETH)).toEqual([toUnits('5'), toUnits('10013.748183816794439821')])
    const closed = ['Merch SG', 'Governance Pod', 'Builders SG', 'Bug Bounty SG', 'Translators SG']
    for (const folder of closed) {
      const wallet = seen.find(({ row }) => row.folder === folder)?.wallet
      const own = rows.filter(
        (row) => row.contract_address === USDC && [row.sender, row.recipient].includes(wallet ?? ''),
      )
      const net = own.reduce((sum, row) => sum + BigInt(row.base_units) * (row.recipient === wallet ? 1n : -1n), 0n)
      expect([folder, own.length > 0, net]).toEqual([folder, true, 0n])
    }
  })

  it('adds the token legs of wraps, so that wrapped coins add up', () => {
    const rows = rowsOf(seen)
    const legs = rows.filter((row) => !isRecorded(row))
    const wrapped = (wallet: string) =>
      legs.filter((row) => row.recipient === wallet).reduce((sum, row) => sum + BigInt(row.base_units), 0n)
    expect(wrapped('0xfe89cc7abb2c4183683ab71653c4cdc9b02d44b7')).toBe(toUnits('10000'))
    expect(wrapped('0x536013c57daf01d78e8a70cad1b1abada9411819')).toBe(toUnits('8.748183816794439821'))
    expect(legs.every(({ kind, rule }) => kind === 'investment' && rule === 'wrap')).toBe(true)
  })

  it('is about wallets of the registry', () => {
    const registered = ENS_TREASURIES.flatMap(({ address, role }) => (role === undefined ? [address] : []))
    expect(registered).toEqual(expect.arrayContaining([...wallets]))
  })

  it('separates wallets from contracts with revenue and from payees', () => {
    const registry = [
      '0xfe89cc7abb2c4183683ab71653c4cdc9b02d44b7',
      '0xcd42b4c4d102cc22864e3a1341bb0529c17fd87d',
      '0x536013c57daf01d78e8a70cad1b1abada9411819',
    ]
    const own = seen.filter(({ wallet }) => registry.includes(wallet))
    expect(own).toHaveLength(997)
    // The sums are known for these three wallets and the first addresses of the registry, before it had all wallets.
    const known = ENS_TREASURIES.slice(0, 11)
    const wallets = known.filter(({ role }) => role === undefined).map(({ address }) => address)
    const all = known.map(({ address }) => address)
    expect(countDirections(own, toDistinct(own), toFacts(all))).toEqual({ internal: 271, swap: 20, in: 114, out: 592 })
    expect(countDirections(own, toDistinct(own), toFacts(wallets))).toEqual({
      internal: 41,
      swap: 23,
      in: 324,
      out: 609,
    })
  })

  it('calls transfers to the endowment internal', () => {
    const rows = rowsOf(seen, toFacts([...wallets, '0x4f2083f5fbede34c2714affb3105539775f7fe64']))
    const large = rows.filter((row) => row.contract_address === '' && row.base_units === String(toUnits('16000')))
    expect(large.map(({ recorded_at, kind }) => [recorded_at.slice(0, 10), kind])).toEqual([
      ['2023-03-07', 'internal'],
      ['2023-10-07', 'internal'],
    ])
  })

  it('has a transfer for each row of the published ledger', () => {
    const amounts = new Map<string, number[]>()
    for (const { transfer } of seen) {
      const asset = transfer.contractAddress === WETH ? 'ETH' : transfer.symbol
      const key = `${transfer.transactionHash} ${asset}`
      amounts.set(key, [...(amounts.get(key) ?? []), Number(transfer.baseUnits) / 1e18])
    }
    const ledger = readLedger().filter((row) => /^0x[0-9a-f]{64}$/.test(row['Transaction Hash'] ?? ''))
    expect(ledger).toHaveLength(673)
    const missing = ledger.filter((row) => {
      const value = Math.abs(Number(row.Value))
      const found = amounts.get(`${row['Transaction Hash']} ${row.Symbol}`) ?? []
      return !found.some((amount) => Math.abs(amount - value) <= value * 1e-6)
    })
    expect(missing).toEqual([])
  })

  it('gives the same rows for reordered and overlapping reads', () => {
    const transfers = toDistinct(seen)
    const sort = (rows: readonly TreasuryFlowRow[]) => rows.map((row) => JSON.stringify(row)).sort()
    const once = toFlowRows(ENS, transfers, NONE, facts)
    expect(sort(toFlowRows(ENS, transfers.toReversed(), NONE, facts))).toEqual(sort(once))
    const [first, second] = [0.6, 0.4].map((share) => {
      const blocks = transfers.map(({ blockNumber }) => blockNumber).sort((a, b) => a - b)
      return blocks[Math.floor(blocks.length * share)] ?? 0
    })
    const parts = [
      ...toFlowRows(
        ENS,
        transfers.filter(({ blockNumber }) => blockNumber <= (first ?? 0)),
        NONE,
        facts,
      ),
      ...toFlowRows(
        ENS,
        transfers.filter(({ blockNumber }) => blockNumber >= (second ?? 0)),
        NONE,
        facts,
      ),
    ]
    expect([...new Set(sort(parts))]).toEqual(sort(once))
  })
})

describe.skipIf(!hasFlowData)('recorded transfers of Decentraland', () => {
  const ARAGON = '0x9a6ebe7e2a7722f8200d0ffb63a1f6406a0d7dce'
  const POLYGON = '0xb08e3e7cc815213304d884c88ca476ebc50eaab2'
  const wallets = new Set([ARAGON, POLYGON, '0x89214c8ca9a49e60a3bfa8e00544f384c93719b1'])
  const seen = hasFlowData ? readDecentralandTransfers() : []
  const facts = toFacts(wallets)

  it('is about wallets of the registry', () => {
    const registered = loadRegistry()
      .daoBySlug.get('decentraland')
      ?.treasuries.map(({ address }) => address)
    expect(registered?.sort()).toEqual([...wallets].sort())
  })

  const rows = toFlowRows(
    DECENTRALAND,
    seen.map(({ transfer }) => transfer),
    NONE,
    facts,
  )

  it('keeps equal payments of a transaction, with the sums of each wallet, asset and month', () => {
    expect(seen).toHaveLength(7896)
    const transfers = seen.map(({ transfer }) => transfer)
    // The expected sums count a transfer of a wallet to itself on both sides.
    const toItself = transfers.filter(({ sender, recipient }) => sender === recipient)
    expect(toItself).toHaveLength(1)
    expect(rows).toHaveLength(7895)
    const asRows = toItself.map((one) => ({
      ...{ chain: one.chain, contract_address: one.contractAddress, base_units: String(one.baseUnits) },
      ...{ sender: one.sender, recipient: one.recipient, recorded_at: new Date(one.time * 1000).toISOString() },
    }))
    expect(sumByMonth([...rows, ...asRows], wallets)).toEqual(readExpectedSums('decentraland'))
    const counts = countDirections(seen, transfers, facts)
    expect(counts).toEqual({ internal: 1, missing: 1, swap: 64, in: 7732, out: 98 })
    const swaps = rows.filter(({ direction }) => direction === 'swap')
    expect(new Set(swaps.map((row) => row.transaction_hash)).size).toBe(32)
    expect(new Set(swaps.map((row) => row.swap_group)).size).toBe(32)
  })

  it('explains the changes of the recorded balances', () => {
    const [start, end] = ['2026-01-01T10:26:25.990Z', '2026-02-28T10:26:20.707Z']
    const netOf = (wallet: string, chain: string, contract: string) => {
      const own = rows.filter(
        (row) =>
          row.chain === chain &&
          row.contract_address === contract &&
          [row.sender, row.recipient].includes(wallet) &&
          row.recorded_at > start &&
          row.recorded_at <= end,
      )
      const sum = (side: 'sender' | 'recipient') =>
        own.filter((row) => row[side] === wallet).reduce((total, row) => total + BigInt(row.base_units), 0n)
      return { rows: own.length, in: sum('recipient'), out: sum('sender') }
    }
    const changeOf = (wallet: string, contract: string) => {
      const [, before, after] = readBalances()
        .filter(({ Wallet: _, ...row }) => row.Address === wallet && row.Token === contract)
        .map((row) => toUnits(String(row.Balance)))
      return (after ?? 0n) - (before ?? 0n)
    }
    const aragon = netOf(ARAGON, 'ethereum', '0x0f5d2fb29fb7d3cfee444a200298f468908cc942')
    expect(aragon.rows).toBe(379)
    expect(aragon.in - aragon.out).toBe(toUnits('40795.4'))
    expect(changeOf(ARAGON, '0x0f5d2fb29fb7d3cfee444a200298f468908cc942')).toBe(toUnits('40795.4'))
    const MANA = '0xa1c57f48f0deb89f569dfbe6e2b7f46d33606fd4'
    const polygon = netOf(POLYGON, 'polygon', MANA)
    expect(polygon).toEqual({ rows: 3050, in: toUnits('42606.2731519878507'), out: toUnits('30000') })
    expect(Number(polygon.in - polygon.out - changeOf(POLYGON, MANA)) / 1e18).toBeCloseTo(0, 9)
  })
})
