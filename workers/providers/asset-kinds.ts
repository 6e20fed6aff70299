import type { HoldingKind } from '../../shared/datasets/treasury.ts'
import { groupBy } from '../../shared/group-by.ts'
import type { Dao } from '../../shared/registry/entities.ts'
import type { Registry } from '../../shared/registry/registry.ts'

/** Properties that identify a held asset. */
interface Asset {
  readonly chain: string
  readonly contract: string | null
  readonly symbol: string
  readonly isOwn?: true
}

/** Classifies a holding of a DAO. */
export type KindOf = (holding: Asset) => HoldingKind

const toContractKey = (chain: string, address: string) => `${chain}/${address}`
const fold = (symbol: string) => symbol.toUpperCase()

/**
 * Classifies holdings by the tokens and stablecoins of the registry. Contracts are compared, because anyone can use a
 * symbol. Symbols are compared only if the source has no contracts; such sources list selected tokens.
 */
export function createKinds({ chains, tokens }: Pick<Registry, 'chains' | 'tokens'>): (dao: Dao) => KindOf {
  const coins = chains.flatMap(({ slug, stablecoins }) => stablecoins.map((coin) => ({ chain: slug, ...coin })))
  const stable = new Set(coins.map(({ chain, address }) => toContractKey(chain, address)))
  const stableSymbols = new Set(coins.map(({ symbol }) => fold(symbol)))
  const tokensOf = groupBy(tokens, ({ dao }) => dao)
  return ({ slug }) => {
    const ownTokens = tokensOf.get(slug) ?? []
    const own = new Set(ownTokens.map(({ chain, contractAddress }) => toContractKey(chain, contractAddress)))
    const ownSymbols = new Set(ownTokens.map(({ symbol }) => fold(symbol)))
    return ({ chain, contract, symbol, isOwn }) => {
      const isAmong = (contracts: ReadonlySet<string>, symbols: ReadonlySet<string>) =>
        contract === null ? symbols.has(fold(symbol)) : contracts.has(toContractKey(chain, contract))
      if (isOwn || isAmong(own, ownSymbols)) return 'own'
      return isAmong(stable, stableSymbols) ? 'stable' : 'other'
    }
  }
}
