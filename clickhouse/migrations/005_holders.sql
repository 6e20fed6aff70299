-- Who holds a token. Every snapshot is kept under its slot, so an insert may be repeated and the same slot collected
-- again replaces itself: the row that was collected later stays, whichever is stored last. Of one snapshot to the next
-- most holders are the same: sorted by token they lie side by side, and a compressor with a window that spans both stores
-- little more than the differences.
CREATE TABLE IF NOT EXISTS token_holders
(
    token         UInt64 CODEC(ZSTD(1)),
    observed_at   DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    collected_at  DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    total_holders UInt64 CODEC(Delta, ZSTD(1)),
    top100_share  Float64 CODEC(ZSTD(1)),
    holders       Array(Tuple(address String, amount Float64, amount_usd Nullable(Float64), share Float64)) CODEC(ZSTD(3))
)
ENGINE = {engine}ReplacingMergeTree(collected_at)
PARTITION BY toYear(observed_at)
ORDER BY (token, observed_at)
SETTINGS index_granularity = 256;

-- The newest snapshot of each token, so that serving it reads a row per token however long the history grows.
CREATE TABLE IF NOT EXISTS token_holders_latest
(
    token         UInt64 CODEC(ZSTD(1)),
    observed_at   DateTime64(3, 'UTC'),
    collected_at  DateTime64(3, 'UTC'),
    total_holders UInt64 CODEC(ZSTD(1)),
    top100_share  Float64 CODEC(ZSTD(1)),
    holders       Array(Tuple(address String, amount Float64, amount_usd Nullable(Float64), share Float64)) CODEC(ZSTD(1)),
    version       UInt128 MATERIALIZED bitShiftLeft(toUInt128(toUnixTimestamp64Milli(observed_at)), 64) + toUnixTimestamp64Milli(collected_at)
)
ENGINE = {engine}ReplacingMergeTree(version)
ORDER BY token;

CREATE MATERIALIZED VIEW IF NOT EXISTS token_holders_latest_mv TO token_holders_latest AS
SELECT token, observed_at, collected_at, total_holders, top100_share, holders
FROM token_holders;
