import type { Dao, Token } from '../../shared/registry/entities.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import { compareValues } from '../records/order.ts'

/** A token or DAO that fits, as `/data/search` lists it. */
interface Found {
  readonly type: 'token' | 'dao'
  readonly _id: string
  readonly name: string
  readonly symbol: string | null
  readonly slug: string | null
  readonly image: string | null
  readonly matched: string
}

/** What something can be found by, the best way first; a part of it is enough unless it says otherwise. */
type Known = readonly (readonly [member: string, text: string | null, asked?: 'whole' | 'beginning'])[]

const fold = (text: string) => text.toLowerCase()

/** How well something fits, the lower the better, and by which member; undefined where it doesn't. */
function rank(known: Known, asked: string): { rank: number; matched: string } | undefined {
  const texts = known.flatMap(([member, text, least = 'part'], place) =>
    text === null ? [] : [{ member, text: fold(text), place, least }],
  )
  const exact = texts.find(({ text }) => text === asked)
  if (exact !== undefined) return { rank: exact.place, matched: exact.member }
  const beginning = texts.find(({ text, least }) => least !== 'whole' && text.startsWith(asked))
  if (beginning !== undefined) return { rank: known.length, matched: beginning.member }
  const inside = texts.find(({ text, least }) => least === 'part' && text.includes(asked))
  return inside && { rank: known.length + 1, matched: inside.member }
}

/** From this length on, the beginning of a word of a category is enough. */
const LEAST_BEGINNING = 4

const toWords = (text: string) =>
  ` ${fold(text)
    .replaceAll(/[^\p{L}\p{N}]+/gu, ' ')
    .trim()} `

/** The slugs of the categories whose name or slug has the whole words of a text, or a long enough beginning of them. */
function findCategories({ categories }: Registry, asked: string): ReadonlySet<string> {
  const words = toWords(asked)
  const wanted = words.trim().length >= LEAST_BEGINNING ? words.trimEnd() : words
  const found = categories.filter(({ name, slug }) => [name, slug].some((text) => toWords(text).includes(wanted)))
  return new Set(found.map(({ slug }) => slug))
}

const toKnownToken = ({ symbol, name, contractAddress, cmcId }: Token): Known => [
  ['symbol', symbol],
  ['name', name],
  ['slug', null],
  ['contractAddress', contractAddress, 'beginning'],
  ['cmcId', cmcId, 'whole'],
]

const toKnownDao = ({ name, slug }: Dao, symbol: string | null): Known => [
  ['symbol', symbol],
  ['name', name],
  ['slug', slug],
  ['contractAddress', null],
  ['cmcId', null],
]

/**
 * Live tokens and DAOs that fit a text, best first (docs/contract.md, section 8); equally good ones by market cap in USD, the largest
 * first, then by name. A token comes before its DAO. Those that only belong to a category of that name come last.
 */
export function search(registry: Registry, marketCaps: ReadonlyMap<number, number>, text: string): Found[] {
  const asked = fold(text)
  const wanted = findCategories(registry, asked)
  const rankIn = (known: Known, categories: readonly string[] = []) =>
    rank(known, asked) ??
    (categories.some((slug) => wanted.has(slug)) ? { rank: known.length + 2, matched: 'category' } : undefined)
  const tokens = registry.tokens
    .filter(({ live }) => live)
    .flatMap((token) => {
      const fit = rankIn(toKnownToken(token), registry.daoBySlug.get(token.dao)?.categories)
      const { id, name, symbol, key } = token
      if (fit === undefined) return []
      return [{ ...fit, key, record: { type: 'token' as const, _id: id, name, symbol, slug: null, image: null } }]
    })
  const daos = registry.daos
    .filter(({ live }) => live)
    .flatMap((dao) => {
      const token = dao.token === null ? undefined : registry.tokenById.get(dao.token)
      const fit = rankIn(toKnownDao(dao, token?.symbol ?? null), dao.categories)
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
