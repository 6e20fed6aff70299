-- Total value locked per DAO, in USD, as the sum over its protocols at one time.
CREATE TABLE IF NOT EXISTS protocol_tvl
(
    dao         UInt64 CODEC(ZSTD(1)),
    observed_at DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    tvl_usd     Float64 CODEC(FPC(12), ZSTD(1))
)
ENGINE = {engine}ReplacingMergeTree
ORDER BY (dao, observed_at);
