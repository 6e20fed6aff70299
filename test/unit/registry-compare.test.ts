import { expect, it } from 'vitest'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { compareRegistry } from '../../workers/registry-check/compare.ts'
import type { Protocol } from '../../workers/registry-check/lists.ts'

const NOW = Date.parse('2024-05-06T00:00:00Z')

/** Compares the account of Uniswap with the accounts of its protocols. */
function compare(own: string | null, listed: readonly (string | null)[]) {
  const registry = loadRegistry()
  const daos = registry.daos.flatMap((dao) => (dao.slug === 'uniswap' ? [{ ...dao, twitter: own }] : []))
  const parent = daos[0]?.defillama ?? null
  const protocols = listed.map((twitter, at): Protocol => {
    return { slug: `uniswap-v${at}`, parent, coingeckoId: null, cmcId: null, twitter, space: null }
  })
  const list = { list: 'defillama', isComplete: false, lacksParents: false, protocols }
  const lists = { coins: [], contracts: [], protocols: [list], spaces: [], unread: [] }
  return compareRegistry({ ...registry, tokens: [], daos }, lists, NOW).map((found) => [found.ours, found.theirs])
}

it.each([
  ['both are the same', 'https://x.com/Uniswap', [null, 'uniswap'], []],
  ['they differ', 'https://x.com/Uniswap', [null, 'other'], [['Uniswap', 'other']]],
  ['ours is missing and one of theirs is null', null, [null, 'other'], [[null, 'other']]],
  ['both are missing', null, [null], []],
])('compareRegistry compares accounts if %s', (_, own, listed, found) => {
  expect(compare(own, listed)).toEqual(found)
})
