import { loadRegistry, type Registry } from '../../shared/registry/registry.ts'

/** DAOs that have what each dataset collects: a space, treasuries, accounts, links that the files leave empty. */
const DAOS = new Set(['cream', 'sushi', 'yearn'])

/** The shipped registry with a few DAOs and their tokens, and an index of these: what is told of few is true of many. */
export function loadSmallRegistry(): Registry {
  const registry = loadRegistry()
  const { index } = registry
  const compositions = index.compositions.map((composition) => ({
    ...composition,
    elements: composition.elements.filter(({ token }) => DAOS.has(token.dao)),
  }))
  return {
    ...registry,
    tokens: registry.tokens.filter(({ dao }) => DAOS.has(dao)),
    daos: registry.daos.filter(({ slug }) => DAOS.has(slug)),
    index: { ...index, compositions },
  }
}
