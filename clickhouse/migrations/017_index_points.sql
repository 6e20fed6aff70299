-- The index: what its basket is worth in each 5-minute slot, computed from the stored prices; `observed_at` is the time of
-- the newest of them. A computation inserts only what differs from what is stored, so that repeating it changes nothing.
-- `computed_at` is the time before prices were read: of two computations at once the one that saw more wins, whichever is
-- stored first. `is_retracted` takes back a point that no longer follows from the prices and the compositions: FINAL
-- leaves it out.
CREATE TABLE IF NOT EXISTS index_points
(
    index_key    UInt64 CODEC(ZSTD(1)),
    created_at   DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    observed_at  DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    value_usd    Float64 CODEC(FPC(12), ZSTD(1)),
    composition  LowCardinality(String),
    is_retracted UInt8 CODEC(ZSTD(1)),
    computed_at  DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1))
)
ENGINE = {engine}ReplacingMergeTree(computed_at, is_retracted)
PARTITION BY toYear(created_at)
ORDER BY (index_key, created_at)
SETTINGS index_granularity = 1024;
