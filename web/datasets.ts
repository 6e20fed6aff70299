/** The titles of the datasets: the API's complete list. */
export const DATASET_TITLES = {
  prices: 'Prices',
  tvl: 'Value locked',
  holders: 'Token holders',
  daos: 'DAO profiles',
  treasury: 'Treasuries',
  fees: 'Fees and revenue',
  'treasury-flows': 'Treasury transfers',
  ratings: 'Ratings',
  'market-cap': 'Total market cap',
  index: 'Index',
  'index-token': 'Index Token',
  governance: 'Snapshot governance',
  governors: 'On-chain governance',
  delegations: 'Delegations of voting power',
  'treasury-value': 'Total treasury value',
  twitter: 'Twitter followers',
  discord: 'Discord members',
  telegram: 'Telegram members',
  'twitter-sentiment': 'Twitter sentiment',
  'dex-trades': 'DEX trades',
} as const

/** Datasets with a record a day that are read every hour, so that a day's record is at most an hour old. */
export const READ_HOURLY: readonly string[] = ['governance', 'governors', 'delegations']
