/**
 * The schema on a ClickHouse cluster. Each table `x` of the migration files exists twice. `x_local` on every node has
 * the rows of the node's shard, replicated within the shard. `x` is a Distributed table over the `x_local` of all
 * shards. All SQL uses `x`, so that the same statements run on one server and on a cluster.
 */
export const toLocal = (table: string): string => `${table}_local`

/** The name that SQL uses, from the name of a table with rows. */
export const toLogical = (table: string): string => table.replace(/_local$/, '')

/** The clause that runs DDL on every node; empty for a single server. */
export const onCluster = (cluster: string | undefined): string =>
  cluster === undefined ? '' : ` ON CLUSTER ${quoteName(cluster)}`

/** The table in an ALTER statement that changes rows: on a cluster, the local tables of every node. */
export const toAltered = (table: string, cluster: string | undefined): string =>
  cluster === undefined ? table : `${toLocal(table)}${onCluster(cluster)}`

/** Quotes one of our identifiers (letters, digits and _) as a string literal. */
export const quoteName = (name: string): string => `'${name}'`

/**
 * The settings of every statement on a cluster.
 * - An insert completes when a majority of each shard's replicas has the rows, including the views' tables. With two
 *   replicas a majority is both: a failed node blocks writes, which jobs retry for over an hour, but never reads. With
 *   three replicas, one may fail.
 * - Reads and inserts try the replicas of a shard in the same order on every node. So a job reads its own writes, and
 * the API reads the rows of a received change event. If a replica fails, the next one in the order is used.
 * - A statement fails if no replica of a shard responds, regardless of the server's profile, so results are never
 * partial.
 * - A table inside a subquery is read once over all shards. Rows of one entity are on one shard, so a query about one
 * entity uses only it.
 * - Rows of INSERT ... SELECT go through the sharding key, not to the shard that computed them.
 */
export const CLUSTER_SETTINGS = {
  distributed_foreground_insert: 1,
  insert_quorum: 'auto',
  insert_quorum_parallel: 1,
  insert_quorum_timeout: 60_000,
  load_balancing: 'in_order',
  prefer_localhost_replica: 0,
  skip_unavailable_shards: 0,
  distributed_product_mode: 'global',
  optimize_skip_unused_shards: 1,
  parallel_distributed_insert_select: 0,
} as const
