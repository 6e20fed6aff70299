import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { encodeAbiParameters, getContractAddress, keccak256 } from 'viem/utils'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { DEX_CHAINS, type ReferencePool } from '../../workers/providers/evm/dex/exchanges.ts'
import { toPriceAtPlace } from '../../workers/providers/evm/dex/reference-prices.ts'
import { decodeSwap } from '../../workers/providers/evm/dex/swaps.ts'
import type { RpcLog } from '../../workers/providers/evm/logs/node.ts'
import { encodeV2Swap, encodeV3Swap } from '../upstream/chain.ts'

const dir = process.env.UPSTREAM_DATA_DIR ?? resolve(import.meta.dirname, '../../../shared/data')
const file = join(dir, 'fixtures-ethereum-logs-rotki', 'swap_logs.jsonl')
if (!existsSync(file)) console.log(`recorded logs of the reference pool are not tested: there are none in ${dir}`)

const reference = DEX_CHAINS.ethereum?.reference as ReferencePool
const plain = { topics: [], data: '0x', transactionHash: '0xaa', blockTimestamp: undefined, removed: false }
/** A swap of one ether for the given amount of dollars. */
const at = (blockNumber: number, logIndex: number, dollars: number, more: Partial<RpcLog> = {}): RpcLog => ({
  ...plain,
  ...encodeV3Swap(BigInt(dollars * 1e6), -(10n ** 18n)),
  address: reference.address,
  blockNumber,
  logIndex,
  ...more,
})

describe('reference pool', () => {
  it.each(Object.entries(DEX_CHAINS).filter(([, chain]) => chain.reference !== undefined))(
    'of %s has the CREATE2 address of the Uniswap V3 pool of USDC and WETH with a fee of 0.05 %%',
    (_, { exchanges, reference: own }) => {
      const factory = exchanges.find(({ kind }) => kind === 'v3')?.factory as `0x${string}`
      const types = [{ type: 'address' }, { type: 'address' }, { type: 'uint24' }] as const
      const [first, second] = [own?.dollar.address, own?.coin.address].sort() as [`0x${string}`, `0x${string}`]
      const address = getContractAddress({
        opcode: 'CREATE2',
        from: factory,
        salt: keccak256(encodeAbiParameters(types, [first, second, 500])),
        bytecodeHash: '0xe34f199b19b2b4f47f68442619d555527d244f78a3297ea89325f843f87b8b54',
      })
      expect(own?.address).toBe(address.toLowerCase())
    },
  )

  it('toPriceAtPlace() returns the price of the last swap at or before a log, also within a block', () => {
    const priceAt = toPriceAtPlace([at(101, 2, 1_900), at(100, 7, 2_000), at(100, 30, 2_100)], reference)
    expect(priceAt({ blockNumber: 100, logIndex: 6 })).toBeUndefined()
    expect(priceAt({ blockNumber: 100, logIndex: 8 })).toBeCloseTo(2_000, 9)
    expect(priceAt({ blockNumber: 100, logIndex: 31 })).toBeCloseTo(2_100, 9)
    expect(priceAt({ blockNumber: 101, logIndex: 1 })).toBeCloseTo(2_100, 9)
    expect(priceAt({ blockNumber: 101, logIndex: 3 })).toBeCloseTo(1_900, 9)
  })

  it('toPriceAtPlace() returns undefined if the last swap is too old', () => {
    const priceAt = toPriceAtPlace([at(100, 7, 2_000)], reference)
    expect(priceAt({ blockNumber: 100 + reference.maxAgeBlocks, logIndex: 0 })).toBeCloseTo(2_000, 9)
    expect(priceAt({ blockNumber: 101 + reference.maxAgeBlocks, logIndex: 0 })).toBeUndefined()
  })

  it('toPriceAtPlace() ignores removed logs and other pools', () => {
    const rest = [at(100, 8, 1, { removed: true }), at(100, 9, 1, { address: `0x${'9'.repeat(40)}` })]
    const priceAt = toPriceAtPlace([at(100, 7, 2_000), ...rest], reference)
    expect(priceAt({ blockNumber: 100, logIndex: 99 })).toBeCloseTo(2_000, 9)
    expect(priceAt.fault).toBeUndefined()
  })

  it.each([
    ['with another number of topics', { topics: at(1, 1, 1).topics.slice(0, 2) }, /has 2 topics/],
    ['with cut data', { data: '0x' }, /cut or does not fit/],
    ['of another kind of pool', encodeV2Swap(1n, -1n), /has no price/],
    ['that the node sent unreadable', { topics: [], data: '0x', fault: 'data: must be words' }, /must be words/],
  ])('toPriceAtPlace() returns no older price after a swap %s', (_, more, fault) => {
    const logs = [at(100, 7, 2_000), at(101, 3, 1, more), at(102, 5, 2_100)]
    const priceAt = toPriceAtPlace(logs, reference)
    expect(priceAt({ blockNumber: 101, logIndex: 2 })).toBeCloseTo(2_000, 9)
    expect(priceAt({ blockNumber: 101, logIndex: 4 })).toBeUndefined()
    expect(priceAt({ blockNumber: 102, logIndex: 4 })).toBeUndefined()
    expect(priceAt({ blockNumber: 102, logIndex: 6 })).toBeCloseTo(2_100, 9)
    expect(priceAt.fault).toMatch(fault)
  })

  it('toPriceAtPlace() accepts both token orders', () => {
    const turned = { ...reference, dollar: { ...reference.dollar, address: `0x${'f'.repeat(40)}` } }
    const log = at(100, 7, 1, encodeV3Swap(-(10n ** 18n), 2_000_000_000n))
    expect(toPriceAtPlace([log], turned)({ blockNumber: 100, logIndex: 8 })).toBeCloseTo(2_000, 9)
  })
})

const recorded = z
  .object({
    address: z.string(),
    topics: z.array(z.string()),
    data: z.string(),
    blockNumber: z.string().transform(Number),
    logIndex: z.string().transform(Number),
  })
  .transform((log): RpcLog => ({ ...plain, ...log }))

describe.skipIf(!existsSync(file))('toPriceAtPlace with recorded logs', () => {
  it('returns the paid price, except for the fee and the price impact', () => {
    const lines = readFileSync(file, 'utf8').trimEnd().split('\n')
    const logs = lines
      .map((line) => recorded.parse(JSON.parse(line)))
      .filter(({ address }) => address === reference.address)
    expect(logs).toHaveLength(10)
    for (const log of logs) {
      const { net0, net1 } = decodeSwap(log) ?? { net0: 0n, net1: 0n }
      const paid = Math.abs(Number(net0) / 1e6 / (Number(net1) / 1e18))
      const price = toPriceAtPlace([log], reference)(log) ?? Number.NaN
      expect(Math.abs(price / paid - 1)).toBeLessThan(0.01)
      expect(price).toBeGreaterThan(100)
    }
  })
})
