-- Total value locked per DAO, in USD, as the sum over its protocols at one time. Of two rows of one time the one that was
-- collected later stays, whichever is stored last.
CREATE TABLE IF NOT EXISTS protocol_tvl
(
    dao          UInt64 CODEC(ZSTD(1)),
    observed_at  DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    collected_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    tvl_usd      Float64 CODEC(FPC(12), ZSTD(1))
)
ENGINE = {engine}ReplacingMergeTree(collected_at)
ORDER BY (dao, observed_at);

-- The newest value of each DAO: the latest time, and of that what was collected last.
CREATE TABLE IF NOT EXISTS protocol_tvl_latest
(
    dao          UInt64,
    observed_at  DateTime64(3, 'UTC'),
    collected_at DateTime64(3, 'UTC'),
    tvl_usd      Float64,
    version      UInt128 MATERIALIZED bitShiftLeft(toUInt128(toUnixTimestamp64Milli(observed_at)), 64) + toUnixTimestamp64Milli(collected_at)
)
ENGINE = {engine}ReplacingMergeTree(version)
ORDER BY dao;

CREATE MATERIALIZED VIEW IF NOT EXISTS protocol_tvl_latest_mv TO protocol_tvl_latest AS
SELECT dao, observed_at, collected_at, tvl_usd
FROM protocol_tvl;
