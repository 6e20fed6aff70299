import type { DailySeries } from '../../shared/datasets/define-series.ts'
import { discordSeries } from '../../shared/datasets/discord.ts'
import { feesSeries } from '../../shared/datasets/fees.ts'
import { holdersSeries } from '../../shared/datasets/holders.ts'
import type { datasets } from '../../shared/datasets/list.ts'
import { marketCapSeries } from '../../shared/datasets/market-cap.ts'
import { telegramSeries } from '../../shared/datasets/telegram.ts'
import { IS_WHOLE, treasurySeries } from '../../shared/datasets/treasury.ts'
import { treasuryValueSeries } from '../../shared/datasets/treasury-value.ts'
import { twitterSeries } from '../../shared/datasets/twitter.ts'

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
/** A value of a declared series, by the column that has it. */
function watchSeries<About extends Subject>(
  { dataset, about, columns, values }: DailySeries,
  {
    of,
    column,
    ...own
  }: Pick<Series, 'label' | 'request' | 'where' | 'isList'> & { readonly of: About; readonly column: string },
): Series & { readonly of: About } {
  const { table, time, entity } = dataset.series
  const value = values[column]
  if (value === undefined || (about ?? 'none') !== of)
    throw new Error(`${dataset.name}: there is no value ${column} of a ${of}`)
  const unit = columns.find(({ name }) => name === column)?.unit === 'USD' ? 'USD' : ''
  return { ...own, of, dataset: dataset.name, table, time, value, unit, ...(entity === undefined ? {} : { entity }) }
}

/** The series by the name that rules use. */
export const SERIES = {
  price: { ...prices, label: 'Price', value: 'price' },
  marketCap: { ...prices, label: 'Market cap', value: 'market_cap' },
  volume24h: { ...prices, label: 'Volume over 24 hours', value: 'volume_24h' },
  holders: watchSeries(holdersSeries, {
    of: 'token',
    column: 'total_holders',
    label: 'Holders',
    // The series has the first value of a day only.
    request: '/data/tokens/holders',
    isList: true,
  }),
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
  treasury: watchSeries(treasurySeries, {
    of: 'dao',
    column: 'value_usd',
    label: 'Treasury',
    request: '/data/daos/treasury/historic',
    // A part of a treasury is not its value.
    where: IS_WHOLE,
  }),
  fees: watchSeries(feesSeries, {
    of: 'dao',
    column: 'fees_usd',
    label: 'Fees of a day',
    request: '/data/daos/fees/historic',
  }),
  revenue: watchSeries(feesSeries, {
    of: 'dao',
    column: 'revenue_usd',
    label: 'Revenue of a day',
    request: '/data/daos/fees/historic',
  }),
  twitterFollowers: watchSeries(twitterSeries, {
    of: 'dao',
    column: 'followers',
    label: 'Followers on X',
    request: '/data/daos/socials/historic-twitter',
  }),
  discordMembers: watchSeries(discordSeries, {
    of: 'dao',
    column: 'total_members',
    label: 'Members on Discord',
    request: '/data/daos/socials/historic-discord',
  }),
  telegramMembers: watchSeries(telegramSeries, {
    of: 'dao',
    column: 'total_members',
    label: 'Members on Telegram',
    request: '/data/daos/socials/historic-telegram',
  }),
  totalMarketCap: watchSeries(marketCapSeries, {
    of: 'none',
    column: 'value_usd',
    label: 'Market cap of all tokens',
    request: '/data/aggregated/market-cap',
    where: 'withdrawn = 0',
  }),
  totalTreasury: watchSeries(treasuryValueSeries, {
    of: 'none',
    column: 'value_usd',
    label: 'Treasuries of all DAOs',
    request: '/data/aggregated/treasury-value',
    where: 'withdrawn = 0',
  }),
  index: {
    of: 'none',
    value: 'value_usd',
    unit: 'USD',
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
  readonly title: string
  /** A filter, as an example in the form that writes rules. */
  readonly example: string
}

/** The list routes by path, each with the datasets whose change events trigger the evaluation. */
export const LISTS = {
  '/data/tokens': {
    of: 'token',
    datasets: ['prices', 'tvl'],
    title: 'Tokens',
    example: 'financialData.marketCap>=1000000000',
  },
  '/data/tokens/holders': {
    of: 'token',
    datasets: ['holders', 'prices'],
    title: 'Token holders',
    example: 'holdersData.totalHolders>=100000',
  },
  '/data/tokens/dex-data': {
    of: 'token',
    datasets: ['dex-trades', 'prices'],
    title: 'DEX trades',
    example: 'dexData.inflow.amountUsd24h>=1000000',
  },
  '/data/daos': { of: 'dao', datasets: ['daos', 'prices', 'twitter'], title: 'DAOs', example: 'verified=true' },
  '/data/daos/treasury': {
    of: 'dao',
    datasets: ['treasury', 'prices'],
    title: 'Treasuries',
    example: 'treasuryData.valueUsd>=1000000000',
  },
  '/data/daos/fees': { of: 'dao', datasets: ['fees', 'prices'], title: 'Fees', example: 'feesData.fees24h>=1000000' },
  '/data/daos/ratings': {
    of: 'dao',
    datasets: ['ratings', 'prices'],
    title: 'Ratings',
    example: 'ratings.overallRating>=4',
  },
  '/data/daos/socials': {
    of: 'dao',
    datasets: ['twitter', 'discord', 'daos', 'prices'],
    title: 'Communities',
    example: 'twitterData.followers>=100000',
  },
  '/data/daos/twitter-sentiment': {
    of: 'dao',
    datasets: ['twitter-sentiment', 'prices'],
    title: 'Sentiment of posts',
    example: 'twitterSentiment.negative>=0.5',
  },
  '/data/daos/governance/summary': {
    of: 'dao',
    datasets: ['governance', 'governors', 'prices'],
    title: 'Governance',
    example: 'activeProposals>=1',
  },
} as const satisfies Readonly<Record<string, WatchedList>>

export type ListPath = keyof typeof LISTS
export const LIST_PATHS = Object.keys(LISTS) as [ListPath, ...ListPath[]]
