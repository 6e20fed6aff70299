import { toId, toKey } from '../ids.ts'

import type {
  GOVERNOR_CLOCKS,
  GOVERNOR_COUNTED,
  GOVERNOR_COUNTINGS,
  GOVERNOR_FAMILIES,
  GOVERNOR_QUORUMS,
  TREASURY_ROLES,
  VOTING_TOKEN_FAMILIES,
} from './schema.ts'

/** A registry member with collected data; `key` is its integer in ClickHouse. */
export interface Entity extends Lifetime {
  readonly id: string
  readonly key: number
  readonly name: string
}

/** The only entity of datasets about all DAOs and tokens together. */
export const ENTIRE_REGISTRY: Entity = createRegistryEntity()

/** The entity key of records about every entity of a dataset. */
export const ALL_ENTITIES = 0

function createRegistryEntity(): Entity {
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
  /** EIP-155 number, null if the chain has none. */
  chainId: number | null
  evm: boolean
  stablecoins: readonly Stablecoin[]
}

/** A token that stands for a currency. */
export interface Stablecoin {
  symbol: string
  /** Lower-case on EVM chains, else as written. A chain's native coin is 0x and forty times e. */
  address: string
}

export interface Token extends Lifetime {
  id: string
  /** The token's integer key in ClickHouse. */
  key: number
  symbol: string
  name: string
  /** Former names and symbols, the latest first. */
  formerNames: string[]
  /** Slug of a chain. */
  chain: string
  /** Lower-case on EVM chains, else as written. */
  contractAddress: string
  decimals: number
  /** Slug of the DAO that the token governs. */
  dao: string
  cmcId: string | null
  coingeckoId: string | null
  /** Null for a token without an end. `successor` is the id of the token that replaced it. */
  ended: (Ended & { readonly successor: string | null }) | null
  live: boolean
  livePrice: boolean
}

export interface Treasury {
  /** Slug of a chain. */
  chain: string
  /** Lower-case on EVM chains, else as written. */
  address: string
  /** A wallet if absent. */
  role?: (typeof TREASURY_ROLES)[number] | undefined
  /** The first UTC day on which it belongs to the DAO, as an ISO date; always if absent. */
  since?: string | undefined
}

/** A contract that a DAO votes on. */
export interface Governor {
  /** Slug of a chain. */
  chain: string
  /** Lower-case. */
  address: string
  family: (typeof GOVERNOR_FAMILIES)[number]
  /** How it counts votes with parameters; plain if absent. */
  counting?: (typeof GOVERNOR_COUNTINGS)[number] | undefined
  /** The votes that count towards its quorum; as its family or its contract states if absent. */
  counted?: (typeof GOVERNOR_COUNTED)[number] | undefined
  /** How its quorum changes, if it is neither a constant nor known for each proposal. */
  quorum?: (typeof GOVERNOR_QUORUMS)[number] | undefined
  /** The unit of the starts and ends of its proposals; derived from the numbers if absent. */
  clock?: (typeof GOVERNOR_CLOCKS)[number] | undefined
  /** Length of a vote whose events have no end, or each length from a block on, the oldest first. */
  votingSeconds?: number | readonly { readonly fromBlock: number; readonly seconds: number }[] | undefined
  /** Timelocks like Compound's, by address in lower case; the events of other governors name theirs. */
  timelocks?: readonly { readonly address: string; readonly graceSeconds?: number | undefined }[] | undefined
  fromBlock: number
  /** Its CAIP-10 account id. */
  space: string
  /**
   * Identifies the governor among Snapshot spaces in stored votes and proposals: the account id of the contract with
   * the proposals, which is another one if only the votes are on this contract.
   */
  proposalSpace: string
  /** Decimals of the voting token; 0 if each vote counts as one. */
  decimals: number
}

/** A token, or a vault of staked tokens, whose holders delegate their votes. */
export interface VotingToken {
  /** Slug of a chain. */
  chain: string
  /** Lower-case. */
  address: string
  family: (typeof VOTING_TOKEN_FAMILIES)[number]
  /** Whole tokens that a proposal needs, by the first day, the oldest first; null if unknown. */
  quorums: readonly { readonly from: string; readonly power: number | null }[]
  fromBlock: number
  /** Its CAIP-10 account id. */
  space: string
  decimals: number
}

export interface Dao extends Lifetime {
  id: string
  /** The DAO's integer key in ClickHouse. */
  key: number
  slug: string
  name: string
  /** The latest first. */
  formerNames: string[]
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
  /** Former or additional spaces of the DAO. Their stored votes stay under the original space. */
  formerSnapshotSpaces: string[]
  /** Contracts of current and former votes, the current ones last. */
  governors: Governor[]
  /** The token that the governors count; null if its delegations are not collected. */
  votingToken: VotingToken | null
  treasuries: Treasury[]
  /** DefiLlama's id, of the parent protocol if there is one ("maker" for parent#maker). */
  defillama: string | null
  /** The slug of DefiLlama's name ("sky"), for requests about a protocol and its treasury; null if equal to the id. */
  defillamaSlug: string | null
  /** Id of the token that stands for the DAO. */
  token: string | null
  ended: Ended | null
  live: boolean
  verified: boolean
  isOtc: boolean
  /** The links that are empty in the files and were found by providers. */
  found?: readonly string[]
}

/** Reason and first day of the end of a token or DAO. */
export interface Ended {
  /** The first UTC day without it, as an ISO date. */
  readonly at: string
  readonly reason: string
}

/** The lifetime of an entity, in Unix milliseconds; unlimited by default. */
export interface Lifetime {
  /** Start of the lifetime. For the successor of a token of the same DAO: the end of that token. */
  readonly since?: number
  /** End of the lifetime (exclusive). Data is collected only before it. */
  readonly until?: number
}
