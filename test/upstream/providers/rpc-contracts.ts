import { z } from 'zod'
import { type Chain, FACTORIES, toWord } from '../chain.ts'
import type { Asset } from '../world.ts'
import { callIndexContracts } from './rpc-index-token.ts'
import { RpcRefusal } from './rpc-refusal.ts'

const callParameter = z.object({ to: z.string(), data: z.string() })

const NOWHERE = `0x${'0'.repeat(64)}`
const V2_FACTORIES: ReadonlySet<string> = new Set([FACTORIES.uniswapV2, FACTORIES.sushiswap])
const V3_FACTORIES: ReadonlySet<string> = new Set([FACTORIES.uniswapV3, FACTORIES.uniswapV3OfBase])

/**
 * Eth_call of the chain's contracts at a time in Unix milliseconds: factories, tokens and the contracts of the Index
 * Token. An address without code returns empty data.
 */
export function callContract(input: unknown, chain: Chain, assets: readonly Asset[], at: number): string {
  const { to, data } = callParameter.parse(input)
  const contract = to.toLowerCase()
  const selector = data.slice(0, 10)
  const words = data.slice(10).toLowerCase().match(/.{64}/g) ?? []
  const call = { contract, selector, words, at }
  const answer = callIndexContracts(chain, call) ?? chain.governorCall?.(call)
  if (answer !== undefined) return answer
  const [first = '', second = '', third = ''] = words
  const tokens = [toAddress(first), toAddress(second)] as const
  if (V2_FACTORIES.has(contract)) {
    if (selector !== '0xe6a43905') throw reverted()
    return toAnswer(chain.pool({ factory: contract, tokens, fee: null }))
  }
  if (V3_FACTORIES.has(contract)) {
    if (selector !== '0x1698ee82') throw reverted()
    return toAnswer(chain.pool({ factory: contract, tokens, fee: Number.parseInt(third, 16) }))
  }
  const asset = assets.find(({ contractAddress }) => contractAddress === contract)
  if (asset === undefined) return '0x'
  if (selector === '0x313ce567') return `0x${toWord(BigInt(asset.decimals))}`
  throw reverted()
}

const reverted = () => new RpcRefusal(3, 'execution reverted')
const toAddress = (word: string) => `0x${word.slice(24).toLowerCase()}`
const toAnswer = (address: string | null) => (address === null ? NOWHERE : `0x${'0'.repeat(24)}${address.slice(2)}`)
