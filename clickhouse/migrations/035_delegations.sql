-- Delegated voting power of the tokens that governors count. Jobs insert once, into a table that stores nothing. An event is
-- identified by its block and its place there, so the same log read again replaces itself. Powers are integers in base units.
CREATE TABLE IF NOT EXISTS delegations_in
(
    dao            UInt64,
    space          String,
    kind           LowCardinality(String),
    at             DateTime64(3, 'UTC'),
    block_number   UInt64,
    log_index      UInt32,
    tx             String,
    delegate       String,
    previous       UInt256,
    power          UInt256,
    decimals       UInt8,
    cause          LowCardinality(String),
    delegator      String,
    from_delegate  String,
    to_delegate    String,
    collected_at   DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC')
)
ENGINE = Null;

-- Every change of a delegate's power, in the order of the chain.
CREATE TABLE IF NOT EXISTS delegate_powers
(
    dao          UInt64 CODEC(ZSTD(1)),
    space        LowCardinality(String),
    delegate     String CODEC(ZSTD(3)),
    block_number UInt64 CODEC(Delta, ZSTD(1)),
    log_index    UInt32 CODEC(ZSTD(1)),
    at           DateTime('UTC') CODEC(Delta, ZSTD(1)),
    previous     UInt256 CODEC(ZSTD(1)),
    power        UInt256 CODEC(ZSTD(1)),
    decimals     UInt8 CODEC(ZSTD(1)),
    cause        LowCardinality(String),
    tx           String CODEC(ZSTD(1)),
    collected_at DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1))
)
ENGINE = {engine}ReplacingMergeTree(collected_at)
ORDER BY (dao, space, delegate, block_number, log_index)
SETTINGS index_granularity = 1024;

CREATE MATERIALIZED VIEW IF NOT EXISTS delegate_powers_mv TO delegate_powers AS
SELECT dao, space, delegate, block_number, log_index, toDateTime(at, 'UTC') AS at, previous, power, decimals, cause, tx, collected_at
FROM delegations_in
WHERE kind = 'power';

-- The newest power of each delegate, and when it first had any. Events have an order: the block, and the place in it.
CREATE TABLE IF NOT EXISTS delegate_powers_latest
(
    dao        UInt64,
    space      LowCardinality(String),
    delegate   String,
    first_at   SimpleAggregateFunction(min, DateTime('UTC')),
    last_power AggregateFunction(argMax, UInt256, Tuple(UInt64, UInt32)),
    decimals   SimpleAggregateFunction(max, UInt8)
)
ENGINE = {engine}AggregatingMergeTree
ORDER BY (dao, space, delegate);

CREATE MATERIALIZED VIEW IF NOT EXISTS delegate_powers_latest_mv TO delegate_powers_latest AS
SELECT dao, space, delegate, min(toDateTime(at, 'UTC')) AS first_at, argMaxState(power, (block_number, log_index)) AS last_power,
  max(decimals) AS decimals
FROM delegations_in
WHERE kind = 'power'
GROUP BY dao, space, delegate;

-- Every change of a delegation, in order of time.
CREATE TABLE IF NOT EXISTS delegation_events
(
    dao           UInt64 CODEC(ZSTD(1)),
    at            DateTime('UTC') CODEC(Delta, ZSTD(1)),
    block_number  UInt64 CODEC(Delta, ZSTD(1)),
    log_index     UInt32 CODEC(ZSTD(1)),
    space         LowCardinality(String),
    delegator     String CODEC(ZSTD(3)),
    from_delegate String CODEC(ZSTD(3)),
    to_delegate   String CODEC(ZSTD(3)),
    tx            String CODEC(ZSTD(1)),
    collected_at  DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1))
)
ENGINE = {engine}ReplacingMergeTree(collected_at)
ORDER BY (dao, at, block_number, log_index, space);

CREATE MATERIALIZED VIEW IF NOT EXISTS delegation_events_mv TO delegation_events AS
SELECT dao, toDateTime(at, 'UTC') AS at, block_number, log_index, space, delegator, from_delegate, to_delegate, tx, collected_at
FROM delegations_in
WHERE kind = 'delegation';

-- When a token was last read to its newest final block. Before the first time its powers are incomplete.
CREATE TABLE IF NOT EXISTS delegation_readings
(
    dao     UInt64,
    space   String,
    read_at DateTime64(3, 'UTC')
)
ENGINE = {engine}ReplacingMergeTree(read_at)
ORDER BY (dao, space);

CREATE MATERIALIZED VIEW IF NOT EXISTS delegation_readings_mv TO delegation_readings AS
SELECT dao, space, at AS read_at
FROM delegations_in
WHERE kind = 'reading';

ALTER TABLE delegate_powers MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;
ALTER TABLE delegate_powers_latest MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;
ALTER TABLE delegation_events MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;
ALTER TABLE delegation_readings MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;
