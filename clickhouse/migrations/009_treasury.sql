-- What a DAO's treasury holds, a row per DAO and day, so that changes are against the same series and a day collected
-- again replaces itself: the row that was collected later stays, whichever is stored last. From one day to the next most
-- of the list is the same: sorted by DAO the lists lie side by side.
CREATE TABLE IF NOT EXISTS dao_treasuries
(
    dao          UInt64 CODEC(ZSTD(1)),
    observed_at  DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    collected_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    value_usd    Float64 CODEC(FPC(12), ZSTD(1)),
    tokens       Array(Tuple(symbol String, quantity Float64, value_usd Nullable(Float64))) CODEC(ZSTD(3)),
    source       LowCardinality(String)
)
ENGINE = {engine}ReplacingMergeTree(collected_at)
ORDER BY (dao, observed_at)
SETTINGS index_granularity = 256;
