-- Members of DAOs' communities on Telegram, a row per DAO and day, as `discord_members` has them. Nobody asks for the
-- newest day of all DAOs at once, so there is no table of it.
CREATE TABLE IF NOT EXISTS telegram_members
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
