import { type Chain, type ContractCall, toWord } from '../chain.ts'
import { RpcRefusal } from './rpc-refusal.ts'

const ETHER_FEED = '0x5f4ec3df9cbd43714fe2740f5e3616155c5b8419'
const WRAPPED_ETHER = '0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2'

/**
 * Results of the Index Token, the ETH/USD feed and wrapped ether; undefined for other contracts and calls. Source:
 * docs/providers.md, section 16.
 */
export function callIndexContracts(chain: Chain, { contract, selector, words, at }: ContractCall): string | undefined {
  const argument = `0x${(words[0] ?? '').slice(24)}`
  if (contract === ETHER_FEED && chain.etherFeed !== undefined) return toRound(chain.etherFeed(at), selector)
  if (chain.indexToken === undefined) return undefined
  const { address, stateAt } = chain.indexToken
  if (contract === WRAPPED_ETHER && selector === '0x70a08231') {
    return toWords([argument === address ? stateAt(at).wrappedEther : 0n])
  }
  if (contract !== address) return undefined
  const { supply, components } = stateAt(at)
  switch (selector) {
    case '0x18160ddd':
      return toWords([supply])
    case '0x313ce567':
      return toWords([18n])
    case '0x99d50d5d':
      return toWords([32n, BigInt(components.size), ...[...components.keys()].map(BigInt)])
    case '0xeaf993e1':
      return toWords([components.get(argument) ?? 0n])
    default:
      throw new RpcRefusal(3, 'execution reverted')
  }
}

/** Eth_getBalance: only the Index Token's contract has ether here. */
export function getBalance(chain: Chain, address: string, at: number): string {
  const ether = address.toLowerCase() === chain.indexToken?.address ? chain.indexToken.stateAt(at).ether : 0n
  return `0x${ether.toString(16)}`
}

function toRound(price: { usd: number; at: number } | null, selector: string): string {
  if (price === null || selector !== '0xfeaf968c') throw new RpcRefusal(3, 'execution reverted')
  const updatedAt = BigInt(Math.floor(price.at / 1000))
  return toWords([1n, BigInt(Math.round(price.usd * 1e8)), updatedAt, updatedAt, 1n])
}

const toWords = (values: readonly bigint[]) => `0x${values.map(toWord).join('')}`
