import { z } from 'zod'

/** Lower-case words joined by hyphens. A slug is a record's natural key and may occur in URLs. */
export const slug = z
  .string()
  .regex(/^[a-z0-9]+(-[a-z0-9]+)*$/, 'must be lower-case letters and digits joined by single hyphens')

const text = z.string().refine((value) => value === value.trim(), 'must not begin or end with blanks')
export const name = text.min(1, 'must not be empty')
const externalId = z.string().regex(/^\S+$/, 'must be a non-empty text without blanks')
const link = z.url({ protocol: /^https?$/, error: 'must be an http or https URL' })
const secureLink = z.url({ protocol: /^https$/, error: 'must be an https URL' })
const twitterLink = z
  .string()
  .regex(
    /^https:\/\/(twitter|x)\.com\/[A-Za-z0-9_]{1,15}$/,
    'must be https://twitter.com/<handle> or https://x.com/<handle>',
  )
const telegramLink = z.string().regex(/^https:\/\/t\.me\/\S+$/, 'must be https://t.me/<name>')
const digits = z.string().regex(/^[1-9][0-9]*$/, 'must be a positive whole number, written as a text')

/** The first UTC day after the end, and the reason. */
const ended = z.strictObject({ at: z.iso.date('must be an ISO date'), reason: name })

/**
 * The event format of a governor: Compound's first or second contract, OpenZeppelin's, forks of these, Aragon's voting
 * app, or the governance of Aave or Tornado Cash.
 */
export const GOVERNOR_FAMILIES = [
  'alpha',
  'bravo',
  'openzeppelin',
  'agora',
  'nouns',
  'venus',
  'aragon',
  'aave-v2',
  'aave-v3',
  'tornado',
] as const

/** The unit of a governor's clock. Rounds are defined by its protocol and cannot be converted to times. */
export const GOVERNOR_CLOCKS = ['blocks', 'seconds', 'rounds'] as const

/**
 * How a governor counts a vote with parameters, as its `COUNTING_MODE()` states. `fractional` has `params=fractional`:
 * the parameters divide the voter's power among the choices. `plain` ignores parameters, because every voter may set
 * them.
 */
export const GOVERNOR_COUNTINGS = ['plain', 'fractional'] as const

/** The votes that count towards a governor's quorum. */
export const GOVERNOR_COUNTED = ['for', 'for+abstain', 'all', 'larger+abstain'] as const

/**
 * How a governor's quorum changes: \`live\` until the end of the vote; \`setting\` is one value for all proposals,
 * which its owners may change, so that a past value is known only to a node with the state of that time.
 */
export const GOVERNOR_QUORUMS = ['live', 'setting'] as const

const seconds = z.int().positive()
/**
 * A timelock like Compound's, which no event of its governor names. `graceSeconds` is its `GRACE_PERIOD` if that is not 14
 * days.
 */
const timelock = z.strictObject({ address: externalId, graceSeconds: seconds.optional() })
const fromBlock = z.int().nonnegative()

/**
 * A contract that a DAO votes on. `fromBlock` is a block before or at its creation. `decimals` are those of the voting
 * token, by default of the DAO's token. By default the clock counts blocks, or seconds if its numbers are that large.
 * `votingSeconds` is the length of a vote on a contract whose events have no end, or each length and the first block of
 * votes with it, the oldest first. `votesOn` is the governor with the proposals, as `<chain>/<address>`, if the
 * contract only has the votes. `timelocks` lists the present and former timelocks of its proposals. `counting` is
 * `plain` by default. `counted` lists the votes that count towards the quorum; by default those of the family, or those
 * that the contract states. The defaults are not added to the record, because processes of an earlier version refuse
 * unknown members.
 */
const governor = z.strictObject({
  chain: slug,
  address: externalId,
  family: z.enum(GOVERNOR_FAMILIES),
  counting: z.enum(GOVERNOR_COUNTINGS).optional(),
  counted: z.enum(GOVERNOR_COUNTED).optional(),
  quorum: z.enum(GOVERNOR_QUORUMS).optional(),
  decimals: z.int().min(0).max(77).optional(),
  clock: z.enum(GOVERNOR_CLOCKS).optional(),
  votingSeconds: z.union([seconds, z.array(z.strictObject({ fromBlock, seconds })).min(1)]).optional(),
  votesOn: name.optional(),
  timelocks: z.array(timelock).min(1).optional(),
  fromBlock,
})

/** The events of a contract with delegations: those of Compound's and OpenZeppelin's votes, or of Venus' vault. */
export const VOTING_TOKEN_FAMILIES = ['votes', 'xvs-vault'] as const

/**
 * The contract with the delegations that the governors count: the token, or a vault of staked tokens. `fromBlock` and
 * `decimals` are like those of a governor. `quorums` are the whole tokens that a proposal needs, if they are a constant of
 * the governors' code, from a day on, the oldest first; null if the governor of that time computes them.
 */
const votingToken = z.strictObject({
  chain: slug,
  address: externalId,
  family: z.enum(VOTING_TOKEN_FAMILIES).default('votes'),
  decimals: z.int().min(0).max(77).optional(),
  quorums: z
    .array(z.strictObject({ from: z.iso.date('must be an ISO date'), power: z.number().positive().nullable() }))
    .default([]),
  fromBlock,
})

/** `checkReferences` validates the format, because it knows the chains. */
const address = externalId

/**
 * The role of an address of a DAO: a `wallet` of the treasury, a contract that collects its `revenue`, or a `payee`
 * with a separate budget.
 */
export const TREASURY_ROLES = ['wallet', 'revenue', 'payee'] as const

/**
 * An address with holdings of a DAO. An address without a role is a wallet. Transfers between wallets are internal from
 * the day `since` of each, by default always. Defaults are not added to the record, because processes of an earlier
 * version refuse unknown members.
 */
const treasury = z.strictObject({
  chain: slug,
  address,
  role: z.enum(TREASURY_ROLES).optional(),
  since: z.iso.date('must be an ISO date').optional(),
})

/**
 * Names and symbols that a token or DAO had before, or that were merged into it, the latest first. A token that was
 * exchanged for another one is a separate record with `ended.successor`.
 */
const formerNames = z.array(name).default([])

/** A record of categories.json. */
export const categoryRecord = z.strictObject({ slug, name })

/**
 * A record of chains.json. `chainId` is the EIP-155 number, null if the chain has none. `stablecoins` lists the tokens
 * that count as currency in treasuries, because a price does not reveal a token's purpose. Interest-bearing shares are
 * not stablecoins.
 */
export const chainRecord = z.strictObject({
  slug,
  name,
  chainId: z.int().positive().nullable(),
  evm: z.boolean(),
  stablecoins: z.array(z.strictObject({ symbol: name, address })).default([]),
})

/**
 * A record of tokens.json. `dao` is the slug of the DAO that the token governs. `primary` marks the token that stands
 * for its DAO if several tokens name that DAO. `livePrice` defaults to the value derived from `live` and the
 * market-data ids. A token that was exchanged for another one names it as `successor`, written `<chain>/<address>`.
 */
export const tokenRecord = z.strictObject({
  symbol: name,
  name,
  formerNames,
  chain: slug,
  contractAddress: address,
  decimals: z.int('must be a whole number').min(0, 'must be at least 0').max(77, 'must be at most 77'),
  dao: slug,
  cmcId: digits.nullable().default(null),
  coingeckoId: externalId.nullable().default(null),
  ended: ended.extend({ successor: name.optional() }).nullable().default(null),
  live: z.boolean(),
  livePrice: z.boolean().optional(),
  primary: z.boolean().default(false),
})

/**
 * A record of daos.json. Unknown text is an empty string, an unknown link or id null (docs/contract.md, section 4). The
 * token of a DAO is the record of tokens.json that names the DAO.
 */
export const daoRecord = z.strictObject({
  slug,
  name,
  formerNames,
  image: secureLink.nullable().default(null),
  categories: z.array(slug).default([]),
  chains: z.array(slug).default([]),
  mission: text.default(''),
  description: text.default(''),
  website: link.nullable().default(null),
  twitter: twitterLink.nullable().default(null),
  discord: link.nullable().default(null),
  telegram: telegramLink.nullable().default(null),
  whitepaper: link.nullable().default(null),
  tokenomics: link.nullable().default(null),
  twitterId: digits.nullable().default(null),
  snapshotSpace: externalId.nullable().default(null),
  formerSnapshotSpaces: z.array(externalId).default([]),
  governors: z.array(governor).default([]),
  votingToken: votingToken.nullable().default(null),
  defillama: externalId.nullable().default(null),
  defillamaSlug: externalId.nullable().default(null),
  treasuries: z.array(treasury).default([]),
  ended: ended.nullable().default(null),
  live: z.boolean(),
  verified: z.boolean(),
  isOtc: z.boolean(),
})

export type CategoryRecord = z.infer<typeof categoryRecord>
export type ChainRecord = z.infer<typeof chainRecord>
export type TokenRecord = z.infer<typeof tokenRecord>
export type DaoRecord = z.infer<typeof daoRecord>
