import { DataError } from '../../shared/errors.ts'

/**
 * Which shard of a cluster a row is on, per table. It depends only on the entity that leads the table's sorting key, so
 * that rows which replace one another are on one shard, where alone they can: what is told of a token, or of a DAO, is
 * together. Small tables are sharded as well instead of being on every node: every table is then written and read in one
 * way, and a node that is down never stops the writes of another shard.
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

/** The tables that have a place on a cluster. */
export const SHARDED: ReadonlyMap<string, string> = new Map(Object.entries(ENTITY))

/**
 * The sharding key of a table as SQL. Hashed, because keys of entities need not be spread evenly.
 * @throws DataError `migration` for a table that has none yet.
 */
export function toShardingKey(table: string): string {
  const column = SHARDED.get(table)
  if (column !== undefined) return `cityHash64(${column})`
  throw new DataError('migration', `${table} has no sharding key: add it to clickhouse/cluster/sharding.ts`)
}
