import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { loadRegistry } from '../../shared/registry/registry.ts'

const upstream = process.env.UPSTREAM_DATA_DIR ?? join(import.meta.dirname, '../../../shared/data')
const hasUpstream = existsSync(upstream)
if (!hasUpstream) console.log(`facts of the registry are not cross-checked: no folder ${upstream}`)

describe.skipIf(!hasUpstream)('registry compared with recorded sources', () => {
  const registry = loadRegistry()
  const listNames = { ethereum: 'mainnet', arbitrum: 'arbitrum', optimism: 'optimism', polygon: 'polygon' }
  const moreNames = { bnb: 'bnb', base: 'base', avalanche: 'avalanche' }
  const json = <T>(path: string): T => JSON.parse(readFileSync(join(upstream, path), 'utf8'))

  it('has decimals and symbols of the token list', () => {
    let compared = 0
    for (const [slug, file] of Object.entries({ ...listNames, ...moreNames })) {
      const listed = json<{ address: string; symbol: string; decimals: number }[]>(
        `token-list-uniswap/tokens/${file}.json`,
      )
      const byAddress = new Map(listed.map((entry) => [entry.address.toLowerCase(), entry]))
      for (const entry of registry.tokens.filter(({ chain }) => chain === slug)) {
        const found = byAddress.get(entry.contractAddress)
        if (!found) continue
        compared += 1
        // FXS was renamed; its contract on Ethereum keeps the old symbol.
        const symbol = entry.symbol === 'FRAX' ? 'FXS' : entry.symbol
        expect({ symbol, decimals: entry.decimals }).toEqual({
          symbol: found.symbol,
          decimals: found.decimals,
        })
      }
    }
    expect(compared).toBeGreaterThan(60)
  })

  it('has the cmcIds of the market-data listing, in both directions', () => {
    const listing = json<{ data: { id: number; platform: { token_address: string } | null }[] }>(
      'fixtures-coinmarketcap/listings_latest_2022-12-16.json',
    )
    const addressById = new Map(
      listing.data.map(({ id, platform }) => [String(id), platform?.token_address.toLowerCase()]),
    )
    const idByAddress = new Map([...addressById].map(([id, address]) => [address, id]))
    const byId = registry.tokens.filter(({ cmcId }) => cmcId !== null && addressById.get(cmcId) !== undefined)
    const byAddress = registry.tokens.filter(({ contractAddress }) => idByAddress.has(contractAddress))
    expect(byId.length).toBeGreaterThan(15)
    for (const entry of byId) expect(addressById.get(entry.cmcId ?? '')).toBe(entry.contractAddress)
    for (const entry of byAddress) expect(entry.cmcId).toBe(idByAddress.get(entry.contractAddress))
  })

  it('has as treasuries the owners in the treasury list or in a ledger, for the DAO of the listed own token', () => {
    type Entry = { owners?: string[]; ownTokens?: string[] }
    const listed = json<Record<string, Record<string, Entry>>>(
      'treasury-addresses-defillama-adapters/treasury_registry.json',
    )
    const renamed: Readonly<Record<string, string>> = { bsc: 'bnb', avax: 'avalanche' }
    const toKeys = (chains: Record<string, Entry>, member: keyof Entry) =>
      Object.entries(chains).flatMap(([chain, entry]) =>
        [entry[member] ?? []].flat().map((address) => `${renamed[chain] ?? chain}:${address.toLowerCase()}`),
      )
    const names = new Map(
      Object.entries(listed).flatMap(([name, chains]) => toKeys(chains, 'owners').map((key) => [key, name] as const)),
    )
    let ownTokens = 0
    for (const dao of registry.daos) {
      const listedOwners = dao.treasuries.filter(({ address }) => !OF_LEDGERS.has(address))
      const found = new Set(listedOwners.map(({ chain, address }) => names.get(`${chain}:${address}`)))
      expect([...found], dao.slug).not.toContain(undefined)
      const existing = [...found].flatMap((name) => toKeys(listed[name ?? ''] ?? {}, 'ownTokens'))
      if (existing.length === 0) continue
      const own = registry.tokens.filter((token) => token.dao === dao.slug)
      const isOwn = own.some(({ chain, contractAddress }) => existing.includes(`${chain}:${contractAddress}`))
      expect(isOwn, dao.slug).toBe(true)
      ownTokens += 1
    }
    expect(ownTokens).toBeGreaterThan(60)
    expect(registry.daos.flatMap(({ treasuries }) => treasuries).length).toBeGreaterThan(250)
  })
})

/** Wallets of published ledgers: danchousz/ens_open_ledger, and Decentraland-DAO/transparency. */
const OF_LEDGERS: ReadonlySet<string> = new Set([
  '0x2686a8919df194aa7673244549e68d42c1685d03',
  '0x9718ba71dc1284842fce66dc3e34dffc6c630074',
  '0x0d06a817584ac378849f03df6f11a9ad67dd786d',
  '0x6a016548310076285668e2378df70bd545396b5a',
  '0x4f4cadb8af8f1d463240c2b93952d8a16688a818',
  '0xe8929029ea54113da91cdb8c9c1ba297cf803838',
  '0xeba76c907f02ba13064edad7876fe51d9d856f62',
  '0xb3a37c813d3d365a03dd1dd3e68cc11af019cdd6',
  '0x1d65c6d3ad39d454ea8f682c49ae7744706ea96d',
  '0x9a6ebe7e2a7722f8200d0ffb63a1f6406a0d7dce',
  '0x89214c8ca9a49e60a3bfa8e00544f384c93719b1',
  '0xb08e3e7cc815213304d884c88ca476ebc50eaab2',
])

describe('first blocks of governors', () => {
  // Deployments: messari/subgraphs.
  it.each([
    ['Threshold', '0xd101f2B25bCBF992BdF55dB67c104FE7646F5447', 14_261_948],
    ['TrueFi', '0x585CcA060422ef1779Fb0Dd710A49e7C49A823C9', 14_789_712],
    ['Rarible', '0x6552C8fb228f7776Fc0e4056AA217c139D4baDa1', 15_719_153],
  ])('are not after the deployment: %s', (_, address, deployed) => {
    const governors = loadRegistry().daos.flatMap((dao) => dao.governors ?? [])
    const governor = governors.find((one) => one.address.toLowerCase() === address.toLowerCase())
    expect(governor?.fromBlock).toBeLessThanOrEqual(deployed)
  })
})
