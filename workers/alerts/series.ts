import type { datasets } from '../../shared/datasets/list.ts'
import { IS_WHOLE } from '../../shared/datasets/treasury.ts'

export type DatasetName = (typeof datasets)[number]['name']

/** The kind of entity that a rule is about; `none` for values of all entities together. */
export type Subject = 'token' | 'dao' | 'none'

/** A stored series that rules can watch. */
export interface Series {
  readonly label: string
  /** Change events of this dataset trigger the evaluation. */
  readonly dataset: DatasetName
  readonly of: Subject
  readonly table: string
  /** The column with the entity's key; undefined for a series without entities. */
  readonly entity?: string
  readonly time: string
  /** SQL of the value; null is unknown. */
  readonly value: string
  /** A condition on the rows of the table. */
  readonly where?: string
  /** A table with the newest row of each entity, if there is one. */
  readonly newest?: string
  readonly unit: 'USD' | ''
  /** The path of the route that serves the series, without its selection. */
  readonly request: string
  /** The shortest interval of the route, if it has no default. */
  readonly interval?: '5m'
  /** The route is a list of tokens, with the newest value, or that as of a time. A DAO has that of its token. */
  readonly isList?: boolean
}

const ofToken = { of: 'token', entity: 'token' } as const
const ofDao = { of: 'dao', entity: 'dao' } as const
const prices = {
  ...ofToken,
  dataset: 'prices',
  table: 'token_prices',
  time: 'observed_at',
  newest: 'token_quotes',
  request: '/data/tokens/historic-financial',
  interval: '5m',
  unit: 'USD',
} as const
const members = { ...ofDao, time: 'observed_at', unit: '' } as const
const sums = { of: 'none', time: 'recorded_at', value: 'value_usd', where: 'withdrawn = 0', unit: 'USD' } as const

/** The series by the name that rules use. */
export const SERIES = {
  price: { ...prices, label: 'Price', value: 'price' },
  marketCap: { ...prices, label: 'Market cap', value: 'market_cap' },
  volume24h: { ...prices, label: 'Volume over 24 hours', value: 'volume_24h' },
  holders: {
    ...ofToken,
    label: 'Holders',
    dataset: 'holders',
    table: 'token_holders',
    time: 'observed_at',
    value: 'total_holders',
    unit: '',
    // The series has the first value of a day only.
    request: '/data/tokens/holders',
    isList: true,
  },
  tvl: {
    ...ofDao,
    label: 'Value locked',
    dataset: 'tvl',
    table: 'protocol_tvl',
    time: 'observed_at',
    value: 'tvl_usd',
    unit: 'USD',
    request: '/data/tokens',
    isList: true,
  },
  treasury: {
    ...ofDao,
    label: 'Treasury',
    dataset: 'treasury',
    table: 'dao_treasuries',
    time: 'observed_at',
    value: 'value_usd',
    // A part of a treasury is not its value.
    where: IS_WHOLE,
    unit: 'USD',
    request: '/data/daos/treasury/historic',
  },
  fees: {
    ...ofDao,
    label: 'Fees of a day',
    dataset: 'fees',
    table: 'dao_fees',
    time: 'observed_at',
    value: 'fees_usd',
    unit: 'USD',
    request: '/data/daos/fees/historic',
  },
  revenue: {
    ...ofDao,
    label: 'Revenue of a day',
    dataset: 'fees',
    table: 'dao_fees',
    time: 'observed_at',
    value: 'revenue_usd',
    unit: 'USD',
    request: '/data/daos/fees/historic',
  },
  twitterFollowers: {
    ...members,
    label: 'Followers on X',
    dataset: 'twitter',
    table: 'twitter_counts',
    value: 'followers',
    request: '/data/daos/socials/historic-twitter',
  },
  discordMembers: {
    ...members,
    label: 'Members on Discord',
    dataset: 'discord',
    table: 'discord_members',
    value: 'total_members',
    request: '/data/daos/socials/historic-discord',
  },
  telegramMembers: {
    ...members,
    label: 'Members on Telegram',
    dataset: 'telegram',
    table: 'telegram_members',
    value: 'total_members',
    request: '/data/daos/socials/historic-telegram',
  },
  totalMarketCap: {
    ...sums,
    label: 'Market cap of all tokens',
    dataset: 'market-cap',
    table: 'market_caps',
    request: '/data/aggregated/market-cap',
  },
  totalTreasury: {
    ...sums,
    label: 'Treasuries of all DAOs',
    dataset: 'treasury-value',
    table: 'treasury_values',
    request: '/data/aggregated/treasury-value',
  },
  index: {
    ...sums,
    label: 'Index',
    dataset: 'index',
    table: 'index_points',
    time: 'observed_at',
    where: 'is_retracted = 0',
    request: '/data/index/historic',
  },
} as const satisfies Readonly<Record<string, Series>>

export type SeriesName = keyof typeof SERIES
export const SERIES_NAMES = Object.keys(SERIES) as [SeriesName, ...SeriesName[]]

/** A list route that rules can watch with its `filter` parameter. */
export interface WatchedList {
  readonly of: Subject
  readonly datasets: readonly DatasetName[]
}

/** The list routes by path, each with the datasets whose change events trigger the evaluation. */
export const LISTS = {
  '/data/tokens': { of: 'token', datasets: ['prices', 'tvl'] },
  '/data/tokens/holders': { of: 'token', datasets: ['holders', 'prices'] },
  '/data/tokens/dex-data': { of: 'token', datasets: ['dex-trades', 'prices'] },
  '/data/daos': { of: 'dao', datasets: ['daos', 'prices', 'twitter'] },
  '/data/daos/treasury': { of: 'dao', datasets: ['treasury', 'prices'] },
  '/data/daos/fees': { of: 'dao', datasets: ['fees', 'prices'] },
  '/data/daos/ratings': { of: 'dao', datasets: ['ratings', 'prices'] },
  '/data/daos/socials': { of: 'dao', datasets: ['twitter', 'discord', 'daos', 'prices'] },
  '/data/daos/twitter-sentiment': { of: 'dao', datasets: ['twitter-sentiment', 'prices'] },
  '/data/daos/governance/summary': { of: 'dao', datasets: ['governance', 'governors', 'prices'] },
} as const satisfies Readonly<Record<string, WatchedList>>

export type ListPath = keyof typeof LISTS
export const LIST_PATHS = Object.keys(LISTS) as [ListPath, ...ListPath[]]
