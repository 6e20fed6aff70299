/** Moralis' names of the registry's chains, by slug (providers document, section 4). A chain that is not here is not asked for. */
export const MORALIS_CHAINS: Readonly<Record<string, string>> = {
  arbitrum: 'arbitrum',
  avalanche: 'avalanche',
  base: 'base',
  bnb: 'bsc',
  ethereum: 'eth',
  fantom: 'fantom',
  gnosis: 'gnosis',
  linea: 'linea',
  optimism: 'optimism',
  polygon: 'polygon',
}
