import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { parse } from 'csv-parse/sync'
import { z } from 'zod'
import { DataError } from '../../shared/errors.ts'
import type { CoinList, ContractList, Lists, Protocol, ProtocolList, SpaceList } from './lists.ts'

const TOKEN_LISTS = {
  ...{ ethereum: 'mainnet', arbitrum: 'arbitrum', optimism: 'optimism', polygon: 'polygon' },
  ...{ bnb: 'bnb', base: 'base', avalanche: 'avalanche' },
}

/**
 * Reads the lists available in a folder of recordings.
 * @throws DataError `payload` if the folder has none of them.
 */
export function readRecordedLists(dir: string): Lists {
  const read = <T>(path: string, toList: (text: string) => T): T[] => {
    const file = join(dir, path)
    if (!existsSync(file)) return []
    const content = readFileSync(file)
    return [toList((path.endsWith('.gz') ? gunzipSync(content) : content).toString())]
  }
  const lists: Lists = {
    coins: read('fixtures-coinmarketcap/listings_latest_2022-12-16.json', toListing),
    contracts: Object.entries(TOKEN_LISTS).flatMap(([chain, name]) =>
      read(`token-list-uniswap/tokens/${name}.json`, (text) => toContracts(chain, text)),
    ),
    protocols: [
      ...read('defillama-protocols-tvl-bma-d/lite-protocols2_2025-12-19.json.gz', toProtocols),
      ...read('dao-registry-defillama-parents/parent_protocols_daos.psv', toParents),
    ],
    spaces: read('dao-registry-snapshot-spaces/aliases.json', toSpaces),
    unread: [],
  }
  if (Object.values(lists).every(({ length }) => length === 0)) {
    throw new DataError('payload', `${dir} has no list that is known`)
  }
  return lists
}

const listing = z.object({
  data: z.array(
    z.object({
      id: z.number(),
      name: z.string(),
      symbol: z.string(),
      platform: z.object({ token_address: z.string() }).nullable(),
    }),
  ),
})

function toListing(text: string): CoinList {
  const { data } = listing.parse(JSON.parse(text))
  const byId = new Map(
    data.map(({ id, name, symbol, platform }) => {
      const addresses = platform === null ? [] : [platform.token_address.toLowerCase()]
      return [String(id), { name, symbol, addresses }] as const
    }),
  )
  return { list: 'coinmarketcap-2022', id: 'cmcId', isComplete: false, byId }
}

const contracts = z.array(z.object({ address: z.string(), symbol: z.string(), decimals: z.number() }))

function toContracts(chain: string, text: string): ContractList {
  const entries = contracts.parse(JSON.parse(text))
  const byPlace = new Map(
    entries.map(
      ({ address, symbol, decimals }) => [`${chain}/${address.toLowerCase()}`, { symbol, decimals }] as const,
    ),
  )
  return { list: 'uniswap-token-list', byPlace }
}

const UNKNOWN = { parent: null, coingeckoId: null, cmcId: null, twitter: null, space: null }

/** Same rule as DefiLlama's slugs. */
const toSlug = (name: string) => name.toLowerCase().replaceAll(' ', '-').replaceAll("'", '')

function toProtocols(text: string): ProtocolList {
  const named = z.array(z.object({ name: z.string() })).parse(JSON.parse(text))
  const protocols = named.map(({ name }): Protocol => ({ ...UNKNOWN, slug: toSlug(name) }))
  return { list: 'defillama-2025', isComplete: true, lacksParents: true, protocols }
}

const parents = z.array(
  z.object({
    id: z.string(),
    name: z.string(),
    gecko_id: z.string(),
    cmcId: z.string(),
    twitter: z.string(),
    governanceID: z.string(),
  }),
)

function toParents(text: string): ProtocolList {
  const rows = parents.parse(parse(text, { columns: true, delimiter: '|', quote: false }))
  const protocols = rows.map(
    (row): Protocol => ({
      slug: toSlug(row.name),
      parent: row.id.replace(/^parent#/, ''),
      coingeckoId: row.gecko_id || null,
      cmcId: row.cmcId.trim() || null,
      twitter: row.twitter || null,
      space: /snapshot:([^;]+)/.exec(row.governanceID)?.[1] ?? null,
    }),
  )
  return { list: 'defillama-parents-2024', isComplete: false, lacksParents: false, protocols }
}

function toSpaces(text: string): SpaceList {
  const moved = z.record(z.string(), z.string()).parse(JSON.parse(text))
  return { list: 'snapshot-aliases-2025', knownSpaces: null, moved: new Map(Object.entries(moved)) }
}
