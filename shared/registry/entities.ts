import { toId, toKey } from '../ids.ts'
import type { Ended, Lifetime } from './ends.ts'
import type { GOVERNOR_CLOCKS, GOVERNOR_FAMILIES } from './schema.ts'

/** A member of the registry that data is collected for; `key` is its integer in ClickHouse. */
export interface Entity extends Lifetime {
  readonly id: string
  readonly key: number
  readonly name: string
}

/** The one entity of datasets that are about all DAOs and tokens together. */
export const WHOLE_REGISTRY: Entity = toWholeRegistry()

function toWholeRegistry(): Entity {
  const id = toId('registry')
  return { id, key: toKey(id), name: 'all' }
}

export interface Category {
  id: string
  slug: string
  name: string
}

export interface Chain {
  id: string
  slug: string
  name: string
  /** EIP-155 number, null where the chain has none. */
  chainId: number | null
  evm: boolean
  stablecoins: readonly Stablecoin[]
}

/** A token that stands for a currency. */
export interface Stablecoin {
  symbol: string
  /** Lower-case on EVM chains, as written elsewhere; of a chain's own coin 0x and forty times e. */
  address: string
}

export interface Token extends Lifetime {
  id: string
  /** The integer under which ClickHouse stores the token. */
  key: number
  symbol: string
  name: string
  /** Slug of a chain. */
  chain: string
  /** Lower-case on EVM chains, as written elsewhere. */
  contractAddress: string
  decimals: number
  /** Slug of the DAO that the token governs. */
  dao: string
  cmcId: string | null
  coingeckoId: string | null
  /** Null for a token that has no end. `successor` is the id of the token that it was exchanged for. */
  ended: (Ended & { readonly successor: string | null }) | null
  live: boolean
  livePrice: boolean
}

export interface Treasury {
  /** Slug of a chain. */
  chain: string
  /** Lower-case on EVM chains, as written elsewhere. */
  address: string
}

/** A contract that a DAO votes on. */
export interface Governor {
  /** Slug of a chain. */
  chain: string
  /** Lower-case. */
  address: string
  family: (typeof GOVERNOR_FAMILIES)[number]
  /** What the numbers of its proposals' starts and ends count; where it is not said, they tell it themselves. */
  clock?: (typeof GOVERNOR_CLOCKS)[number] | undefined
  fromBlock: number
  /** What tells it from Snapshot's spaces where votes are stored: its account id by CAIP-10. */
  space: string
  /** Of what votes: of a token, or 0 where each vote is one thing. */
  decimals: number
}

export interface Dao extends Lifetime {
  id: string
  /** The integer under which ClickHouse stores the DAO. */
  key: number
  slug: string
  name: string
  image: string | null
  /** Slugs of categories. */
  categories: string[]
  /** Slugs of chains. */
  chains: string[]
  mission: string
  description: string
  website: string | null
  twitter: string | null
  discord: string | null
  telegram: string | null
  whitepaper: string | null
  tokenomics: string | null
  twitterId: string | null
  snapshotSpace: string | null
  /** Spaces that it voted in before, or besides: what is stored of them stays its own. */
  formerSnapshotSpaces: string[]
  /** The contracts that it votes on, or did, those of today last. */
  governors: Governor[]
  treasuries: Treasury[]
  /** DefiLlama's id, of the parent protocol if there is one ("maker" for parent#maker). */
  defillama: string | null
  /** The slug of DefiLlama's name ("sky"), by which a protocol and its treasury are asked for; null where it is the id. */
  defillamaSlug: string | null
  /** Id of the token that stands for the DAO. */
  token: string | null
  ended: Ended | null
  live: boolean
  verified: boolean
  isOtc: boolean
  /** Which of the links the files leave empty and providers found. */
  found?: readonly string[]
}
