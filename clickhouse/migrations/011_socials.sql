-- What DAOs' accounts and communities count, a row per DAO and day. The three networks are stored apart: each comes from
-- a provider of its own, at its own time, and may fail without the others. The time is the start of the day that a count
-- was taken on, so that taking it again replaces the row and a series has one point a day.
CREATE TABLE IF NOT EXISTS twitter_counts
(
    dao         UInt64 CODEC(ZSTD(1)),
    observed_at DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    followers   Nullable(UInt64) CODEC(Delta, ZSTD(1)),
    following   Nullable(UInt64) CODEC(Delta, ZSTD(1)),
    tweets      Nullable(UInt64) CODEC(Delta, ZSTD(1))
)
ENGINE = {engine}ReplacingMergeTree
ORDER BY (dao, observed_at)
SETTINGS index_granularity = 1024;

CREATE TABLE IF NOT EXISTS discord_members
(
    dao            UInt64 CODEC(ZSTD(1)),
    observed_at    DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    active_members Nullable(UInt64) CODEC(Delta, ZSTD(1)),
    total_members  Nullable(UInt64) CODEC(Delta, ZSTD(1))
)
ENGINE = {engine}ReplacingMergeTree
ORDER BY (dao, observed_at)
SETTINGS index_granularity = 1024;

CREATE TABLE IF NOT EXISTS telegram_members
(
    dao            UInt64 CODEC(ZSTD(1)),
    observed_at    DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    active_members Nullable(UInt64) CODEC(Delta, ZSTD(1)),
    total_members  Nullable(UInt64) CODEC(Delta, ZSTD(1))
)
ENGINE = {engine}ReplacingMergeTree
ORDER BY (dao, observed_at)
SETTINGS index_granularity = 1024;
