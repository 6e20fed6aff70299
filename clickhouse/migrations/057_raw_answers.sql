-- The bodies of providers' answers, once per hash, without keys. Similar bodies begin alike: sorted by their beginning they are
-- side by side, and the compressor stores little more than their differences. A body over the size limit is omitted, with the
-- reason. If an equal body is received again, the longer retention wins.
CREATE TABLE IF NOT EXISTS raw_answers
(
    beginning  String CODEC(ZSTD(1)),
    hash       String CODEC(ZSTD(1)),
    body       String CODEC(ZSTD(6)),
    bytes      UInt64 CODEC(ZSTD(1)),
    omitted    String CODEC(ZSTD(1)),
    kept_until DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    INDEX by_hash hash TYPE bloom_filter GRANULARITY 1
)
ENGINE = {engine}ReplacingMergeTree(kept_until)
ORDER BY (beginning, hash)
TTL toDateTime(kept_until)
SETTINGS index_granularity = 64, max_compress_block_size = 4194304;

-- The runs of jobs with the answers that they read. A stored row belongs to the run of its dataset with its `collected_at`.
-- `slot_at` and `until_at` are the slot or the range. `payload`, `state` and `outcome` are JSON: what the run was to collect, what
-- it read of the job's state, and which provider's rows were taken for which entities.
CREATE TABLE IF NOT EXISTS raw_runs
(
    dataset      LowCardinality(String),
    job          LowCardinality(String),
    slot_at      DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    until_at     DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    collected_at DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    run          String CODEC(ZSTD(1)),
    payload      String CODEC(ZSTD(3)),
    state        String CODEC(ZSTD(3)),
    outcome      String CODEC(ZSTD(3)),
    decoder      LowCardinality(String),
    answers      Nested
    (
        provider     LowCardinality(String),
        method       LowCardinality(String),
        host         LowCardinality(String),
        path         String,
        query        String,
        sent         String,
        status       UInt16,
        content_type LowCardinality(String),
        received_at  DateTime64(3, 'UTC'),
        attempt      UInt16,
        code         LowCardinality(String),
        reason       String,
        hash         String,
        bytes        UInt64,
        entities     Array(UInt64)
    ),
    kept_until   DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1))
)
ENGINE = {engine}ReplacingMergeTree(kept_until)
ORDER BY (dataset, slot_at, collected_at, run)
TTL toDateTime(kept_until)
SETTINGS index_granularity = 256;

-- Rows that a repeated decoding of stored answers changed, as JSON; null is no row.
CREATE TABLE IF NOT EXISTS corrections
(
    dataset     LowCardinality(String),
    entity      UInt64,
    observed_at DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    stored_at   DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    job         LowCardinality(String),
    before      Nullable(String) CODEC(ZSTD(3)),
    after       Nullable(String) CODEC(ZSTD(3)),
    reason      String CODEC(ZSTD(1))
)
ENGINE = {engine}ReplacingMergeTree
ORDER BY (entity, dataset, observed_at, stored_at);

ALTER TABLE raw_answers MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;
ALTER TABLE raw_runs MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;
ALTER TABLE corrections MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;
