-- Members of DAOs' communities on Discord, a row per DAO and day, as `twitter_counts` has them. The networks are stored
-- apart: each comes from a provider of its own, at its own time, and may fail without the others.
CREATE TABLE IF NOT EXISTS discord_members
(
    dao            UInt64 CODEC(ZSTD(1)),
    observed_at    DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    collected_at   DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    active_members Nullable(UInt64) CODEC(Delta, ZSTD(1)),
    total_members  Nullable(UInt64) CODEC(Delta, ZSTD(1))
)
ENGINE = {engine}ReplacingMergeTree(collected_at)
ORDER BY (dao, observed_at)
SETTINGS index_granularity = 1024;

-- The newest day of each DAO.
CREATE TABLE IF NOT EXISTS discord_members_latest
(
    dao            UInt64,
    observed_at    DateTime64(3, 'UTC'),
    collected_at   DateTime64(3, 'UTC'),
    active_members Nullable(UInt64),
    total_members  Nullable(UInt64),
    version        UInt128 MATERIALIZED bitShiftLeft(toUInt128(toUnixTimestamp64Milli(observed_at)), 64) + toUnixTimestamp64Milli(collected_at)
)
ENGINE = {engine}ReplacingMergeTree(version)
ORDER BY dao;

CREATE MATERIALIZED VIEW IF NOT EXISTS discord_members_latest_mv TO discord_members_latest AS
SELECT dao, observed_at, collected_at, active_members, total_members
FROM discord_members;
