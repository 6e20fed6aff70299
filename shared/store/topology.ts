/**
 * How the schema stands on a ClickHouse cluster. A table `x` of the migration files is there twice: `x_local` on every
 * node holds what the node's shard holds, replicated among the shard's nodes; `x` holds nothing and reads and writes
 * every shard's `x_local`. All SQL says `x`, so that it is the same for one server and for a cluster.
 */
export const toLocal = (table: string): string => `${table}_local`

/** The table that SQL says, of a table that holds rows. */
export const toLogical = (table: string): string => table.replace(/_local$/, '')

/** The clause that makes DDL run on every node; nothing for a single server. */
export const onCluster = (cluster: string | undefined): string =>
  cluster === undefined ? '' : ` ON CLUSTER ${quoteName(cluster)}`

/** A name of ours (an identifier of letters, digits and _) as a string literal. */
export const quoteName = (name: string): string => `'${name}'`

/**
 * The settings of every statement on a cluster.
 * - An insert is done when a majority of each shard's replicas has the rows, in the views' tables too. With two
 *   replicas that is both of them: a node that is down stops writes, which jobs repeat for over an hour, but never
 *   reads. With three, one may be down.
 * - Reads and inserts ask the replicas of a shard in the same order, whichever node the connection reaches. So a job
 *   reads what it wrote, and the API what a commit told of. When a replica is down the next one in the order is asked.
 * - A statement fails when no replica of a shard answers, whatever a server's profile says: an answer is never a part.
 * - A table inside a subquery is read whole, over all shards, once. Rows of one entity are on one shard, so that a
 *   query about one asks only that.
 * - What is computed and inserted in one statement goes through the sharding key, not to the shard that computed it.
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
