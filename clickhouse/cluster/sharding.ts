import { DataError } from '../../shared/errors.ts'

/**
 * The sharding column of each table. It is the entity at the start of the table's sorting key. So rows that replace one
 * another are on one shard, as replacing requires, and the data of a token or DAO is on one shard. Small tables are
 * sharded too, so that all tables are read and written in one way, and a failed node never blocks writes to another
 * shard.
 */
const ENTITY = {
  tokens: 'key',
  token_quotes_in: 'token',
  token_prices: 'token',
  token_quotes: 'token',
  token_price_rollups: 'token',
  protocol_tvl: 'dao',
  protocol_tvl_latest: 'dao',
  job_state: 'job',
  token_holders: 'token',
  token_holders_latest: 'token',
  dex_trades: 'token',
  dex_trade_days: 'token',
  dex_trade_parties: 'token',
  dex_data: 'token',
  daos: 'key',
  dao_links: 'dao',
  governance_in: 'dao',
  dao_votes: 'dao',
  dao_cast_votes: 'dao',
  dao_proposals: 'dao',
  dao_proposal_details: 'dao',
  governance_readings: 'dao',
  governance_sweeps: 'dao',
  governors_in: 'dao',
  governor_events: 'dao',
  governor_readings: 'dao',
  dao_treasuries: 'dao',
  dao_fees: 'dao',
  dao_ratings: 'dao',
  dao_ratings_latest: 'dao',
  twitter_counts: 'dao',
  twitter_counts_latest: 'dao',
  discord_members: 'dao',
  discord_members_latest: 'dao',
  telegram_members: 'dao',
  twitter_sentiment: 'dao',
  twitter_sentiment_latest: 'dao',
  market_caps: 'recorded_at',
  treasury_values: 'recorded_at',
  index_points: 'index_key',
  index_token: 'index_key',
  coverage_in: 'entity',
  coverage: 'entity',
  coverage_notes: 'entity',
  history_changes: 'entity',
  coverage_wanted: 'dataset',
  computations: 'dataset',
  registry_records: 'version',
  registry_versions: 'version',
  migrations: 'name',
} as const satisfies Readonly<Record<string, string>>

/** The tables with a sharding column. */
export const SHARDED: ReadonlyMap<string, string> = new Map(Object.entries(ENTITY))

/**
 * The sharding key of a table as SQL. Hashed, because entity keys may be distributed unevenly.
 * @throws DataError `migration` for a table without a sharding column.
 */
export function toShardingKey(table: string): string {
  const column = SHARDED.get(table)
  if (column !== undefined) return `cityHash64(${column})`
  throw new DataError('migration', `${table} has no sharding key: add it to clickhouse/cluster/sharding.ts`)
}
