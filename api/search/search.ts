import { tokenPrices } from '../../shared/datasets/token-prices.ts'
import { snapshot } from '../../shared/registry/ends.ts'
import type { Dao, Token } from '../../shared/registry/entities.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import type { CacheReader } from '../cache/cache.ts'
import { compareValues } from '../formats/formats.ts'
import { type ListSource, loadRecords } from '../lists/lists.ts'

/** The latest quote of each token as a list, which the process loads once after each change. */
const QUOTES: ListSource = {
  name: 'market-caps',
  key: 'market-caps',
  datasets: [tokenPrices],
  sql: `SELECT token AS key, '' AS name, market_cap, observed_at AS as_of, tuple(token) AS record
FROM token_quotes FINAL WHERE {all: Bool} OR has({keys: Array(UInt64)}, token)`,
  params: {},
}

/**
 * The latest known market caps in US dollars, by the key of the token.
 * @throws DataError `storage`, and the reason of `signal`.
 */
export async function readMarketCaps(reader: CacheReader): Promise<ReadonlyMap<number, number>> {
  const { records } = await loadRecords(reader, QUOTES)
  return new Map(records.flatMap(({ key, marketCap }) => (marketCap === null ? [] : [[key, marketCap]])))
}

/** How a text fits the query. `similar`: apart from blanks and punctuation, it differs by one or two typing errors. */
export const MATCH_KINDS = ['exact', 'prefix', 'substring', 'words', 'similar'] as const

/** A token or DAO that matches, as `/data/search` lists it. */
interface SearchResult {
  readonly type: 'token' | 'dao'
  readonly _id: string
  readonly name: string
  readonly symbol: string | null
  readonly slug: string | null
  readonly image: string | null
  readonly matched: string
  readonly match: { readonly kind: (typeof MATCH_KINDS)[number]; readonly text: string }
}

/** The searchable members in the order of their exact matches, and which part of their texts suffices. */
const MEMBERS = {
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

interface SearchText {
  readonly member: Member
  readonly text: string
  readonly folded: string
  /** Each run of words of a name, without blanks and punctuation. */
  readonly runs: readonly string[]
}

/** A live token or DAO and its searchable texts, in the order of `MEMBERS`. */
interface Searchable {
  /** The token's key; -1 for a DAO without a token. */
  readonly key: number
  readonly record: Omit<SearchResult, 'matched' | 'match'>
  readonly texts: readonly SearchText[]
  /** Slugs. */
  readonly categories: readonly string[]
  /** Slugs. */
  readonly chains: readonly string[]
}

const fold = (text: string) => text.toLowerCase()

const toWords = (text: string) =>
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

/** The searchable texts of each registry, so that only the first search in it prepares them. */
const prepared = new WeakMap<Registry, readonly Searchable[]>()

function prepare(registry: Registry): readonly Searchable[] {
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

/** From this length on, a prefix of a word of a category or chain matches. */
const LEAST_BEGINNING = 4

/** The categories or chains whose name or slug contains the words of a text, or a long enough prefix of them: names by slug. */
function findNamed(
  named: readonly { readonly name: string; readonly slug: string }[],
  words: string,
): ReadonlyMap<string, string> {
  const searched = words.length >= LEAST_BEGINNING ? ` ${words}` : ` ${words} `
  const found = named.filter(({ name, slug }) => [name, slug].some((text) => ` ${toWords(text)} `.includes(searched)))
  return new Map(found.map(({ slug, name }) => [slug, name]))
}

/**
 * Whether at most `edits` edits turn one text into the other. An edit inserts, deletes or replaces a letter, or swaps
 * two adjacent ones.
 */
export function isWithin(one: string, other: string, edits: number): boolean {
  if (Math.abs(one.length - other.length) > edits) return false
  let same = 0
  while (same < one.length && one[same] === other[same]) same += 1
  if (same === one.length && same === other.length) return true
  if (edits === 0) return false
  const [a, b, left] = [one.slice(same), other.slice(same), edits - 1]
  const isSwap = a.length > 1 && a[0] === b[1] && a[1] === b[0]
  return (
    isWithin(a.slice(1), b.slice(1), left) ||
    isWithin(a.slice(1), b, left) ||
    isWithin(a, b.slice(1), left) ||
    (isSwap && isWithin(a.slice(2), b.slice(2), left))
  )
}

/** A text to search for. */
interface SearchQuery {
  readonly folded: string
  /** Without blanks and punctuation. */
  readonly joined: string
  /** The largest number of typing errors in a match. */
  readonly mostEdits: number
  /** Names of the matching categories by slug. */
  readonly categories: ReadonlyMap<string, string>
  /** Names of the matching chains by slug. */
  readonly chains: ReadonlyMap<string, string>
}

/** Allowed typing errors: one from 4 letters on, two from 8 on, and none in addresses and numbers. */
function countEdits(folded: string, { length }: string): number {
  if (length < 4 || /^(?:0x[0-9a-f]*|\d+)$/.test(folded)) return 0
  return length < 8 ? 1 : 2
}

function toSearchQuery({ categories, chains }: Registry, text: string): SearchQuery {
  const [folded, words] = [fold(text), toWords(text)]
  const joined = words.replaceAll(' ', '')
  const named = { categories: findNamed(categories, words), chains: findNamed(chains, words) }
  return { folded, joined, mostEdits: countEdits(folded, joined), ...named }
}

/** The partial matches that are tried in this order if no text is equal to the query. */
const PARTIAL = [
  { kind: 'prefix', parts: ['name', 'beginning'] },
  { kind: 'substring', parts: ['name'] },
  { kind: 'prefix', parts: ['former name'] },
  { kind: 'substring', parts: ['former name'] },
] as const

const EXACT_RANKS = Object.keys(MEMBERS)
const PARTIAL_RANK = EXACT_RANKS.length
const CATEGORY_RANK = PARTIAL_RANK + PARTIAL.length
const CHAIN_RANK = CATEGORY_RANK + 1
const SIMILAR_RANK = CHAIN_RANK + 1

interface Fit extends Pick<SearchResult, 'matched' | 'match'> {
  readonly rank: number
}

const toFit = (rank: number, matched: string, kind: SearchResult['match']['kind'], text: string): Fit => ({
  ...{ rank, matched, match: { kind, text } },
})

/** The best match of an entity, whose rank is the lowest; undefined if none of its texts fits. */
function findFit({ texts, categories, chains }: Searchable, query: SearchQuery): Fit | undefined {
  const exact = texts.find(({ folded }) => folded === query.folded)
  if (exact !== undefined) return toFit(EXACT_RANKS.indexOf(exact.member), exact.member, 'exact', exact.text)
  for (const [place, { kind, parts }] of PARTIAL.entries()) {
    const found = texts.find(({ member, folded }) => {
      if (!parts.some((part) => part === MEMBERS[member])) return false
      return kind === 'prefix' ? folded.startsWith(query.folded) : folded.includes(query.folded)
    })
    if (found !== undefined) return toFit(PARTIAL_RANK + place, found.member, kind, found.text)
  }
  const category = findName(query.categories, categories)
  if (category !== undefined) return toFit(CATEGORY_RANK, 'category', 'words', category)
  const chain = findName(query.chains, chains)
  if (chain !== undefined) return toFit(CHAIN_RANK, 'chain', 'words', chain)
  return findSimilar(texts, query)
}

const findName = (names: ReadonlyMap<string, string>, slugs: readonly string[]): string | undefined =>
  names.get(slugs.find((slug) => names.has(slug)) ?? '')

function findSimilar(texts: readonly SearchText[], { joined, mostEdits }: SearchQuery): Fit | undefined {
  for (let edits = 0; edits <= mostEdits && mostEdits > 0; edits += 1) {
    const found = texts.find(({ runs }) => runs.some((run) => isWithin(run, joined, edits)))
    if (found !== undefined) return toFit(SIMILAR_RANK + edits, found.member, 'similar', found.text)
  }
  return undefined
}

/**
 * Live tokens and DAOs that match a text, best first (docs/contract.md, section 8), then by market cap in USD, the
 * largest first, then by name. A token comes before its DAO.
 */
export function search(registry: Registry, marketCaps: ReadonlyMap<number, number>, text: string): SearchResult[] {
  const fixed = snapshot(registry)
  const query = toSearchQuery(fixed, text)
  const capOf = (key: number) => marketCaps.get(key) ?? -1
  const found = prepare(fixed).flatMap((searchable) => {
    const fit = findFit(searchable, query)
    return fit === undefined ? [] : [{ ...searchable, ...fit }]
  })
  found.sort(
    (a, b) =>
      a.rank - b.rank ||
      capOf(b.key) - capOf(a.key) ||
      Number(a.record.type === 'dao') - Number(b.record.type === 'dao') ||
      compareValues(a.record.name, b.record.name) ||
      compareValues(a.record._id, b.record._id),
  )
  return found.map(({ record, matched, match }) => ({ ...record, matched, match }))
}
