import { loadRegistry, type Registry } from '../../shared/registry/registry.ts'
import { createRegistryFolder } from './registry-folder.ts'

/**
 * The shipped registry with `more` additional live tokens, loaded from files. Market-data providers know these tokens.
 */
export function loadLargeRegistry(more: number): Registry {
  const folder = createRegistryFolder()
  try {
    folder.edit('tokens', (tokens) => [
      ...tokens.map((token) => (token.dao === DAO ? { ...token, primary: true } : token)),
      ...Array.from({ length: more }, (_, index) => toToken(index)),
    ])
    return loadRegistry(folder.dir)
  } finally {
    folder.remove()
  }
}

/** The DAO of the additional tokens, which also has a token in the shipped registry. */
const DAO = 'uniswap'
/** Above all ids of the provider. */
const FIRST_CMC_ID = 1_000_000

function toToken(index: number) {
  return {
    symbol: `MADE${index}`,
    name: `Made up ${index}`,
    chain: 'ethereum',
    contractAddress: `0x${index.toString(16).padStart(40, '0')}`,
    decimals: 18,
    dao: DAO,
    cmcId: String(FIRST_CMC_ID + index),
    coingeckoId: `made-up-${index}`,
    live: true,
  }
}
