import { z } from 'zod'
import { DataError, toReason } from '../../shared/errors.ts'
import { toBatches } from '../../shared/group-by.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import type { ProviderContext } from '../job/define-job.ts'
import { asSent, checkAnswer } from '../providers/answer.ts'
import { openCoinGecko } from '../providers/coingecko/client.ts'
import { openCoinMarketCap } from '../providers/coinmarketcap/client.ts'
import { fetchProtocols, openDefiLlama } from '../providers/defillama/client.ts'
import { openSnapshot, runQuery } from '../providers/snapshot/client.ts'
import type { CoinList, Lists, Protocol, ProtocolList, SpaceList } from './lists.ts'

type Opening = Pick<ProviderContext, 'config' | 'http'>
type Part = Partial<Omit<Lists, 'unread'>>

/** Fetches the list of every provider. Failures are collected in `unread`; the other lists are returned. */
export async function fetchLists(registry: Registry, opening: Opening, signal: AbortSignal): Promise<Lists> {
  const sources: readonly (readonly [string, () => Promise<Part>])[] = [
    ['coingecko', async () => ({ coins: [await fetchCoinGecko(opening, signal)] })],
    ['coinmarketcap', async () => ({ coins: [await fetchCoinMarketCap(registry, opening, signal)] })],
    ['defillama', async () => ({ protocols: [await fetchDefiLlama(opening, signal)] })],
    ['snapshot', async () => ({ spaces: [await fetchSpaces(registry, opening, signal)] })],
  ]
  const parts = await Promise.all(
    sources.map(async ([list, read]): Promise<Part & Pick<Lists, 'unread'>> => {
      try {
        return { ...(await read()), unread: [] }
      } catch (error) {
        signal.throwIfAborted()
        const isFailure = !(error instanceof DataError && error.code === 'provider_unconfigured')
        return { unread: [{ list, reason: toReason(error), isFailure }] }
      }
    }),
  )
  return {
    coins: parts.flatMap(({ coins = [] }) => coins),
    contracts: [],
    protocols: parts.flatMap(({ protocols = [] }) => protocols),
    spaces: parts.flatMap(({ spaces = [] }) => spaces),
    unread: parts.flatMap(({ unread }) => unread),
  }
}

const COINS = '/coins/list'
const coinsAnswer = z.array(
  z.object({
    id: z.string(),
    symbol: z.string(),
    name: z.string(),
    platforms: z.record(z.string(), z.string().nullable()),
  }),
)

async function fetchCoinGecko(opening: Opening, signal: AbortSignal): Promise<CoinList> {
  const client = openCoinGecko(opening)
  const answer = await client.json({ path: COINS, query: { include_platform: 'true' }, signal })
  const coins = checkAnswer(coinsAnswer, answer, { provider: 'coingecko', path: COINS })
  const byId = new Map(
    coins.map(({ id, symbol, name, platforms }) => {
      const addresses = Object.values(platforms).flatMap((address) => (address ? [address.toLowerCase()] : []))
      return [id, { symbol, name, addresses }] as const
    }),
  )
  return { list: 'coingecko', id: 'coingeckoId', isComplete: true, byId }
}

const INFO = '/v2/cryptocurrency/info'
const contract = z.object({ contract_address: z.string() })
const infoAnswer = z.object({
  data: z.record(
    z.string(),
    z.object({ symbol: z.string(), name: z.string(), contract_address: z.array(contract).nullish() }),
  ),
})

async function fetchCoinMarketCap({ tokens }: Registry, opening: Opening, signal: AbortSignal): Promise<CoinList> {
  const client = openCoinMarketCap(opening)
  if (!client.hasKey) throw new DataError('provider_unconfigured', 'not asked without COINMARKETCAP_API_KEY')
  const byId: [string, { symbol: string; name: string; addresses: string[] }][] = []
  const ids = tokens.flatMap(({ cmcId }) => (cmcId === null ? [] : [cmcId]))
  for (const batch of toBatches(ids, 100)) {
    const { data } = await client.fetch(INFO, { id: batch.join(','), skip_invalid: 'true' }, infoAnswer, signal)
    for (const [id, { symbol, name, contract_address }] of Object.entries(data)) {
      const addresses = (contract_address ?? []).map((one) => one.contract_address.toLowerCase())
      byId.push([id, { symbol, name, addresses }])
    }
  }
  return { list: 'coinmarketcap', id: 'cmcId', isComplete: true, byId: new Map(byId) }
}

const protocolsAnswer = z.array(z.object({ slug: z.string(), parentProtocol: asSent, twitter: asSent }))

async function fetchDefiLlama(opening: Opening, signal: AbortSignal): Promise<ProtocolList> {
  const answer = await fetchProtocols(openDefiLlama(opening), protocolsAnswer, signal)
  const protocols = answer.map(
    ({ slug, parentProtocol, twitter }): Protocol => ({
      slug,
      parent: typeof parentProtocol === 'string' ? parentProtocol.replace(/^parent#/, '') : null,
      twitter: typeof twitter === 'string' && twitter !== '' ? twitter : null,
      // Children name tokens other than their parent's, so the ids are ignored.
      coingeckoId: null,
      cmcId: null,
      space: null,
    }),
  )
  return { list: 'defillama', isComplete: true, lacksParents: false, protocols }
}

/** The Snapshot hub accepts at most 100 ids per request. */
const SPACES = 'query Spaces($ids: [String]!) { spaces(first: 100, where: {id_in: $ids}) { id } }'
const spacesData = z.object({ spaces: z.array(z.object({ id: z.string() })) })

async function fetchSpaces({ daos }: Registry, opening: Opening, signal: AbortSignal): Promise<SpaceList> {
  const client = openSnapshot(opening)
  const foundSpaces = new Set<string>()
  const named = daos.flatMap(({ snapshotSpace }) => (snapshotSpace === null ? [] : [snapshotSpace]))
  for (const ids of toBatches(named, 100)) {
    const { spaces } = await runQuery(client, { query: SPACES, variables: { ids } }, spacesData, signal)
    for (const { id } of spaces) foundSpaces.add(id)
  }
  return { list: 'snapshot', knownSpaces: foundSpaces, moved: new Map() }
}
