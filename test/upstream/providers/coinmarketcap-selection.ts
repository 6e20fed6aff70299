import type { Asset, World } from '../world.ts'

/** The requested coins with the key of each in the response, or the message of a 400. */
export type Selection =
  | { readonly by: 'id' | 'slug' | 'symbol'; readonly coins: readonly { key: string; asset: Asset }[] }
  | { readonly invalid: string }

/**
 * Parses `id`, `slug` or `symbol` and `convert`. Unknown coins are omitted unless `skip_invalid=false`. `slugOf`
 * returns a coin's slug. Source: docs/providers.md, sections 1.1 and 1.2.
 */
export function toSelection(query: URLSearchParams, world: World, slugOf: (asset: Asset) => string | null): Selection {
  const invalidCurrency = findInvalidCurrency(query)
  if (invalidCurrency !== null) return { invalid: invalidCurrency }
  for (const by of ['id', 'slug', 'symbol'] as const) {
    const text = query.get(by)
    if (text === null) continue
    const keys = text.split(',')
    if (by === 'id' ? !/^\d+(?:,\d+)*$/.test(text) : keys.includes('')) return { invalid: `Invalid value for "${by}"` }
    const found = keys.map((key) => ({ key, assets: world.assets.filter((asset) => matches(by, key, asset, slugOf)) }))
    const missing = found.find((entry) => entry.assets.length === 0)
    if (missing && query.get('skip_invalid') === 'false') {
      return { invalid: `Invalid value for "${by}": "${missing.key}"` }
    }
    return { by, coins: found.flatMap(({ key, assets }) => assets.map((asset) => ({ key, asset }))) }
  }
  return { invalid: '"value" must contain at least one of [id, symbol, slug]' }
}

function matches(by: 'id' | 'slug' | 'symbol', key: string, asset: Asset, slugOf: (asset: Asset) => string | null) {
  if (asset.cmcId === null) return false
  if (by === 'id') return asset.cmcId === key
  if (by === 'symbol') return asset.symbol.toUpperCase() === key.toUpperCase()
  return slugOf(asset) === key
}

/** Only US dollars (currency id 2781) are supported. */
function findInvalidCurrency(query: URLSearchParams): string | null {
  const code = query.get('convert')
  if (code !== null && code.toUpperCase() !== 'USD') return `Invalid value for "convert": "${code}"`
  const id = query.get('convert_id')
  return id !== null && id !== '2781' ? `Invalid value for "convert_id": "${id}"` : null
}
