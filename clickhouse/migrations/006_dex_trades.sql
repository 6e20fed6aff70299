-- Trades on decentralized exchanges, seen from the trader. The natural key is the log of one swap; a swap between two
-- tokens of the registry is a trade of each. Hashes and addresses are kept as the text that is served: packed as
-- FixedString a row takes 71 bytes instead of 75, which does not pay for a second table and its view.
CREATE TABLE IF NOT EXISTS dex_trades
(
    token            UInt64 CODEC(ZSTD(1)),
    traded_at        DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    transaction_hash String CODEC(ZSTD(1)),
    log_index        UInt32 CODEC(ZSTD(1)),
    chain            LowCardinality(String),
    block_number     UInt64 CODEC(Delta, ZSTD(1)),
    pool             String CODEC(ZSTD(1)),
    exchange         LowCardinality(String),
    taker            String CODEC(ZSTD(1)),
    side             Enum8('BUY' = 1, 'SELL' = 2),
    amount           Float64 CODEC(ZSTD(1)),
    amount_usd       Nullable(Float64) CODEC(ZSTD(1)),
    price            Nullable(Float64) CODEC(ZSTD(1))
)
ENGINE = {engine}ReplacingMergeTree
PARTITION BY toYear(traded_at)
ORDER BY (token, traded_at, transaction_hash, log_index)
SETTINGS index_granularity = 1024;

-- One row per token: all that is told of its trades, computed after every insert. Trades are never taken away, so the
-- computation that saw more of them is the later one, whenever it is stored; among equals the later end of the windows
-- wins. After trades were deleted by hand, delete the token's row here too.
CREATE TABLE IF NOT EXISTS dex_data
(
    token         UInt64,
    total_trades  UInt64,
    makers        UInt64,
    takers        UInt64,
    dexs          UInt64,
    inflow_24h    Float64,
    inflow_7d     Float64,
    inflow_30d    Float64,
    inflow_max    Float64,
    outflow_24h   Float64,
    outflow_7d    Float64,
    outflow_30d   Float64,
    outflow_max   Float64,
    price         Nullable(Float64),
    last_trade_at DateTime64(3, 'UTC'),
    as_of         DateTime64(3, 'UTC'),
    version       UInt64 MATERIALIZED total_trades * 4294967296 + toUnixTimestamp(as_of)
)
ENGINE = {engine}ReplacingMergeTree(version)
ORDER BY token;
