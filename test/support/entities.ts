import type { Dao, Token } from '../../shared/registry/entities.ts'
import type { Registry } from '../../shared/registry/registry.ts'

/** The registry's first token with a symbol. Throws if there is none, because a test without entities cannot fail. */
export function getToken({ tokens }: Pick<Registry, 'tokens'>, symbol: string): Token {
  const token = tokens.find((one) => one.symbol === symbol)
  if (token === undefined) throw new Error(`the registry has no ${symbol}`)
  return token
}

/** The registry's DAO with a slug. Throws if there is none. */
export function getDao({ daoBySlug }: Pick<Registry, 'daoBySlug'>, slug: string): Dao {
  const dao = daoBySlug.get(slug)
  if (dao === undefined) throw new Error(`the registry has no ${slug}`)
  return dao
}
