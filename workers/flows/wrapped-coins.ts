import { groupBy } from '../../shared/group-by.ts'
import type { Transfer } from './transfer.ts'

interface WrappedCoin {
  /** Symbol of the native coin. */
  readonly coin: string
  readonly symbol: string
  readonly address: string
  /** Whether wraps also emit `Transfer`, so that their token leg is found like that of any token. */
  readonly emitsTransfers?: true
}

/**
 * The contract of each chain that wraps the native coin one to one. Any contract can emit the events of a wrap, so wraps
 * of other contracts do not count. The contracts are copies of WETH9, except those with `emitsTransfers`.
 */
export const WRAPPED_COINS: Readonly<Record<string, WrappedCoin>> = {
  ethereum: { coin: 'ETH', symbol: 'WETH', address: '0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2' },
  optimism: { coin: 'ETH', symbol: 'WETH', address: '0x4200000000000000000000000000000000000006' },
  base: { coin: 'ETH', symbol: 'WETH', address: '0x4200000000000000000000000000000000000006' },
  arbitrum: {
    coin: 'ETH',
    symbol: 'WETH',
    address: '0x82af49447d8a07e3bd95bd0d56f35241523fbab1',
    emitsTransfers: true,
  },
  polygon: { coin: 'POL', symbol: 'WPOL', address: '0x0d500b1d8e8ef31e21c99d1db9a6444d3adf1270' },
  avalanche: { coin: 'AVAX', symbol: 'WAVAX', address: '0xb31f66aa3c1e785363f0875a1b74e27b85fd66c7' },
  bnb: { coin: 'BNB', symbol: 'WBNB', address: '0xbb4cdb9cbd36b01bd1cbaebf2de08d9173bc095c' },
  fantom: { coin: 'FTM', symbol: 'WFTM', address: '0x21be370d5312f44cb42ce377bc9b8a0cef1a4c83', emitsTransfers: true },
}

export const COIN_DECIMALS = 18

/** The token leg of a wrap is a transfer in the other direction between the same addresses. */
const toOtherLeg = (leg: Transfer, contract: string, symbol: string): Transfer => ({
  ...leg,
  contractAddress: leg.contractAddress === '' ? contract : '',
  sender: leg.recipient,
  recipient: leg.sender,
  symbol: leg.contractAddress === '' ? symbol : '',
  decimals: COIN_DECIMALS,
})

/**
 * Adds the missing legs of wraps. Explorers list the coins that an account sends to the wrapping contract, but not the
 * tokens that it gets for them, because WETH9 emits no `Transfer`; a node lists only the tokens. Each leg implies the
 * other, of the same quantity.
 */
export function completeWraps(transfers: readonly Transfer[]): Transfer[] {
  const missing: Transfer[] = []
  for (const [chain, own] of groupBy(transfers, (one) => one.chain)) {
    const coin = WRAPPED_COINS[chain]
    if (coin === undefined || coin.emitsTransfers) continue
    const isWrap = ({ contractAddress, sender, recipient }: Transfer) =>
      (contractAddress === '' || contractAddress === coin.address) &&
      (sender === coin.address || recipient === coin.address)
    // Legs of one wrap have the same key, whichever of them it is.
    const toKey = ({ transactionHash, sender, recipient, contractAddress, baseUnits }: Transfer) =>
      [transactionHash, ...(contractAddress === '' ? [sender, recipient] : [recipient, sender]), baseUnits].join(' ')
    for (const legs of groupBy(own.filter(isWrap), toKey).values()) {
      const coins = legs.filter(({ contractAddress }) => contractAddress === '')
      const tokens = legs.filter(({ contractAddress }) => contractAddress !== '')
      const unpaired = coins.length > tokens.length ? coins.slice(tokens.length) : tokens.slice(coins.length)
      for (const leg of unpaired) missing.push(toOtherLeg(leg, coin.address, coin.symbol))
    }
  }
  return missing.length === 0 ? [...transfers] : [...transfers, ...missing]
}
