import { loadRegistry, type Registry } from '../../shared/registry/registry.ts'

/** All members of the Index; DAOs with governors, on one chain and on several; ended ones with their successors. */
const DAOS = [
  ...['aave', 'balancer', 'compound', 'cream', 'harvest', 'kyber', 'loopring', 'makerdao', 'mstable', 'sushi'],
  ...['synthetix', 'uniswap', 'yearn', 'arbitrum', 'ens', 'gitcoin', 'hop', 'rarible', 'threshold', 'truefi'],
  ...['aragon', 'fei', 'rook', 'stargate', 'ribbon', 'dydx', '1inch', 'lido', 'optimism', 'curve'],
]

/** The shipped registry reduced to these DAOs, their tokens, and an index of these. */
export function keepDaos(slugs: ReadonlySet<string>): Registry {
  const registry = loadRegistry()
  const { index } = registry
  const compositions = index.compositions.map((composition) => ({
    ...composition,
    elements: composition.elements.filter(({ token }) => slugs.has(token.dao)),
  }))
  return {
    ...registry,
    tokens: registry.tokens.filter(({ dao }) => slugs.has(dao)),
    daos: registry.daos.filter(({ slug }) => slugs.has(slug)),
    index: { ...index, compositions },
  }
}

/**
 * A quarter of the shipped registry with DAOs of every kind. Tests take a third of the time and cover the same cases.
 */
export const loadFewDaos = (): Registry => keepDaos(new Set(DAOS))
