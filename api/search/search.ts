import { tokenPrices } from '../../shared/datasets/token-prices.ts'
import type { Dao, Token } from '../../shared/registry/entities.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import { compareValues } from '../answers/keyset.ts'
import type { ChunkCache } from '../cache/chunks.ts'
import { findRecords, type ListSource, loadRecords } from '../lists/answer.ts'

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
export async function readMarketCaps(call: {
  readonly chunks: ChunkCache
  readonly signal: AbortSignal
}): Promise<ReadonlyMap<number, number>> {
  const { records } = await findRecords(call.chunks, QUOTES, () => loadRecords(call, QUOTES))
  return new Map(records.flatMap(({ key, marketCap }) => (marketCap === null ? [] : [[key, marketCap]])))
}

/** A token or DAO that matches, as `/data/search` lists it. */
interface SearchResult {
  readonly type: 'token' | 'dao'
  readonly _id: string
  readonly name: string
  readonly symbol: string | null
  readonly slug: string | null
  readonly image: string | null
  readonly matched: string
}

/** The searchable texts of an entity, the best match first. By default a part of the text is enough. */
type SearchTexts = readonly (readonly [member: string, text: string | null, least?: 'whole' | 'beginning'])[]

const fold = (text: string) => text.toLowerCase()

/** The rank of an entity, lower is better, and the member that matches; undefined if none does. */
function rank(searchTexts: SearchTexts, query: string): { rank: number; matched: string } | undefined {
  const texts = searchTexts.flatMap(([member, text, least = 'part'], place) =>
    text === null ? [] : [{ member, text: fold(text), place, least }],
  )
  const exact = texts.find(({ text }) => text === query)
  if (exact !== undefined) return { rank: exact.place, matched: exact.member }
  const beginning = texts.find(({ text, least }) => least !== 'whole' && text.startsWith(query))
  if (beginning !== undefined) return { rank: searchTexts.length, matched: beginning.member }
  const inside = texts.find(({ text, least }) => least === 'part' && text.includes(query))
  return inside && { rank: searchTexts.length + 1, matched: inside.member }
}

/** From this length on, a prefix of a word of a category matches. */
const LEAST_BEGINNING = 4

const toWords = (text: string) =>
  ` ${fold(text)
    .replaceAll(/[^\p{L}\p{N}]+/gu, ' ')
    .trim()} `

/** The slugs of the categories whose name or slug contains the words of a text, or a long enough prefix of them. */
function findCategories({ categories }: Registry, query: string): ReadonlySet<string> {
  const words = toWords(query)
  const searched = words.trim().length >= LEAST_BEGINNING ? words.trimEnd() : words
  const found = categories.filter(({ name, slug }) => [name, slug].some((text) => toWords(text).includes(searched)))
  return new Set(found.map(({ slug }) => slug))
}

const toTokenTexts = ({ symbol, name, contractAddress, cmcId }: Token): SearchTexts => [
  ['symbol', symbol],
  ['name', name],
  ['slug', null],
  ['contractAddress', contractAddress, 'beginning'],
  ['cmcId', cmcId, 'whole'],
]

const toDaoTexts = ({ name, slug }: Dao, symbol: string | null): SearchTexts => [
  ['symbol', symbol],
  ['name', name],
  ['slug', slug],
  ['contractAddress', null],
  ['cmcId', null],
]

/**
 * Live tokens and DAOs that match a text, best first (docs/contract.md, section 8), then by market cap in USD, the largest first, then
 * by name. A token comes before its DAO. Entities of a matching category come last.
 */
export function search(registry: Registry, marketCaps: ReadonlyMap<number, number>, text: string): SearchResult[] {
  const query = fold(text)
  const matchingCategories = findCategories(registry, query)
  const rankIn = (searchTexts: SearchTexts, categories: readonly string[] = []) =>
    rank(searchTexts, query) ??
    (categories.some((slug) => matchingCategories.has(slug))
      ? { rank: searchTexts.length + 2, matched: 'category' }
      : undefined)
  const tokens = registry.tokens
    .filter(({ live }) => live)
    .flatMap((token) => {
      const fit = rankIn(toTokenTexts(token), registry.daoBySlug.get(token.dao)?.categories)
      const { id, name, symbol, key } = token
      if (fit === undefined) return []
      return [{ ...fit, key, record: { type: 'token' as const, _id: id, name, symbol, slug: null, image: null } }]
    })
  const daos = registry.daos
    .filter(({ live }) => live)
    .flatMap((dao) => {
      const token = dao.token === null ? undefined : registry.tokenById.get(dao.token)
      const fit = rankIn(toDaoTexts(dao, token?.symbol ?? null), dao.categories)
      const { id, name, slug, image } = dao
      if (fit === undefined) return []
      const record = { type: 'dao' as const, _id: id, name, symbol: token?.symbol ?? null, slug, image }
      return [{ ...fit, key: token?.key ?? -1, record }]
    })
  const capOf = (key: number) => marketCaps.get(key) ?? -1
  const found = [...tokens, ...daos].sort(
    (a, b) =>
      a.rank - b.rank ||
      capOf(b.key) - capOf(a.key) ||
      Number(a.record.type === 'dao') - Number(b.record.type === 'dao') ||
      compareValues(a.record.name, b.record.name) ||
      compareValues(a.record._id, b.record._id),
  )
  return found.map(({ record, matched }) => ({ ...record, matched }))
}
