import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Dao, Token } from '../shared/registry/entities.ts'

/** An invented answer in a provider's documented shape. */
export function readFixture(name: string): unknown {
  return JSON.parse(readFileSync(join(import.meta.dirname, 'fixtures', name), 'utf8'))
}

/** A token of the registry's shape. */
export function toTestToken(key: number, ids: { cmcId?: string; coingeckoId?: string }): Token {
  return {
    id: `token-${key}`,
    key,
    symbol: `T${key}`,
    name: `Token ${key}`,
    formerNames: [],
    chain: 'ethereum',
    contractAddress: `0x${String(key).padStart(40, '0')}`,
    decimals: 18,
    dao: `dao-${key}`,
    cmcId: ids.cmcId ?? null,
    coingeckoId: ids.coingeckoId ?? null,
    ended: null,
    live: true,
    livePrice: true,
  }
}

/** A DAO of the registry's shape. */
export function toTestDao(key: number, defillama: string | null): Dao {
  return {
    id: `dao-${key}`,
    key,
    slug: `dao-${key}`,
    name: `Dao ${key}`,
    formerNames: [],
    image: null,
    categories: [],
    chains: [],
    mission: '',
    description: '',
    website: null,
    twitter: null,
    discord: null,
    telegram: null,
    whitepaper: null,
    tokenomics: null,
    twitterId: null,
    snapshotSpace: null,
    formerSnapshotSpaces: [],
    governors: [],
    votingToken: null,
    treasuries: [],
    defillama,
    defillamaSlug: null,
    token: null,
    ended: null,
    live: true,
    verified: true,
    isOtc: false,
  }
}
