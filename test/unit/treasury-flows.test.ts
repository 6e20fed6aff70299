import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { treasuryFlowRow } from '../../shared/datasets/treasury-flows.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { FLOW_RULES } from '../../workers/flows/classify.ts'
import { type OperatorLabels, readLabels, toFlowFacts, toKnownAddresses } from '../../workers/flows/flow-facts.ts'
import { toFlowRows } from '../../workers/flows/flow-rows.ts'
import { type ActedIn, type Transfer, ZERO_ADDRESS } from '../../workers/flows/transfer.ts'

const registry = loadRegistry()
const ens = registry.daoBySlug.get('ens')
if (ens === undefined) throw new Error('no ENS')
const known = toKnownAddresses(registry)

const WALLET = '0xfe89cc7abb2c4183683ab71653c4cdc9b02d44b7'
const SECOND = '0xcd42b4c4d102cc22864e3a1341bb0529c17fd87d'
const PAYEE = '0x690f0581ececcf8389c223170778cd9d029606f2'
const STRANGER = `0x${'5'.repeat(40)}`
const UNKNOWN_TOKEN = `0x${'7'.repeat(40)}`
const USDC = '0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48'
const WETH = '0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2'
const STETH = '0xae7ab96520de3a18e5e111b5eaab095312d7fe84'
const COW = '0x9008d19f58aabd9ed0d60971565aa8510560ab41'
const hash = (n: number) => `0x${n.toString(16).padStart(64, '0')}`

const transfer = (sender: string, recipient: string, contractAddress = '', more: Partial<Transfer> = {}): Transfer => ({
  ...{ chain: 'ethereum', blockNumber: 5, time: 1_700_000_000, transactionHash: hash(1), contractAddress, sender },
  ...{ recipient, baseUnits: 100n, symbol: 'X', decimals: 18, provider: 'etherscan', ...more },
})

const NOBODY: ActedIn = new Map()
const rowsOf = (transfers: readonly Transfer[], actedIn = NOBODY, labels: OperatorLabels = new Map(), dao = ens) =>
  toFlowRows(dao, transfers, actedIn, toFlowFacts(dao, known, labels)).map((row) => treasuryFlowRow.parse(row))
const kindsOf = (...given: Parameters<typeof rowsOf>) =>
  rowsOf(...given).map(({ direction, leg, kind, rule }) => [direction, leg, kind, rule].filter(Boolean).join(' '))

/** Writes an operator's file and returns its path. */
function writeLabels(text: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'dao-data-labels-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'counterparties.json')
  writeFileSync(file, text)
  return file
}

describe('kinds of transfers', () => {
  it('are income, spending and internal, by the roles of addresses', () => {
    expect(kindsOf([transfer(STRANGER, WALLET)])).toEqual(['in income inflow'])
    expect(kindsOf([transfer(WALLET, PAYEE, USDC)])).toEqual(['out spending outflow'])
    expect(kindsOf([transfer(WALLET, SECOND, USDC)])).toEqual(['internal internal own-addresses'])
    expect(rowsOf([transfer(WALLET, PAYEE)])[0]?.counterparty_label).toBe('Payee of Ethereum Name Service')
    expect(kindsOf([transfer(WALLET, WALLET)])).toEqual([])
    expect(kindsOf([transfer(STRANGER, PAYEE)])).toEqual([])
  })

  it('are internal only from the day on which both wallets belong to the DAO', () => {
    const treasuries = ens.treasuries.map((one) => (one.address === SECOND ? { ...one, since: '2024-01-01' } : one))
    const dao = { ...ens, treasuries }
    const at = (day: string) => [transfer(WALLET, SECOND, USDC, { time: Date.parse(day) / 1000 })]
    expect(kindsOf(at('2023-12-31T23:59:59Z'), NOBODY, new Map(), dao)).toEqual(['out spending outflow'])
    expect(kindsOf(at('2024-01-01'), NOBODY, new Map(), dao)).toEqual(['internal internal own-addresses'])
  })

  it('are spam if nothing is transferred, or an unlisted asset without an act of the DAO', () => {
    expect(kindsOf([transfer(WALLET, STRANGER, USDC, { baseUnits: 0n })])).toEqual(['out spam zero-quantity'])
    const claimed = [transfer(WALLET, STRANGER, UNKNOWN_TOKEN), transfer(STRANGER, WALLET, UNKNOWN_TOKEN)]
    expect(kindsOf(claimed)).toEqual(['out spam unlisted-asset', 'in spam unlisted-asset'])
    // An asset with the symbol of a real one is another asset.
    expect(kindsOf([transfer(STRANGER, WALLET, UNKNOWN_TOKEN, { symbol: 'USDC' })])).toEqual(['in spam unlisted-asset'])
    const acted: ActedIn = new Map([[hash(1), new Set([WALLET])]])
    expect(kindsOf([transfer(STRANGER, WALLET, UNKNOWN_TOKEN)], acted)).toEqual(['in income inflow'])
    const strange: ActedIn = new Map([[hash(1), new Set([STRANGER])]])
    expect(kindsOf([transfer(STRANGER, WALLET, UNKNOWN_TOKEN)], strange)).toEqual(['in spam unlisted-asset'])
  })

  it('are one swap for all parts of a transaction', () => {
    const parts = [
      transfer(WALLET, STRANGER, USDC),
      transfer(STRANGER, WALLET, UNKNOWN_TOKEN),
      transfer(STRANGER, WALLET, '', { baseUnits: 1n }),
    ]
    expect(kindsOf(parts)).toEqual(['swap out swap swap', 'swap in swap swap', 'swap in swap swap'])
    expect(new Set(rowsOf(parts).map(({ swap_group }) => swap_group)).size).toBe(1)
    expect(kindsOf([transfer(WALLET, STRANGER, USDC), transfer(STRANGER, WALLET, USDC)])).toEqual([
      'out spending outflow',
      'in income inflow',
    ])
    expect(kindsOf([transfer(WALLET, COW, USDC)])).toEqual(['out swap settlement'])
  })

  it('are investments for wraps, shares and known protocols', () => {
    const wrap = rowsOf([transfer(WALLET, WETH)])
    expect(wrap.map((row) => [row.symbol, row.leg, row.kind, row.rule, row.base_units])).toEqual([
      ['ETH', 'out', 'investment', 'wrap', '100'],
      ['WETH', 'in', 'investment', 'wrap', '100'],
    ])
    // Both sides are in the logs of a node that is read with the events of Safes.
    expect(rowsOf([transfer(WALLET, WETH, WETH), transfer(WETH, WALLET)])).toHaveLength(2)
    expect(rowsOf([transfer(WALLET, WETH), transfer(WALLET, WETH)]).map(({ occurrence }) => occurrence)).toEqual([
      0, 1, 0, 1,
    ])
    expect(kindsOf([transfer(WALLET, STRANGER, USDC), transfer(ZERO_ADDRESS, WALLET, UNKNOWN_TOKEN)])).toEqual([
      'swap out investment shares',
      'swap in investment shares',
    ])
    expect(kindsOf([transfer(WALLET, STETH)])).toEqual(['out investment protocol'])
  })

  it('are mint and burn without another side', () => {
    const token = registry.tokenById.get(ens.token ?? '')?.contractAddress
    expect(kindsOf([transfer(ZERO_ADDRESS, WALLET, token)])).toEqual(['in mint zero-address'])
    expect(kindsOf([transfer(WALLET, ZERO_ADDRESS, token)])).toEqual(['out burn zero-address'])
  })

  it("follow the operator's file", async () => {
    const entries = [
      { address: STRANGER, chain: 'ethereum', label: 'Grantee', class: 'spending', category: 'grants' },
      { address: UNKNOWN_TOKEN, label: 'Token of a friend' },
      { address: COW.toUpperCase().replace('0X', '0x'), label: 'Trap', class: 'spam' },
    ]
    const labels = await readLabels(writeLabels(JSON.stringify(entries)))
    const [row] = rowsOf([transfer(STRANGER, WALLET, UNKNOWN_TOKEN)], NOBODY, labels)
    expect([row?.kind, row?.rule, row?.category, row?.counterparty_label]).toEqual([
      'spending',
      'operator',
      'grants',
      'Grantee',
    ])
    expect(kindsOf([transfer(SECOND, WALLET, UNKNOWN_TOKEN)], NOBODY, labels)).toEqual([
      'internal internal own-addresses',
    ])
    expect(kindsOf([transfer(STRANGER, WALLET, COW)], NOBODY, labels)).toEqual(['in spam operator'])
  })

  it("names the file and the entry of a mistake in the operator's file", async () => {
    await expect(readLabels('/missing/counterparties.json')).rejects.toThrow(/TREASURY_FLOW_LABELS_FILE: \/missing/)
    const file = writeLabels('[{ "address": "0x1", "label": "A" }]')
    await expect(readLabels(file)).rejects.toMatchObject({
      code: 'config',
      message: expect.stringContaining('0.address'),
    })
    await expect(readLabels(writeLabels('{'))).rejects.toMatchObject({ code: 'config' })
    expect(await readLabels(undefined)).toEqual(new Map())
  })

  it('cuts long symbols between characters', () => {
    const [row] = rowsOf([transfer(STRANGER, WALLET, UNKNOWN_TOKEN, { symbol: `${'a'.repeat(63)}😀😀` })])
    expect(row?.symbol).toBe('a'.repeat(63))
  })

  it('are documented with the rules of the code', () => {
    const text = readFileSync(join(import.meta.dirname, '../../docs/treasury-flows.md'), 'utf8')
    const rows = [...text.matchAll(/^\| `([a-z-]+)` \| (.*) \|$/gm)].map(([, rule, meaning]) => [rule, meaning])
    expect(rows).toEqual(Object.entries(FLOW_RULES))
  })
})
