-- What DAOs' accounts on X count, a row per DAO and day. The time is the start of the day that a count was taken on, so
-- that taking it again replaces the row and a series has one point a day: the one that was collected later stays,
-- whichever is stored last.
CREATE TABLE IF NOT EXISTS twitter_counts
(
    dao          UInt64 CODEC(ZSTD(1)),
    observed_at  DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    collected_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    followers    Nullable(UInt64) CODEC(Delta, ZSTD(1)),
    following    Nullable(UInt64) CODEC(Delta, ZSTD(1)),
    tweets       Nullable(UInt64) CODEC(Delta, ZSTD(1))
)
ENGINE = {engine}ReplacingMergeTree(collected_at)
ORDER BY (dao, observed_at)
SETTINGS index_granularity = 1024;

-- The newest day of each DAO.
CREATE TABLE IF NOT EXISTS twitter_counts_latest
(
    dao          UInt64,
    observed_at  DateTime64(3, 'UTC'),
    collected_at DateTime64(3, 'UTC'),
    followers    Nullable(UInt64),
    following    Nullable(UInt64),
    tweets       Nullable(UInt64),
    version      UInt128 MATERIALIZED bitShiftLeft(toUInt128(toUnixTimestamp64Milli(observed_at)), 64) + toUnixTimestamp64Milli(collected_at)
)
ENGINE = {engine}ReplacingMergeTree(version)
ORDER BY dao;

CREATE MATERIALIZED VIEW IF NOT EXISTS twitter_counts_latest_mv TO twitter_counts_latest AS
SELECT dao, observed_at, collected_at, followers, following, tweets
FROM twitter_counts;
