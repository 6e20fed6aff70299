import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { holdingsRoute } from '../../api/routes/daos/treasury/holdings.ts'
import type { Dao } from '../../shared/registry/entities.ts'
import { loadRegistry, type Registry } from '../../shared/registry/registry.ts'
import treasury from '../../workers/jobs/treasury.ts'
import { createServedPipeline, type ServedPipeline } from '../support/served-pipeline.ts'

const dataDir = process.env.UPSTREAM_DATA_DIR || join(import.meta.dirname, '../../../shared/data')
const recording = join(dataDir, 'treasury-addresses-defillama-adapters/treasury_registry.json')
const isThere = existsSync(recording)
if (!isThere) console.log(`no recorded treasuries at ${recording}: their test is skipped`)

/** Chains with other names in the recording than in the registry. */
const CHAINS: Readonly<Record<string, string>> = { bsc: 'bnb', avax: 'avalanche', xdai: 'gnosis' }
/** The chains that the provider has. */
const SUPPORTED = new Set(['ethereum', 'optimism', 'bnb', 'polygon', 'base', 'arbitrum', 'avalanche'])
const ADDRESS = /^0x[0-9a-f]{40}$/

const onChain = z.object({ owners: z.array(z.string()).default([]), ownTokens: z.array(z.unknown()).default([]) })

interface Recorded {
  /** `<chain>/<address>` each. */
  readonly owners: ReadonlySet<string>
  readonly ownTokens: ReadonlySet<string>
}

/** The recorded treasury on chains that the provider has. */
function toRecorded(entry: Readonly<Record<string, unknown>>): Recorded {
  const places = (pick: (of: z.infer<typeof onChain>) => readonly unknown[]) =>
    new Set(
      Object.entries(entry).flatMap(([name, value]) => {
        const [chain, of] = [CHAINS[name] ?? name, onChain.safeParse(value)]
        if (!SUPPORTED.has(chain) || !of.success) return []
        const addresses = pick(of.data).map((address) => String(address).toLowerCase())
        return addresses.filter((address) => ADDRESS.test(address)).map((address) => `${chain}/${address}`)
      }),
    )
  return { owners: places(({ owners }) => owners), ownTokens: places(({ ownTokens }) => ownTokens) }
}

const readRecordings = () =>
  z.record(z.string(), z.record(z.string(), z.unknown())).parse(JSON.parse(readFileSync(recording, 'utf8')))

/** The recorded DAOs of the registry, with the recorded addresses. */
function toRegistry(recorded: ReadonlyMap<string, Recorded>): Registry {
  const registry = loadRegistry()
  const daos = registry.daos.flatMap((dao): Dao[] => {
    const treasuries = [...(recorded.get(dao.slug)?.owners ?? [])].map((place) => {
      const [chain = '', address = ''] = place.split('/')
      return { chain, address }
    })
    return dao.live && treasuries.length > 0 ? [{ ...dao, treasuries }] : []
  })
  return { ...registry, daos }
}

describe.skipIf(!isThere)('recorded treasuries', () => {
  let pipeline: ServedPipeline
  let recorded: ReadonlyMap<string, Recorded>
  beforeAll(async () => {
    const entries = Object.entries(readRecordings()).map(([name, entry]) => {
      return [name.replace('treasury/', ''), toRecorded(entry)] as const
    })
    recorded = new Map(entries)
    pipeline = await createServedPipeline({ now: Date.parse('2024-05-06T07:01:00Z'), registry: toRegistry(recorded) })
  })
  afterAll(() => pipeline?.close())

  it('are served with every address, its chain, and own tokens marked', async () => {
    const { daos, tokens, chains } = pipeline.registry
    expect(daos.length).toBeGreaterThan(40)
    expect(await pipeline.collect(treasury)).toMatchObject({ rows: daos.length, rejected: 0, providers: ['goldrush'] })
    const slugOf = new Map(chains.map(({ id, slug }) => [id, slug]))
    let own = 0
    for (const dao of daos) {
      const response = await fetch(`${pipeline.url}${holdingsRoute.path}?id=${dao.id}&limit=500`)
      const holdings = holdingsRoute.response.parse(await response.json()) as z.infer<typeof record>[]
      expect(response.headers.get('X-Total-Count'), dao.slug).toBe(String(holdings.length))
      const { owners, ownTokens } = recorded.get(dao.slug) as Recorded
      const placeOf = (chain: string | null, address: string | null) => `${slugOf.get(chain ?? '')}/${address}`
      expect(new Set(holdings.map(({ chain, address }) => placeOf(chain, address))), dao.slug).toEqual(owners)
      const isOwn = ({ chain, contractAddress }: z.infer<typeof record>) =>
        ownTokens.has(placeOf(chain, contractAddress))
      const values = new Set(tokens.filter((token) => token.dao === dao.slug).map(({ id }) => id))
      for (const one of holdings.filter((each) => isOwn(each) && values.has(each.token ?? ''))) {
        expect(one.kind, `${dao.slug} ${one.symbol}`).toBe('own')
        own += 1
      }
    }
    expect(own).toBeGreaterThan(daos.length)
  })
})

const record = z.object({
  ...{ symbol: z.string(), kind: z.string(), token: z.string().nullable() },
  ...{ chain: z.string().nullable(), address: z.string().nullable(), contractAddress: z.string().nullable() },
})
