import { isThereAt } from '../../shared/registry/ends.ts'
import type { Dao, Token } from '../../shared/registry/entities.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import type { CoinList, ContractList, Lists, Protocol, ProtocolList, SpaceList } from './lists.ts'

/**
 * A disagreement between the registry and a list. `of` is a token's chain and address or a DAO's slug. `theirs` is null
 * if the list has no such entry.
 */
export interface Difference {
  readonly list: string
  readonly of: string
  readonly field: string
  readonly ours: string | null
  readonly theirs: string | null
}

/**
 * Returns every difference between the registry and the lists, and tokens marked live after their end. `now` is in Unix
 * milliseconds.
 */
export function compareRegistry(registry: Registry, lists: Lists, now: number): Difference[] {
  const { tokens, daos } = registry
  return [
    ...lists.coins.flatMap((list) => tokens.flatMap((token) => compareCoin(token, list))),
    ...lists.contracts.flatMap((list) => tokens.flatMap((token) => compareContract(token, list))),
    ...lists.protocols.flatMap((list) => daos.flatMap((dao) => compareProtocols(dao, registry, list))),
    ...lists.spaces.flatMap((list) => daos.flatMap((dao) => compareSpaces(dao, list))),
    ...tokens.flatMap((token) => compareEnd(token, now)),
  ]
}

const placeOf = ({ symbol, chain, contractAddress }: Token) => `${symbol} ${chain}/${contractAddress}`

function compareCoin(token: Token, { list, id, isComplete, byId }: CoinList): Difference[] {
  const own = token[id]
  if (own === null) return []
  const coin = byId.get(own)
  const of = placeOf(token)
  // A list may remove a coin that has ended.
  if (coin === undefined) return isComplete && token.live ? [{ list, of, field: id, ours: own, theirs: null }] : []
  const found: Difference[] = []
  if (!isSimilar(coin.name, token.name)) found.push({ list, of, field: 'name', ours: token.name, theirs: coin.name })
  if (coin.symbol.toLowerCase() !== token.symbol.toLowerCase())
    found.push({ list, of, field: 'symbol', ours: token.symbol, theirs: coin.symbol })
  const isContract = token.contractAddress.startsWith('0x')
  if (isContract && coin.addresses.length > 0 && !coin.addresses.includes(token.contractAddress))
    found.push({ list, of, field: 'contractAddress', ours: token.contractAddress, theirs: coin.addresses.join(' ') })
  return found
}

function compareContract(token: Token, { list, byPlace }: ContractList): Difference[] {
  const listed = byPlace.get(`${token.chain}/${token.contractAddress}`)
  if (listed === undefined) return []
  const of = placeOf(token)
  const facts = [
    { field: 'symbol', ours: token.symbol, theirs: listed.symbol },
    { field: 'decimals', ours: String(token.decimals), theirs: String(listed.decimals) },
  ]
  return facts.filter(({ ours, theirs }) => ours !== theirs).map((fact) => ({ list, of, ...fact }))
}

function compareProtocols(dao: Dao, { tokenById }: Registry, list: ProtocolList): Difference[] {
  const own = list.protocols.filter((protocol) => isOwn(dao, protocol, list))
  const token = dao.token === null ? undefined : tokenById.get(dao.token)
  const isByToken = ({ coingeckoId, cmcId }: Protocol) =>
    (coingeckoId !== null && coingeckoId === token?.coingeckoId) || (cmcId !== null && cmcId === token?.cmcId)
  const common = { list: list.list, of: dao.slug }
  if (own.length === 0) {
    // A child protocol also names the token of its parent. Only a protocol without a parent is the DAO under another
    // id.
    const parented = list.protocols.find((protocol) => isByToken(protocol) && protocol.parent !== null)
    if (parented !== undefined) return [{ ...common, field: 'defillama', ours: dao.defillama, theirs: parented.parent }]
    const isUnknown = dao.defillama !== null && dao.live && list.isComplete
    return isUnknown ? [{ ...common, field: 'defillama', ours: dao.defillama, theirs: null }] : []
  }
  const [first] = own
  const handle = dao.twitter?.split('/').at(-1) ?? null
  const found: Difference[] = []
  const twitter = own.find((protocol) => protocol.twitter !== null)?.twitter ?? null
  const isHandle = handle !== null && own.some((one) => one.twitter?.toLowerCase() === handle.toLowerCase())
  if (twitter !== null && !isHandle) found.push({ ...common, field: 'twitter', ours: handle, theirs: twitter })
  const space = first?.space ?? null
  if (space !== null && space !== dao.snapshotSpace)
    found.push({ ...common, field: 'snapshotSpace', ours: dao.snapshotSpace, theirs: space })
  return found
}

function isOwn({ defillama, defillamaSlug }: Dao, { slug, parent }: Protocol, { lacksParents }: ProtocolList): boolean {
  if (defillama === null) return false
  const name = defillamaSlug ?? defillama
  return parent === defillama || slug === name || (lacksParents && slug.startsWith(`${name}-`))
}

/** Spaces of DAOs that are not live may have been deleted, so they are not compared. */
function compareSpaces({ slug, snapshotSpace, live }: Dao, { list, knownSpaces, moved }: SpaceList): Difference[] {
  if (snapshotSpace === null || !live) return []
  const common = { list, of: slug, field: 'snapshotSpace', ours: snapshotSpace }
  const target = moved.get(snapshotSpace)
  if (target !== undefined && target !== snapshotSpace) return [{ ...common, theirs: target }]
  return knownSpaces === null || knownSpaces.has(snapshotSpace) ? [] : [{ ...common, theirs: null }]
}

function compareEnd(token: Token, now: number): Difference[] {
  if (!token.live || isThereAt(token, now)) return []
  const ended = `ended on ${token.ended?.at}`
  return [{ list: 'calendar', of: placeOf(token), field: 'live', ours: 'true', theirs: ended }]
}

/**
 * Returns whether one name contains the other, ignoring case, blanks and punctuation. Lists often add "Token" or
 * "Protocol".
 */
function isSimilar(theirs: string, ours: string): boolean {
  const [a, b] = [theirs, ours].map((name) => name.toLowerCase().replace(/[^a-z0-9]/g, ''))
  return a !== undefined && b !== undefined && (a.includes(b) || b.includes(a))
}
