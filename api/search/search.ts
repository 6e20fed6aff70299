import { tokenPrices } from '../../shared/datasets/token-prices.ts'
import { snapshot } from '../../shared/registry/ends.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import type { CacheReader } from '../cache/cache.ts'
import { compareValues } from '../formats/formats.ts'
import { type ListSource, loadRecords } from '../lists/lists.ts'
import {
  fold,
  MEMBERS,
  prepareEntities,
  type Searchable,
  type SearchedEntity,
  type SearchText,
  toWords,
} from './searchable.ts'

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
interface SearchResult extends SearchedEntity {
  readonly matched: string
  readonly match: { readonly kind: (typeof MATCH_KINDS)[number]; readonly text: string }
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
  const found = prepareEntities(fixed).flatMap((searchable) => {
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
