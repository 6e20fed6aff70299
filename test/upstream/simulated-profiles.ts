import { toNoiseKey, unit } from './noise.ts'
import { type Asset, type Profile, toSlug } from './world.ts'

/** Share of the links that are known. */
const LINK_SHARE = 0.75

/** The public profile of a token's project: fictitious links, some of them missing. */
export function inventProfile(seed: number, asset: Asset): Profile {
  const slug = toSlug(asset.name)
  const key = toNoiseKey(seed, `profile ${asset.id}`)
  const linkOrNull = (position: number, link: string) => (unit(key, position) < LINK_SHARE ? link : null)
  const handle = slug.replaceAll('-', '_').slice(0, 15)
  return {
    slug,
    website: linkOrNull(0, `https://${slug}.example/`),
    twitter: linkOrNull(1, handle),
    discord: linkOrNull(2, `https://discord.gg/invented-${slug}`),
    telegram: linkOrNull(3, `invented_${handle}`),
    whitepaper: linkOrNull(4, `https://${slug}.example/whitepaper.pdf`),
    logo: linkOrNull(5, `https://${slug}.example/logo.png`),
  }
}
