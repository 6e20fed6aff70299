/** Chains with another name at DefiLlama, by the registry's slug. */
const RENAMED: Readonly<Record<string, string>> = { bnb: 'bsc', avalanche: 'avax', gnosis: 'xdai' }

export function toLlamaChain(slug: string): string {
  return RENAMED[slug] ?? slug
}
