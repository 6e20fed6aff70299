import { toNoiseKey, unit } from './noise.ts'
import { type Asset, type Profile, toSlug } from './world.ts'

/** Share of the links that are known. */
const KNOWN_SHARE = 0.75

/** The public profile of a token's project: fictitious links, some of them missing. */
export function inventProfile(seed: number, asset: Asset): Profile {
  const slug = toSlug(asset.name)
  const key = toNoiseKey(seed, `profile ${asset.id}`)
  const known = (position: number, link: string) => (unit(key, position) < KNOWN_SHARE ? link : null)
  const handle = slug.replaceAll('-', '_').slice(0, 15)
  return {
    slug,
    website: known(0, `https://${slug}.example/`),
    twitter: known(1, handle),
    discord: known(2, `https://discord.gg/invented-${slug}`),
    telegram: known(3, `invented_${handle}`),
    whitepaper: known(4, `https://${slug}.example/whitepaper.pdf`),
    logo: known(5, `https://${slug}.example/logo.png`),
  }
}
