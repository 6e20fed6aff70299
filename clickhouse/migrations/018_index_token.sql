-- The Index Token as its chain told of it at one block. `value` (ether) and `total_supply` (tokens) are exact decimals
-- with up to 18 places, which no number type of JSON holds. Of two readings of one block the one that was collected later
-- stays, whichever is stored last: `eth_usd` may differ.
CREATE TABLE IF NOT EXISTS index_token
(
    index_key    UInt64 CODEC(ZSTD(1)),
    created_at   DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    collected_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    block_number UInt64 CODEC(Delta, ZSTD(1)),
    value        String CODEC(ZSTD(1)),
    total_supply String CODEC(ZSTD(1)),
    value_usd    Float64 CODEC(ZSTD(1)),
    eth_usd      Float64 CODEC(ZSTD(1)),
    eth_source   LowCardinality(String)
)
ENGINE = {engine}ReplacingMergeTree(collected_at)
ORDER BY (index_key, created_at)
SETTINGS index_granularity = 1024;
