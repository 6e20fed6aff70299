/** What a list says of a coin. */
export interface Coin {
  readonly symbol: string
  readonly name: string
  /** Its contracts on any chain, in lower case; none where the list has no word of them. */
  readonly addresses: readonly string[]
}

/** A list of coins by the id that the registry keeps of it. Only a whole one can say that an id does not exist. */
export interface CoinList {
  readonly list: string
  readonly id: 'coingeckoId' | 'cmcId'
  readonly isWhole: boolean
  readonly byId: ReadonlyMap<string, Coin>
}

/** A list of contracts, by `<chain>/<address in lower case>`. */
export interface ContractList {
  readonly list: string
  readonly byPlace: ReadonlyMap<string, { readonly symbol: string; readonly decimals: number }>
}

/** What a list of DefiLlama says of a protocol; null where it has no word of it. */
export interface Protocol {
  readonly slug: string
  /** The id of its parent protocol, or its own where it is one. */
  readonly parent: string | null
  readonly coingeckoId: string | null
  readonly cmcId: string | null
  readonly twitter: string | null
  readonly space: string | null
}

export interface ProtocolList {
  readonly list: string
  /** Whether a DAO that is not in it is unknown to DefiLlama. */
  readonly isWhole: boolean
  /** Whether its children are told by their slugs alone, which begin with that of their parent. */
  readonly lacksParents: boolean
  readonly protocols: readonly Protocol[]
}

export interface SpaceList {
  readonly list: string
  /** The spaces that exist, of all that the registry names; null where the list does not tell. */
  readonly known: ReadonlySet<string> | null
  /** Where a space has moved to. */
  readonly moved: ReadonlyMap<string, string>
}

/** What the registry is compared with: all lists of one source. */
export interface Lists {
  readonly coins: readonly CoinList[]
  readonly contracts: readonly ContractList[]
  readonly protocols: readonly ProtocolList[]
  readonly spaces: readonly SpaceList[]
  /** The lists that could not be read, each with the reason. */
  readonly unread: readonly { readonly list: string; readonly reason: string; readonly isFailure: boolean }[]
}
