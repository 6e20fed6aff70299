/** A coin in a list. */
export interface Coin {
  readonly symbol: string
  readonly name: string
  /** Contract addresses on any chain, in lower case; empty if the list has none. */
  readonly addresses: readonly string[]
}

/**
 * A list of coins by the registry's id for that list. Only a complete list (`isComplete`) can prove that an id does not
 * exist.
 */
export interface CoinList {
  readonly list: string
  readonly id: 'coingeckoId' | 'cmcId'
  readonly isComplete: boolean
  readonly byId: ReadonlyMap<string, Coin>
}

/** A list of contracts, by `<chain>/<address in lower case>`. */
export interface ContractList {
  readonly list: string
  readonly byPlace: ReadonlyMap<string, { readonly symbol: string; readonly decimals: number }>
}

/** A protocol in a list of DefiLlama. Null means that the list has no value. */
export interface Protocol {
  readonly slug: string
  /** The id of the parent protocol, or the protocol's own id if it is a parent. */
  readonly parent: string | null
  readonly coingeckoId: string | null
  readonly cmcId: string | null
  readonly twitter: string | null
  readonly space: string | null
}

export interface ProtocolList {
  readonly list: string
  /** Whether the list is complete, so that a DAO missing from it is unknown to DefiLlama. */
  readonly isComplete: boolean
  /** Whether the list has no parent ids. A child is then recognized by its slug, which starts with the parent's. */
  readonly lacksParents: boolean
  readonly protocols: readonly Protocol[]
}

export interface SpaceList {
  readonly list: string
  /** The existing spaces among those of the registry; null if the list does not contain this. */
  readonly knownSpaces: ReadonlySet<string> | null
  /** New space id by old space id. */
  readonly moved: ReadonlyMap<string, string>
}

/** All lists of one source. */
export interface Lists {
  readonly coins: readonly CoinList[]
  readonly contracts: readonly ContractList[]
  readonly protocols: readonly ProtocolList[]
  readonly spaces: readonly SpaceList[]
  /** Lists that could not be read, with the reason. */
  readonly unread: readonly { readonly list: string; readonly reason: string; readonly isFailure: boolean }[]
}
