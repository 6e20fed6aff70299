import { noise, unit } from './noise.ts'
import type { Post } from './socials.ts'
import { DAY, MINUTE } from './world.ts'

const POSITIVE = [
  'Really bullish on @{handle}, the fundamentals keep growing 🚀',
  'The new @{handle} release is great, fees are lower and it just works',
  'Proud to be part of this community. Best governance in the space!',
  '@{handle} ships again. Impressive team, love the transparency',
  'Been staking since the launch and the rewards are solid. Happy holder',
  'Great call today, the roadmap of @{handle} looks amazing https://t.co/a1b2c3',
  'Still undervalued if you ask me. Adoption is growing every week 📈',
  'Thanks @{handle} for the quick help, excellent support',
]
const NEGATIVE = [
  'Another exploit? I am losing trust in @{handle}',
  'The vote was a joke, whales decide and the rest of us get dumped on',
  '@{handle} has been down all morning, terrible experience',
  'Selling everything. The token keeps dropping and nobody answers',
  'Feels like a slow rug to be honest. Very disappointed 📉',
  'Fees are insane and the app is useless right now @{handle}',
  'Be careful, there is a scam account that pretends to be @{handle}',
  'I regret buying this, the treasury is wasted on marketing',
]
const NEUTRAL = [
  'Proposal 42 of @{handle} is on the forum, voting opens on Monday',
  'Does anyone know when the next community call of @{handle} takes place?',
  'How do I move my tokens from one wallet to another? cc @{handle}',
  'Snapshot of @{handle} holders is taken at block 19000000 https://t.co/d4e5f6',
  'Reading the docs of @{handle} today',
  '{cashtag} on three chains now, here is the list of contracts',
  'Minutes of the last @{handle} council meeting: https://t.co/g7h8i9',
  'Asked @{handle} about the budget for the next quarter',
]

/** Epoch of the provider's post ids, which contain the time from bit 22 on. */
const ID_EPOCH = 1_288_834_974_657

/**
 * Posts about an account before a time, newest first, every ten minutes to two hours. The sentiment of an account
 * drifts by the day. Some posts are not in English despite the requested language.
 */
export function simulateMentions(key: number, handle: string, before: number, most: number): Post[] {
  const step = (10 + Math.floor(110 * unit(key, -7))) * MINUTE
  const posts: Post[] = []
  for (let index = Math.floor(before / step); posts.length < most; index -= 1) {
    const at = Math.floor((index + 0.9 * unit(key ^ 0x70057, index)) * step)
    if (at >= before) continue
    const id = String((BigInt(at - ID_EPOCH) << 22n) + BigInt(Math.floor(unit(key, index) * 4_194_304)))
    const lang = unit(key ^ 0x1a96, index) < 0.03 ? 'und' : 'en'
    posts.push({ id, at, lang, text: toText(key, handle, index, at) })
  }
  return posts
}

function toText(key: number, handle: string, index: number, at: number): string {
  const drift = noise(key ^ 0x300d, at / (5 * DAY))
  const positive = 0.4 + 0.2 * drift
  const negative = 0.25 - 0.15 * drift
  const chance = unit(key ^ 0xfee1, index)
  const texts = chance < positive ? POSITIVE : chance < positive + negative ? NEGATIVE : NEUTRAL
  const text = texts[Math.floor(unit(key ^ 0x7e87, index) * texts.length)] ?? ''
  return text.replaceAll('{handle}', handle).replace('{cashtag}', `$${handle.slice(0, 4).toUpperCase()}`)
}
