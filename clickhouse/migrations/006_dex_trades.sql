-- Trades on decentralized exchanges, seen from the trader. The natural key is the log of one swap; a swap between two
-- tokens of the registry is a trade of each. Of two rows of one trade the one that was collected later stays. Hashes and
-- addresses are kept as the text that is served: packed as FixedString a row takes 71 bytes instead of 75, which does not
-- pay for a second table and its view.
CREATE TABLE IF NOT EXISTS dex_trades
(
    token            UInt64 CODEC(ZSTD(1)),
    traded_at        DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    collected_at     DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC') CODEC(Delta, ZSTD(1)),
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
ENGINE = {engine}ReplacingMergeTree(collected_at)
PARTITION BY toYear(traded_at)
ORDER BY (token, traded_at, transaction_hash, log_index)
SETTINGS index_granularity = 1024;

-- What each day's trades of a token amount to, so that sums over years need not read every trade. After an insert the days
-- that it touched are computed anew from all of their trades, and take the place of what was there: a trade that is stored
-- again, late or corrected can neither count twice nor be missed. Trades are never taken away, so the computation that saw
-- more of them stays, whenever it is stored; of two that saw as many, the later one.
CREATE TABLE IF NOT EXISTS dex_trade_days
(
    token         UInt64 CODEC(ZSTD(1)),
    day           Date CODEC(Delta, ZSTD(1)),
    trades        UInt64 CODEC(T64, ZSTD(1)),
    bought_usd    Decimal(38, 12) CODEC(ZSTD(1)),
    sold_usd      Decimal(38, 12) CODEC(ZSTD(1)),
    last_trade_at DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    last_price    Nullable(Float64) CODEC(ZSTD(1)),
    computed_at   DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    version       UInt128 MATERIALIZED bitShiftLeft(toUInt128(trades), 64) + toUnixTimestamp64Milli(computed_at)
)
ENGINE = {engine}ReplacingMergeTree(version)
ORDER BY (token, day);

-- Every pool, taker and exchange of a token's trades, once: a set cannot grow by what it holds already, so they are counted
-- however often a trade is stored. It forgets nothing: a pool or taker that a corrected trade no longer has stays counted
-- until the table is computed anew from the trades (`npm run rebuild -- dex_trade_parties`).
CREATE TABLE IF NOT EXISTS dex_trade_parties
(
    token UInt64 CODEC(ZSTD(1)),
    kind  Enum8('pool' = 1, 'taker' = 2, 'exchange' = 3) CODEC(ZSTD(1)),
    name  String CODEC(ZSTD(1))
)
ENGINE = {engine}ReplacingMergeTree
ORDER BY (token, kind, name);

CREATE MATERIALIZED VIEW IF NOT EXISTS dex_trade_parties_mv TO dex_trade_parties AS
SELECT token, party.1 AS kind, party.2 AS name
FROM dex_trades
ARRAY JOIN [('pool', pool), ('taker', taker), ('exchange', toString(exchange))] AS party;

-- One row per token: all that is told of its trades, computed after every insert from the tables above and, for the days
-- in which a window begins, from the trades. The computation that saw more trades stays, as above; among equals the later
-- end of the windows wins. After trades were deleted by hand, delete the token's rows of these tables too.
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
