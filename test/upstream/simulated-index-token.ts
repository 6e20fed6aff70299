import { type BasketIndex, findComposition } from '../../shared/registry/index-records.ts'
import type { IndexTokenContract } from './chain.ts'
import { toNoiseKey, unit } from './noise.ts'
import { HOUR } from './world.ts'

const ETHER = 10n ** 18n
/** Tokens in circulation on an ordinary day, with enough digits to reveal a rounding error. */
const SUPPLY = 312_345n * ETHER + 678_901_234_567_890_123n

/** The Index Token's contract: it holds the components of the active composition, and some ether. */
export function createSimulatedIndexToken(index: BasketIndex, seed: number): IndexTokenContract {
  const key = toNoiseKey(seed, index.id)
  return {
    address: index.token.contractAddress,
    stateAt(at) {
      const hour = Math.floor(at / HOUR)
      const issued = BigInt(Math.floor(unit(key, hour) * 1e9)) * 10n ** 12n + BigInt(hour)
      const { elements } = findComposition(index, at) ?? { elements: [] }
      return {
        supply: SUPPLY + issued,
        components: new Map(elements.map(({ token, quantity }) => [token.contractAddress, toUnits(quantity, token)])),
        ether: 1_234n * ETHER + BigInt(hour) * 7n + 1n,
        wrappedEther: 98n * ETHER + 765_432_109_876_543_211n,
      }
    },
  }
}

/** A quantity in the token's smallest unit, truncated. */
function toUnits(quantity: string, { decimals }: { decimals: number }): bigint {
  const [full = '0', fraction = ''] = quantity.split('.')
  return BigInt(full + fraction.slice(0, decimals).padEnd(decimals, '0'))
}
