import type { Dao, Token } from '../../shared/registry/entities.ts'
import type { Registry } from '../../shared/registry/registry.ts'

/** The searchable members, best match first. The value is the part of a text that must match. */
export const MEMBERS = {
  symbol: 'name',
  name: 'name',
  slug: 'name',
  contractAddress: 'beginning',
  cmcId: 'whole',
  formerName: 'former name',
  predecessor: 'former name',
  formerAddress: 'whole',
  treasury: 'whole',
  governor: 'whole',
  votingToken: 'whole',
} as const

type Member = keyof typeof MEMBERS

export interface SearchText {
  readonly member: Member
  readonly text: string
  readonly folded: string
  /** Each run of words of a name, without blanks and punctuation. */
  readonly runs: readonly string[]
}

/** The members of a search result about its token or DAO. */
export interface SearchedEntity {
  readonly type: 'token' | 'dao'
  readonly _id: string
  readonly name: string
  readonly symbol: string | null
  readonly slug: string | null
  readonly image: string | null
}

/** A live token or DAO and its searchable texts, in the order of `MEMBERS`. */
export interface Searchable {
  /** The token's key; -1 for a DAO without a token. */
  readonly key: number
  readonly record: SearchedEntity
  readonly texts: readonly SearchText[]
  /** Slugs. */
  readonly categories: readonly string[]
  /** Slugs. */
  readonly chains: readonly string[]
}

export const fold = (text: string) => text.toLowerCase()

export const toWords = (text: string) =>
  fold(text)
    .replaceAll(/[^\p{L}\p{N}]+/gu, ' ')
    .trim()

function toRuns(text: string): string[] {
  const words = toWords(text).split(' ')
  return words.flatMap((_, from) => words.slice(from).map((_word, more) => words.slice(from, from + more + 1).join('')))
}

function toText(member: Member, text: string): SearchText {
  const isName = MEMBERS[member] === 'name' || MEMBERS[member] === 'former name'
  return { member, text, folded: fold(text), runs: isName ? toRuns(text) : [] }
}

const toTexts = (member: Member, texts: readonly (string | null)[]) =>
  texts.flatMap((text) => (text === null ? [] : [toText(member, text)]))

/** The tokens that were exchanged for each token, directly or through another one, by the id of the newest. */
function findPredecessors({ tokens, tokenById }: Registry): ReadonlyMap<string, readonly Token[]> {
  const predecessors = new Map<string, Token[]>()
  for (const token of tokens) {
    const passed = new Set([token.id])
    let next = token.live ? null : token.ended?.successor
    while (next && !passed.has(next)) {
      passed.add(next)
      predecessors.set(next, [...(predecessors.get(next) ?? []), token])
      next = tokenById.get(next)?.ended?.successor
    }
  }
  return predecessors
}

/** A predecessor within the DAO is the same token under another name; one of another DAO is not. */
function toFormerTexts(names: readonly string[], dao: string, predecessors: readonly Token[]): SearchText[] {
  const namesOf = (tokens: readonly Token[]) => tokens.flatMap(({ symbol, name }) => [symbol, name])
  const own = predecessors.filter((one) => one.dao === dao)
  const other = predecessors.filter((one) => one.dao !== dao)
  return [
    ...toTexts('formerName', [...new Set([...names, ...namesOf(own)])]),
    ...toTexts('predecessor', namesOf(other)),
  ]
}

function toSearchableToken(token: Token, registry: Registry, predecessors: readonly Token[]): Searchable {
  const { id, key, name, symbol, contractAddress, cmcId, formerNames, dao, chain } = token
  return {
    key,
    record: { type: 'token', _id: id, name, symbol, slug: null, image: null },
    texts: [
      ...toTexts('symbol', [symbol]),
      ...toTexts('name', [name]),
      ...toTexts('contractAddress', [contractAddress]),
      ...toTexts('cmcId', [cmcId]),
      ...toFormerTexts(formerNames, dao, predecessors),
      ...toTexts(
        'formerAddress',
        predecessors.map((one) => one.contractAddress),
      ),
    ],
    categories: registry.daoBySlug.get(dao)?.categories ?? [],
    chains: [chain],
  }
}

const toAddresses = (contracts: readonly { readonly address: string }[]) => [
  ...new Set(contracts.map(({ address }) => address)),
]

function toSearchableDao(dao: Dao, token: Token | undefined, predecessors: readonly Token[]): Searchable {
  const { id, name, slug, image, formerNames, treasuries, governors, votingToken, categories, chains } = dao
  const symbol = token?.symbol ?? null
  return {
    key: token?.key ?? -1,
    record: { type: 'dao', _id: id, name, symbol, slug, image },
    texts: [
      ...toTexts('symbol', [symbol]),
      ...toTexts('name', [name]),
      ...toTexts('slug', [slug]),
      ...toFormerTexts([...formerNames, ...(token?.formerNames ?? [])], slug, predecessors),
      ...toTexts('treasury', toAddresses(treasuries)),
      ...toTexts('governor', toAddresses(governors)),
      ...toTexts('votingToken', [votingToken?.address ?? null]),
    ],
    categories,
    chains,
  }
}

const prepared = new WeakMap<Registry, readonly Searchable[]>()

/** The searchable texts of a registry's live tokens and DAOs. Only the first call for a registry prepares them. */
export function prepareEntities(registry: Registry): readonly Searchable[] {
  const known = prepared.get(registry)
  if (known !== undefined) return known
  const predecessors = findPredecessors(registry)
  const tokens = registry.tokens
    .filter(({ live }) => live)
    .map((token) => toSearchableToken(token, registry, predecessors.get(token.id) ?? []))
  const daos = registry.daos
    .filter(({ live }) => live)
    .map((dao) => {
      const token = dao.token === null ? undefined : registry.tokenById.get(dao.token)
      return toSearchableDao(dao, token, predecessors.get(token?.id ?? '') ?? [])
    })
  const searchables = [...tokens, ...daos]
  prepared.set(registry, searchables)
  return searchables
}
