-- Fees and revenue of a DAO's protocols in US dollars, a row per DAO and day. `observed_at` is the last millisecond of the
-- day: the value counts the day up to then. A source may know only one of the two values. Of two rows of one day the row
-- that was collected later stays, whichever is stored last.
CREATE TABLE IF NOT EXISTS dao_fees
(
    dao          UInt64 CODEC(ZSTD(1)),
    observed_at  DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    collected_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    fees_usd     Nullable(Float64) CODEC(ZSTD(1)),
    revenue_usd  Nullable(Float64) CODEC(ZSTD(1))
)
ENGINE = {engine}ReplacingMergeTree(collected_at)
ORDER BY (dao, observed_at)
SETTINGS index_granularity = 1024;

ALTER TABLE dao_fees MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;
