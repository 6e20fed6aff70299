import type { Reply, UpstreamRequest } from '../exchange.ts'
import { type Asset, type Profile, toSlug, type World } from '../world.ts'
import { toAnswer, toFailure } from './coinmarketcap-reply.ts'
import { toSelection } from './coinmarketcap-selection.ts'

/** Metadata of coins: a map keyed by id. Source: docs/providers.md, section 1.3. */
export function answerInfo({ query, now }: UpstreamRequest, world: World): Reply {
  const selection = toSelection(query, world, (asset) => toSlug(asset.name))
  if ('invalid' in selection) return toFailure(400, now, selection.invalid)
  const coins = selection.coins.flatMap(({ asset }) => {
    const profile = world.profile(asset)
    return profile === null ? [] : [[asset.cmcId, toInfo(asset, profile)]]
  })
  return toAnswer(JSON.stringify(Object.fromEntries(coins)), Math.max(1, Math.ceil(coins.length / 100)), now)
}

function toInfo(asset: Asset, profile: Profile) {
  const chat = [profile.discord, profile.telegram && `https://t.me/${profile.telegram}`]
  return {
    id: Number(asset.cmcId),
    name: asset.name,
    symbol: asset.symbol,
    slug: profile.slug,
    contract_address: [{ contract_address: asset.contractAddress, platform: { name: asset.chain } }],
    category: 'token',
    description: '',
    logo: profile.logo ?? '',
    tags: [],
    date_added: null,
    date_launched: null,
    urls: {
      website: toList(profile.website),
      technical_doc: toList(profile.whitepaper),
      twitter: toList(profile.twitter && `https://twitter.com/${profile.twitter}`),
      reddit: [],
      message_board: [],
      announcement: [],
      chat: chat.flatMap(toList),
      explorer: [],
      source_code: [],
    },
  }
}

function toList(link: string | null): string[] {
  return link === null ? [] : [link]
}
