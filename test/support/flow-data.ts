import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import type { Transfer } from '../../workers/flows/transfer.ts'

const dataDir = join(process.env.UPSTREAM_DATA_DIR || join(import.meta.dirname, '../../../shared/data'), 'flows')

/** Whether the recorded transfers of ENS and Decentraland are there. */
export const hasFlowData = existsSync(join(dataDir, 'ens-transfers.csv.gz'))
if (!hasFlowData) console.log(`no recorded transfers at ${dataDir}: their tests are skipped`)

type Row = Readonly<Record<string, string>>

function read(name: string): Row[] {
  const bytes = readFileSync(join(dataDir, name))
  const text = (name.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('utf8')
  const [head = '', ...lines] = text.split('\n').filter((line) => line.trim() !== '')
  const names = splitLine(head)
  return lines.map((line) => Object.fromEntries(splitLine(line).map((value, at) => [names[at] ?? '', value])))
}

/** Splits a line of CSV; quoted fields may contain commas. */
const splitLine = (line: string): string[] =>
  [...`${line.replace(/\r$/, '')},`.matchAll(/("(?:[^"]|"")*"|[^,]*),/g)].map(([, field = '']) =>
    field.startsWith('"') ? field.slice(1, -1).replaceAll('""', '"') : field,
  )

const DECIMALS = 18

/** A decimal text in units of 10^-`digits`; no float is involved. */
export function toUnits(text: string, digits = DECIMALS): bigint {
  const [, sign = '', whole = '0', fraction = '', exponent = '0'] =
    /^(-?)(\d*)(?:\.(\d*))?(?:e([+-]?\d+))?$/i.exec(text) ?? []
  const shift = digits + Number(exponent) - fraction.length
  const number = BigInt(`${whole}${fraction}`)
  const scaled = shift >= 0 ? number * 10n ** BigInt(shift) : number / 10n ** BigInt(-shift)
  return sign === '-' ? -scaled : scaled
}

/** A recorded transfer, as one wallet saw it. */
export interface Seen {
  readonly wallet: string
  readonly transfer: Transfer
  readonly row: Row
}

/** The counted rows of ENS: those without a reason to ignore them. All of them, with `all`. */
export function readEnsTransfers(options: { readonly all?: boolean } = {}): Seen[] {
  const rows = read('ens-transfers.csv.gz')
  return rows
    .filter(({ ignore }) => options.all === true || ignore === '')
    .map((row) => ({
      wallet: String(row.wallet),
      row,
      transfer: {
        chain: 'ethereum',
        blockNumber: Number(row.blockNumber),
        time: Date.parse(String(row.timestamp)) / 1000,
        transactionHash: String(row.transactionHash),
        contractAddress: String(row.contractAddress),
        sender: String(row.from),
        recipient: String(row.to),
        baseUnits: toUnits(String(row.quantity)),
        symbol: String(row.symbol),
        decimals: DECIMALS,
        provider: 'recorded',
      },
    }))
}

export function readDecentralandTransfers(): Seen[] {
  return read('decentraland-transactions.csv.gz').map((row) => ({
    wallet: '',
    row,
    transfer: {
      chain: String(row.Network).toLowerCase(),
      blockNumber: Number(row.Block),
      time: Date.parse(String(row.Date)) / 1000,
      transactionHash: String(row.Hash),
      contractAddress: String(row.Contract),
      sender: String(row['Transfer From']),
      recipient: String(row['Transfer To']),
      baseUnits: toUnits(String(row.Amount)),
      symbol: String(row.Token),
      decimals: DECIMALS,
      provider: 'recorded',
    },
  }))
}

export const readExpected = () => read('expected.csv')
export const readLedger = () => read('ens-ledger.csv.gz')
export const readBalances = () => read('decentraland-balances.csv')

/**
 * One copy of each transfer. A transfer between two recorded wallets is in the export of both, so of equal rows those of
 * one wallet count.
 */
export function toDistinct(seen: readonly Seen[]): Transfer[] {
  const counts = new Map<string, Map<string, Transfer[]>>()
  for (const { wallet, transfer } of seen) {
    const { transactionHash, contractAddress, sender, recipient, baseUnits, chain } = transfer
    const key = [chain, transactionHash, contractAddress, sender, recipient, baseUnits].join(' ')
    const byWallet = counts.get(key) ?? new Map<string, Transfer[]>()
    byWallet.set(wallet, [...(byWallet.get(wallet) ?? []), transfer])
    counts.set(key, byWallet)
  }
  return [...counts.values()].flatMap((byWallet) => [...byWallet.values()].sort((a, b) => b.length - a.length)[0] ?? [])
}
