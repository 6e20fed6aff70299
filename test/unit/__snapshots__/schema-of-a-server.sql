CREATE TABLE IF NOT EXISTS migrations
(
    name       String,
    checksum   String,
    applied_at DateTime64(3, 'UTC')
)
ENGINE = ReplacingMergeTree(applied_at)
ORDER BY name;

CREATE TABLE IF NOT EXISTS tokens
(
    key              UInt64,
    id               String,
    symbol           String,
    name             String,
    contract_address String,
    decimals         UInt8,
    dao_id           String,
    dao_key          UInt64,
    cmc_id           Nullable(String),
    chain_id         String,
    live             Bool,
    live_price       Bool,
    changed_at       DateTime64(3, 'UTC')
)
ENGINE = ReplacingMergeTree(changed_at)
ORDER BY key;

CREATE OR REPLACE FUNCTION dao_data_powers AS () -> [1e0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12];

CREATE OR REPLACE FUNCTION dao_data_place AS value -> arrayFirstIndex(
    power -> value > 0 AND value * power < 5e14 AND round(value * power) / power = value, dao_data_powers());

CREATE OR REPLACE FUNCTION dao_data_encode AS (value, place) -> if(place = 0,
    reinterpretAsInt64(value),
    bitNot(toInt64(round(value * dao_data_powers()[place])) * 8 + place));

CREATE OR REPLACE FUNCTION dao_data_decode AS code -> if(code < 0 AND code > -4503599627370496,
    bitShiftRight(bitNot(code), 3) / dao_data_powers()[bitAnd(bitNot(code), 7)],
    reinterpretAsFloat64(code));

CREATE OR REPLACE FUNCTION dao_data_encode_cap AS (market_cap, price, supply) ->
    reinterpretAsInt64(market_cap) - reinterpretAsInt64(price * ifNull(supply, 0));

CREATE OR REPLACE FUNCTION dao_data_decode_cap AS (code, price, supply) ->
    reinterpretAsFloat64(code + reinterpretAsInt64(price * ifNull(supply, 0)));

CREATE TABLE IF NOT EXISTS token_quotes_in
(
    token                    UInt64,
    observed_at              DateTime64(3, 'UTC'),
    collected_at             DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC'),
    is_latest                Bool,
    price                    Float64,
    volume_24h               Nullable(Float64),
    market_cap               Nullable(Float64),
    total_supply             Nullable(Float64),
    circulating_supply       Nullable(Float64),
    max_supply               Nullable(Float64),
    fully_diluted_market_cap Nullable(Float64),
    volume_change_24h        Nullable(Float64),
    percent_change_1h        Nullable(Float64),
    percent_change_24h       Nullable(Float64),
    percent_change_7d        Nullable(Float64),
    percent_change_30d       Nullable(Float64),
    percent_change_60d       Nullable(Float64),
    percent_change_90d       Nullable(Float64),
    tvl                      Nullable(Float64),
    price_place              UInt8 MATERIALIZED dao_data_place(price),
    volume_24h_place         UInt8 MATERIALIZED dao_data_place(assumeNotNull(volume_24h)),
    price_code               Int64 MATERIALIZED dao_data_encode(price, price_place),
    volume_24h_code          Nullable(Int64) MATERIALIZED if(volume_24h IS NULL, NULL, dao_data_encode(assumeNotNull(volume_24h), volume_24h_place)),
    market_cap_code          Nullable(Int64) MATERIALIZED if(market_cap IS NULL, NULL, dao_data_encode_cap(assumeNotNull(market_cap), price, circulating_supply)),
    version                  UInt32 MATERIALIZED ((volume_24h IS NOT NULL) + (market_cap IS NOT NULL) + (total_supply IS NOT NULL) + (circulating_supply IS NOT NULL)) * 268435456
        + least(intDiv(greatest(dateDiff('millisecond', observed_at, collected_at), 0), 60000), 268435455)
)
ENGINE = Null;

CREATE TABLE IF NOT EXISTS token_prices
(
    token              UInt64 CODEC(ZSTD(1)),
    observed_at        DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    version            UInt32 CODEC(DoubleDelta, ZSTD(1)),
    price_code         Int64 CODEC(Delta, T64('bit'), ZSTD(1)),
    volume_24h_code    Nullable(Int64) CODEC(Delta, T64('bit'), ZSTD(1)),
    market_cap_code    Nullable(Int64) CODEC(Delta, T64('bit'), ZSTD(1)),
    total_supply       Nullable(Float64) CODEC(FPC(12), ZSTD(1)),
    circulating_supply Nullable(Float64) CODEC(FPC(12), ZSTD(1)),
    price              Float64 ALIAS dao_data_decode(price_code),
    volume_24h         Nullable(Float64) ALIAS if(volume_24h_code IS NULL, NULL, dao_data_decode(assumeNotNull(volume_24h_code))),
    market_cap         Nullable(Float64) ALIAS if(market_cap_code IS NULL, NULL, dao_data_decode_cap(assumeNotNull(market_cap_code), price, circulating_supply))
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYear(observed_at)
ORDER BY (token, observed_at)
SETTINGS index_granularity = 1024;

CREATE MATERIALIZED VIEW IF NOT EXISTS token_prices_mv TO token_prices AS
SELECT token, observed_at, version, price_code, volume_24h_code, market_cap_code, total_supply, circulating_supply
FROM token_quotes_in;

CREATE TABLE IF NOT EXISTS token_quotes
(
    token                    UInt64,
    observed_at              DateTime64(3, 'UTC'),
    collected_at             DateTime64(3, 'UTC'),
    price                    Float64,
    volume_24h               Nullable(Float64),
    market_cap               Nullable(Float64),
    total_supply             Nullable(Float64),
    circulating_supply       Nullable(Float64),
    max_supply               Nullable(Float64),
    fully_diluted_market_cap Nullable(Float64),
    volume_change_24h        Nullable(Float64),
    percent_change_1h        Nullable(Float64),
    percent_change_24h       Nullable(Float64),
    percent_change_7d        Nullable(Float64),
    percent_change_30d       Nullable(Float64),
    percent_change_60d       Nullable(Float64),
    percent_change_90d       Nullable(Float64),
    tvl                      Nullable(Float64),
    version                  UInt128 MATERIALIZED bitShiftLeft(toUInt128(toUnixTimestamp64Milli(observed_at)), 64) + toUnixTimestamp64Milli(collected_at)
)
ENGINE = ReplacingMergeTree(version)
ORDER BY token;

CREATE MATERIALIZED VIEW IF NOT EXISTS token_quotes_mv TO token_quotes AS
SELECT * EXCEPT is_latest
FROM token_quotes_in
WHERE is_latest;

CREATE TABLE IF NOT EXISTS token_price_rollups
(
    token              UInt64 CODEC(ZSTD(1)),
    interval_seconds   UInt32 CODEC(ZSTD(1)),
    bucket_at          DateTime('UTC') CODEC(DoubleDelta, ZSTD(1)),
    rank               UInt64 CODEC(Delta, T64('bit'), ZSTD(1)),
    price_code         Int64 CODEC(Delta, T64('bit'), ZSTD(1)),
    volume_24h_code    Nullable(Int64) CODEC(Delta, T64('bit'), ZSTD(1)),
    market_cap_code    Nullable(Int64) CODEC(Delta, T64('bit'), ZSTD(1)),
    total_supply       Nullable(Float64) CODEC(FPC(12), ZSTD(1)),
    circulating_supply Nullable(Float64) CODEC(FPC(12), ZSTD(1)),
    price              Float64 ALIAS dao_data_decode(price_code),
    volume_24h         Nullable(Float64) ALIAS if(volume_24h_code IS NULL, NULL, dao_data_decode(assumeNotNull(volume_24h_code))),
    market_cap         Nullable(Float64) ALIAS if(market_cap_code IS NULL, NULL, dao_data_decode_cap(assumeNotNull(market_cap_code), price, circulating_supply)),
    observed_at        DateTime64(3, 'UTC') ALIAS fromUnixTimestamp64Milli((toInt64(toUnixTimestamp(bucket_at)) + interval_seconds) * 1000 - toInt64(bitShiftRight(rank, 31)), 'UTC')
)
ENGINE = ReplacingMergeTree(rank)
PARTITION BY toYear(bucket_at)
ORDER BY (token, interval_seconds, bucket_at)
SETTINGS index_granularity = 1024, min_bytes_for_wide_part = 262144;

CREATE MATERIALIZED VIEW IF NOT EXISTS token_price_rollups_mv TO token_price_rollups AS
WITH
    toInt64(toUnixTimestamp(observed_at)) AS second,
    second - (second - 345600) % interval_seconds AS bucket
SELECT token,
       interval_seconds,
       toDateTime(bucket, 'UTC') AS bucket_at,
       bitShiftLeft(toUInt64((bucket + interval_seconds) * 1000 - toUnixTimestamp64Milli(observed_at)), 31) + version AS rank,
       price_code,
       volume_24h_code,
       market_cap_code,
       total_supply,
       circulating_supply
FROM token_quotes_in
ARRAY JOIN [1800, 3600, 14400, 86400, 604800] AS interval_seconds;

CREATE TABLE IF NOT EXISTS protocol_tvl
(
    dao          UInt64 CODEC(ZSTD(1)),
    observed_at  DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    collected_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    tvl_usd      Float64 CODEC(FPC(12), ZSTD(1))
)
ENGINE = ReplacingMergeTree(collected_at)
ORDER BY (dao, observed_at);

CREATE TABLE IF NOT EXISTS protocol_tvl_latest
(
    dao          UInt64,
    observed_at  DateTime64(3, 'UTC'),
    collected_at DateTime64(3, 'UTC'),
    tvl_usd      Float64,
    version      UInt128 MATERIALIZED bitShiftLeft(toUInt128(toUnixTimestamp64Milli(observed_at)), 64) + toUnixTimestamp64Milli(collected_at)
)
ENGINE = ReplacingMergeTree(version)
ORDER BY dao;

CREATE MATERIALIZED VIEW IF NOT EXISTS protocol_tvl_latest_mv TO protocol_tvl_latest AS
SELECT dao, observed_at, collected_at, tvl_usd
FROM protocol_tvl;

CREATE TABLE IF NOT EXISTS job_state
(
    job        String,
    name       String,
    value      String,
    written_at DateTime64(3, 'UTC')
)
ENGINE = ReplacingMergeTree(written_at)
ORDER BY (job, name)
TTL toDateTime(written_at) + INTERVAL 30 DAY DELETE WHERE job IN ('rebuild', 'commits');

CREATE TABLE IF NOT EXISTS token_holders
(
    token         UInt64 CODEC(ZSTD(1)),
    observed_at   DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    collected_at  DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    total_holders UInt64 CODEC(Delta, ZSTD(1)),
    top100_share  Float64 CODEC(ZSTD(1)),
    holders       Array(Tuple(address String, amount Float64, amount_usd Nullable(Float64), share Float64)) CODEC(ZSTD(3))
)
ENGINE = ReplacingMergeTree(collected_at)
PARTITION BY toYear(observed_at)
ORDER BY (token, observed_at)
SETTINGS index_granularity = 256;

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
ENGINE = ReplacingMergeTree(version)
ORDER BY token;

CREATE MATERIALIZED VIEW IF NOT EXISTS token_holders_latest_mv TO token_holders_latest AS
SELECT token, observed_at, collected_at, total_holders, top100_share, holders
FROM token_holders;

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
ENGINE = ReplacingMergeTree(collected_at)
PARTITION BY toYear(traded_at)
ORDER BY (token, traded_at, transaction_hash, log_index)
SETTINGS index_granularity = 1024;

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
ENGINE = ReplacingMergeTree(version)
ORDER BY (token, day);

CREATE TABLE IF NOT EXISTS dex_trade_parties
(
    token UInt64 CODEC(ZSTD(1)),
    kind  Enum8('pool' = 1, 'taker' = 2, 'exchange' = 3) CODEC(ZSTD(1)),
    name  String CODEC(ZSTD(1))
)
ENGINE = ReplacingMergeTree
ORDER BY (token, kind, name);

CREATE MATERIALIZED VIEW IF NOT EXISTS dex_trade_parties_mv TO dex_trade_parties AS
SELECT token, party.1 AS kind, party.2 AS name
FROM dex_trades
ARRAY JOIN [('pool', pool), ('taker', taker), ('exchange', toString(exchange))] AS party;

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
ENGINE = ReplacingMergeTree(version)
ORDER BY token;

CREATE TABLE IF NOT EXISTS daos
(
    key                UInt64,
    id                 String,
    slug               String,
    name               String,
    image              Nullable(String),
    category_ids       Array(String),
    mission            String,
    website            Nullable(String),
    twitter            Nullable(String),
    discord            Nullable(String),
    telegram           Nullable(String),
    whitepaper         Nullable(String),
    tokenomics         Nullable(String),
    chain_ids          Array(String),
    token_key          Nullable(UInt64),
    live               Bool,
    twitter_id         Nullable(String),
    verified           Bool,
    description        String,
    is_otc             Bool,
    snapshot_name      Nullable(String),
    treasury_addresses Array(String),
    links              Map(String, String),
    created_at         DateTime64(3, 'UTC'),
    updated_at         DateTime64(3, 'UTC'),
    changes            UInt32,
    version            UInt64 DEFAULT bitShiftLeft(toUInt64(changes), 42) + (4398046511103 - toUnixTimestamp64Milli(updated_at))
)
ENGINE = ReplacingMergeTree(version)
ORDER BY key;

CREATE TABLE IF NOT EXISTS dao_links
(
    dao          UInt64,
    field        LowCardinality(String),
    source       LowCardinality(String),
    value        String,
    observed_at  DateTime64(3, 'UTC'),
    collected_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC'),
    version      UInt128 MATERIALIZED bitShiftLeft(toUInt128(toUnixTimestamp64Milli(observed_at)), 64) + toUnixTimestamp64Milli(collected_at)
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (dao, field, source);

CREATE TABLE IF NOT EXISTS governance_in
(
    dao      UInt64,
    space    String,
    kind     LowCardinality(String),
    proposal String,
    address  String,
    at       DateTime64(3, 'UTC')
)
ENGINE = Null;

CREATE TABLE IF NOT EXISTS dao_votes
(
    dao        UInt64 CODEC(ZSTD(1)),
    space      LowCardinality(String),
    voter      String CODEC(ZSTD(3)),
    proposal   LowCardinality(String),
    created_at DateTime('UTC') CODEC(Delta, ZSTD(1))
)
ENGINE = ReplacingMergeTree(created_at)
ORDER BY (dao, space, voter, proposal);

CREATE MATERIALIZED VIEW IF NOT EXISTS dao_votes_mv TO dao_votes AS
SELECT dao, space, address AS voter, proposal, toDateTime(at, 'UTC') AS created_at
FROM governance_in
WHERE kind = 'vote';

CREATE TABLE IF NOT EXISTS dao_proposals
(
    dao        UInt64 CODEC(ZSTD(1)),
    space      LowCardinality(String),
    proposal   String CODEC(ZSTD(1)),
    author     String CODEC(ZSTD(1)),
    created_at DateTime('UTC') CODEC(ZSTD(1))
)
ENGINE = ReplacingMergeTree(created_at)
ORDER BY (dao, space, proposal);

CREATE MATERIALIZED VIEW IF NOT EXISTS dao_proposals_mv TO dao_proposals AS
SELECT dao, space, proposal, address AS author, toDateTime(at, 'UTC') AS created_at
FROM governance_in
WHERE kind = 'proposal';

CREATE TABLE IF NOT EXISTS governance_readings
(
    dao     UInt64,
    space   String,
    read_at DateTime64(3, 'UTC')
)
ENGINE = ReplacingMergeTree(read_at)
ORDER BY (dao, space);

CREATE MATERIALIZED VIEW IF NOT EXISTS governance_readings_mv TO governance_readings AS
SELECT dao, space, at AS read_at
FROM governance_in
WHERE kind = 'reading';

CREATE TABLE IF NOT EXISTS dao_treasuries
(
    dao          UInt64 CODEC(ZSTD(1)),
    observed_at  DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    collected_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    value_usd    Float64 CODEC(FPC(12), ZSTD(1)),
    tokens       Array(Tuple(symbol String, quantity Float64, value_usd Nullable(Float64))) CODEC(ZSTD(3)),
    source       LowCardinality(String)
)
ENGINE = ReplacingMergeTree(collected_at)
ORDER BY (dao, observed_at)
SETTINGS index_granularity = 256;

CREATE TABLE IF NOT EXISTS dao_ratings
(
    dao                UInt64 CODEC(ZSTD(1)),
    observed_at        DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    collected_at       DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    rated_at           DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    overall_rating     Float64 CODEC(ZSTD(1)),
    fundamental_rating Float64 CODEC(ZSTD(1)),
    governance         Float64 CODEC(ZSTD(1)),
    team               Float64 CODEC(ZSTD(1)),
    competitive_moat   Float64 CODEC(ZSTD(1)),
    value_proposition  Float64 CODEC(ZSTD(1)),
    token_economics    Float64 CODEC(ZSTD(1)),
    source             LowCardinality(String),
    report_url         Nullable(String) CODEC(ZSTD(1))
)
ENGINE = ReplacingMergeTree(collected_at)
ORDER BY (dao, observed_at);

CREATE TABLE IF NOT EXISTS dao_ratings_latest
(
    dao                UInt64,
    observed_at        DateTime64(3, 'UTC'),
    collected_at       DateTime64(3, 'UTC'),
    rated_at           DateTime64(3, 'UTC'),
    overall_rating     Float64,
    fundamental_rating Float64,
    governance         Float64,
    team               Float64,
    competitive_moat   Float64,
    value_proposition  Float64,
    token_economics    Float64,
    version            UInt128 MATERIALIZED bitShiftLeft(toUInt128(toUnixTimestamp64Milli(observed_at)), 64) + toUnixTimestamp64Milli(collected_at)
)
ENGINE = ReplacingMergeTree(version)
ORDER BY dao;

CREATE MATERIALIZED VIEW IF NOT EXISTS dao_ratings_latest_mv TO dao_ratings_latest AS
SELECT dao, observed_at, collected_at, rated_at, overall_rating, fundamental_rating, governance, team, competitive_moat,
       value_proposition, token_economics
FROM dao_ratings;

CREATE TABLE IF NOT EXISTS twitter_counts
(
    dao          UInt64 CODEC(ZSTD(1)),
    observed_at  DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    collected_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    followers    Nullable(UInt64) CODEC(Delta, ZSTD(1)),
    following    Nullable(UInt64) CODEC(Delta, ZSTD(1)),
    tweets       Nullable(UInt64) CODEC(Delta, ZSTD(1))
)
ENGINE = ReplacingMergeTree(collected_at)
ORDER BY (dao, observed_at)
SETTINGS index_granularity = 1024;

CREATE TABLE IF NOT EXISTS twitter_counts_latest
(
    dao          UInt64,
    observed_at  DateTime64(3, 'UTC'),
    collected_at DateTime64(3, 'UTC'),
    followers    Nullable(UInt64),
    following    Nullable(UInt64),
    tweets       Nullable(UInt64),
    version      UInt128 MATERIALIZED bitShiftLeft(toUInt128(toUnixTimestamp64Milli(observed_at)), 64) + toUnixTimestamp64Milli(collected_at)
)
ENGINE = ReplacingMergeTree(version)
ORDER BY dao;

CREATE MATERIALIZED VIEW IF NOT EXISTS twitter_counts_latest_mv TO twitter_counts_latest AS
SELECT dao, observed_at, collected_at, followers, following, tweets
FROM twitter_counts;

CREATE TABLE IF NOT EXISTS discord_members
(
    dao            UInt64 CODEC(ZSTD(1)),
    observed_at    DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    collected_at   DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    active_members Nullable(UInt64) CODEC(Delta, ZSTD(1)),
    total_members  Nullable(UInt64) CODEC(Delta, ZSTD(1))
)
ENGINE = ReplacingMergeTree(collected_at)
ORDER BY (dao, observed_at)
SETTINGS index_granularity = 1024;

CREATE TABLE IF NOT EXISTS discord_members_latest
(
    dao            UInt64,
    observed_at    DateTime64(3, 'UTC'),
    collected_at   DateTime64(3, 'UTC'),
    active_members Nullable(UInt64),
    total_members  Nullable(UInt64),
    version        UInt128 MATERIALIZED bitShiftLeft(toUInt128(toUnixTimestamp64Milli(observed_at)), 64) + toUnixTimestamp64Milli(collected_at)
)
ENGINE = ReplacingMergeTree(version)
ORDER BY dao;

CREATE MATERIALIZED VIEW IF NOT EXISTS discord_members_latest_mv TO discord_members_latest AS
SELECT dao, observed_at, collected_at, active_members, total_members
FROM discord_members;

CREATE TABLE IF NOT EXISTS telegram_members
(
    dao            UInt64 CODEC(ZSTD(1)),
    observed_at    DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    collected_at   DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    active_members Nullable(UInt64) CODEC(Delta, ZSTD(1)),
    total_members  Nullable(UInt64) CODEC(Delta, ZSTD(1))
)
ENGINE = ReplacingMergeTree(collected_at)
ORDER BY (dao, observed_at)
SETTINGS index_granularity = 1024;

CREATE TABLE IF NOT EXISTS twitter_sentiment
(
    dao            UInt64 CODEC(ZSTD(1)),
    observed_at    DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    collected_at   DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    positive_posts UInt32 CODEC(ZSTD(1)),
    neutral_posts  UInt32 CODEC(ZSTD(1)),
    negative_posts UInt32 CODEC(ZSTD(1)),
    lexicon        LowCardinality(String)
)
ENGINE = ReplacingMergeTree(collected_at)
ORDER BY (dao, observed_at)
SETTINGS index_granularity = 1024;

CREATE TABLE IF NOT EXISTS twitter_sentiment_latest
(
    dao            UInt64,
    observed_at    DateTime64(3, 'UTC'),
    collected_at   DateTime64(3, 'UTC'),
    positive_posts UInt32,
    neutral_posts  UInt32,
    negative_posts UInt32,
    version        UInt128 MATERIALIZED bitShiftLeft(toUInt128(toUnixTimestamp64Milli(observed_at)), 64) + toUnixTimestamp64Milli(collected_at)
)
ENGINE = ReplacingMergeTree(version)
ORDER BY dao;

CREATE MATERIALIZED VIEW IF NOT EXISTS twitter_sentiment_latest_mv TO twitter_sentiment_latest AS
SELECT dao, observed_at, collected_at, positive_posts, neutral_posts, negative_posts
FROM twitter_sentiment;

CREATE TABLE IF NOT EXISTS market_caps
(
    recorded_at  DateTime64(3, 'UTC'),
    value_usd    Float64,
    member_count UInt32,
    computed_at  DateTime64(3, 'UTC'),
    withdrawn    UInt8
)
ENGINE = ReplacingMergeTree(computed_at, withdrawn)
ORDER BY recorded_at;

CREATE TABLE IF NOT EXISTS treasury_values
(
    recorded_at  DateTime64(3, 'UTC'),
    value_usd    Float64,
    member_count UInt32,
    computed_at  DateTime64(3, 'UTC'),
    withdrawn    UInt8
)
ENGINE = ReplacingMergeTree(computed_at, withdrawn)
ORDER BY recorded_at;

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
ENGINE = ReplacingMergeTree(computed_at, is_retracted)
PARTITION BY toYear(created_at)
ORDER BY (index_key, created_at)
SETTINGS index_granularity = 1024;

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
ENGINE = ReplacingMergeTree(collected_at)
ORDER BY (index_key, created_at)
SETTINGS index_granularity = 1024;

CREATE TABLE IF NOT EXISTS coverage_in
(
    dataset          String,
    entity           UInt64,
    cadence_seconds  UInt32,
    state            Enum8('stored' = 1, 'nothing' = 2),
    provider         String,
    interval_seconds UInt32,
    first            UInt32,
    last             UInt32
)
ENGINE = Null;

CREATE TABLE IF NOT EXISTS coverage
(
    dataset          LowCardinality(String),
    entity           UInt64,
    year             UInt16,
    state            Enum8('stored' = 1, 'nothing' = 2),
    provider         LowCardinality(String),
    interval_seconds UInt32,
    buckets          AggregateFunction(groupBitmap, UInt32)
)
ENGINE = AggregatingMergeTree
ORDER BY (entity, dataset, year, state, provider, interval_seconds);

CREATE MATERIALIZED VIEW IF NOT EXISTS coverage_mv TO coverage AS
SELECT dataset,
       entity,
       toYear(toDateTime(toInt64(first) * cadence_seconds, 'UTC')) AS year,
       state,
       provider,
       interval_seconds,
       bitmapBuild(CAST(range(first, last + 1), 'Array(UInt32)')) AS buckets
FROM coverage_in;

CREATE TABLE IF NOT EXISTS coverage_notes
(
    dataset     LowCardinality(String),
    entity      UInt64,
    lane        Enum8('live' = 1, 'history' = 2),
    begins_at   DateTime64(3, 'UTC'),
    ends_at     DateTime64(3, 'UTC'),
    state       Enum8('coarser' = 1, 'failed' = 2, 'unserved' = 3, 'pending' = 4),
    provider    LowCardinality(String),
    reason      String,
    since       DateTime64(3, 'UTC'),
    tries       UInt32,
    next_try_at DateTime64(3, 'UTC'),
    written_at  DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC')
)
ENGINE = ReplacingMergeTree(written_at)
ORDER BY (entity, dataset, lane, begins_at);

CREATE TABLE IF NOT EXISTS coverage_wanted
(
    dataset          LowCardinality(String),
    entity           UInt64,
    begins_at        DateTime64(3, 'UTC'),
    ends_at          DateTime64(3, 'UTC'),
    interval_seconds UInt32,
    asked_at         DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC')
)
ENGINE = ReplacingMergeTree(asked_at)
ORDER BY (dataset, entity, begins_at, ends_at);

CREATE TABLE IF NOT EXISTS computations
(
    dataset     LowCardinality(String),
    unit_at     DateTime('UTC'),
    stored_at   SimpleAggregateFunction(max, DateTime64(3, 'UTC')),
    computed_at SimpleAggregateFunction(max, DateTime64(3, 'UTC'))
)
ENGINE = AggregatingMergeTree
ORDER BY (dataset, unit_at);

ALTER TABLE governance_in
    ADD COLUMN IF NOT EXISTS choice String,
    ADD COLUMN IF NOT EXISTS voting_power Nullable(Float64),
    ADD COLUMN IF NOT EXISTS title String,
    ADD COLUMN IF NOT EXISTS voting_type LowCardinality(String),
    ADD COLUMN IF NOT EXISTS choices Array(String),
    ADD COLUMN IF NOT EXISTS scores Array(Float64),
    ADD COLUMN IF NOT EXISTS scores_total Nullable(Float64),
    ADD COLUMN IF NOT EXISTS votes Nullable(UInt64),
    ADD COLUMN IF NOT EXISTS quorum Nullable(Float64),
    ADD COLUMN IF NOT EXISTS starts_at Nullable(DateTime('UTC')),
    ADD COLUMN IF NOT EXISTS ends_at Nullable(DateTime('UTC')),
    ADD COLUMN IF NOT EXISTS url Nullable(String),
    ADD COLUMN IF NOT EXISTS collected_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC');

ALTER TABLE dao_votes
    ADD COLUMN IF NOT EXISTS voting_power Nullable(Float64) CODEC(ZSTD(1));

ALTER TABLE dao_votes_mv MODIFY QUERY
SELECT dao, space, address AS voter, proposal, toDateTime(at, 'UTC') AS created_at, voting_power
FROM governance_in
WHERE kind = 'vote';

CREATE TABLE IF NOT EXISTS dao_cast_votes
(
    dao          UInt64 CODEC(ZSTD(1)),
    created_at   DateTime('UTC') CODEC(Delta, ZSTD(1)),
    proposal     LowCardinality(String),
    voter        String CODEC(ZSTD(3)),
    space        LowCardinality(String),
    choice       String CODEC(ZSTD(1)),
    voting_power Nullable(Float64) CODEC(ZSTD(1)),
    is_replaced  Bool DEFAULT false CODEC(ZSTD(1)),
    collected_at DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1))
)
ENGINE = ReplacingMergeTree(collected_at)
ORDER BY (dao, created_at, proposal, voter, space);

CREATE MATERIALIZED VIEW IF NOT EXISTS dao_cast_votes_mv TO dao_cast_votes AS
SELECT dao, toDateTime(at, 'UTC') AS created_at, proposal, address AS voter, space, choice, voting_power, collected_at
FROM governance_in
WHERE kind = 'vote';

INSERT INTO dao_cast_votes (dao, created_at, proposal, voter, space, collected_at)
SELECT dao, created_at, proposal, voter, space, toDateTime64(0, 3, 'UTC') FROM dao_votes FINAL;

ALTER TABLE dao_proposals
    ADD COLUMN IF NOT EXISTS id String DEFAULT substring(lower(hex(SHA256(concat('proposal', '\x1f', toString(dao), '\x1f', proposal)))), 1, 24) CODEC(ZSTD(1));

CREATE TABLE IF NOT EXISTS dao_proposal_details
(
    dao          UInt64,
    space        LowCardinality(String),
    proposal     String CODEC(ZSTD(1)),
    title        String CODEC(ZSTD(3)),
    voting_type  LowCardinality(String),
    choices      Array(String) CODEC(ZSTD(3)),
    scores       Array(Float64) CODEC(ZSTD(1)),
    scores_total Nullable(Float64) CODEC(ZSTD(1)),
    votes        Nullable(UInt64) CODEC(ZSTD(1)),
    quorum       Nullable(Float64) CODEC(ZSTD(1)),
    starts_at    Nullable(DateTime('UTC')) CODEC(ZSTD(1)),
    ends_at      Nullable(DateTime('UTC')) CODEC(ZSTD(1)),
    url          Nullable(String) CODEC(ZSTD(3)),
    is_deleted   Bool DEFAULT false,
    collected_at DateTime64(3, 'UTC') CODEC(ZSTD(1))
)
ENGINE = ReplacingMergeTree(collected_at)
ORDER BY (dao, space, proposal);

CREATE MATERIALIZED VIEW IF NOT EXISTS dao_proposal_details_mv TO dao_proposal_details AS
SELECT dao, space, proposal, title, voting_type, choices, scores, scores_total, votes, quorum, starts_at, ends_at, url, collected_at
FROM governance_in
WHERE kind = 'proposal';

CREATE TABLE IF NOT EXISTS governance_sweeps
(
    dao      UInt64,
    space    String,
    swept_at DateTime64(3, 'UTC')
)
ENGINE = ReplacingMergeTree(swept_at)
ORDER BY (dao, space);

CREATE MATERIALIZED VIEW IF NOT EXISTS governance_sweeps_mv TO governance_sweeps AS
SELECT dao, space, at AS swept_at
FROM governance_in
WHERE kind = 'sweep';

ALTER TABLE dao_treasuries ADD COLUMN IF NOT EXISTS
    holdings Array(Tuple(chain String, address Nullable(String), contract Nullable(String), symbol String, quantity Float64,
        value_usd Nullable(Float64), price_source Nullable(String), kind String)) CODEC(ZSTD(3));

ALTER TABLE dao_treasuries ADD COLUMN IF NOT EXISTS spam_count Nullable(UInt32) CODEC(ZSTD(1));

CREATE TABLE IF NOT EXISTS history_changes
(
    dataset    LowCardinality(String),
    entity     UInt64,
    job        LowCardinality(String),
    begins_at  DateTime64(3, 'UTC'),
    ends_at    DateTime64(3, 'UTC'),
    changed_at DateTime64(3, 'UTC')
)
ENGINE = ReplacingMergeTree(changed_at)
ORDER BY (entity, dataset, job, begins_at, ends_at);

CREATE TABLE IF NOT EXISTS governors_in
(
    dao          UInt64,
    space        String,
    kind         LowCardinality(String),
    proposal     String,
    address      String,
    at           DateTime64(3, 'UTC'),
    choice       String,
    voting_power Nullable(Float64),
    title        String,
    choices      Array(String),
    starts_at    Nullable(DateTime('UTC')),
    ends_at      Nullable(DateTime('UTC')),
    is_estimated Bool,
    url          Nullable(String),
    collected_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC')
)
ENGINE = Null;

CREATE MATERIALIZED VIEW IF NOT EXISTS governors_votes_mv TO governance_in AS
SELECT dao, space, kind, proposal, address, at, choice, voting_power, collected_at
FROM governors_in
WHERE kind = 'vote';

CREATE MATERIALIZED VIEW IF NOT EXISTS governors_proposals_mv TO dao_proposals AS
SELECT dao, space, proposal, address AS author, toDateTime(at, 'UTC') AS created_at
FROM governors_in
WHERE kind = 'proposal';

CREATE TABLE IF NOT EXISTS governor_events
(
    dao          UInt64,
    space        LowCardinality(String),
    proposal     String CODEC(ZSTD(1)),
    kind         LowCardinality(String),
    at           DateTime('UTC') CODEC(ZSTD(1)),
    title        String CODEC(ZSTD(3)),
    choices      Array(String) CODEC(ZSTD(3)),
    starts_at    Nullable(DateTime('UTC')) CODEC(ZSTD(1)),
    ends_at      Nullable(DateTime('UTC')) CODEC(ZSTD(1)),
    is_estimated Bool CODEC(ZSTD(1)),
    url          Nullable(String) CODEC(ZSTD(3)),
    collected_at DateTime64(3, 'UTC') CODEC(ZSTD(1))
)
ENGINE = ReplacingMergeTree(collected_at)
ORDER BY (dao, space, proposal, kind);

CREATE MATERIALIZED VIEW IF NOT EXISTS governor_events_mv TO governor_events AS
SELECT dao, space, proposal, kind, toDateTime(at, 'UTC') AS at, title, choices, starts_at, ends_at, is_estimated, url, collected_at
FROM governors_in
WHERE kind NOT IN ('vote', 'reading');

CREATE TABLE IF NOT EXISTS governor_readings
(
    dao     UInt64,
    space   String,
    read_at DateTime64(3, 'UTC')
)
ENGINE = ReplacingMergeTree(read_at)
ORDER BY (dao, space);

CREATE MATERIALIZED VIEW IF NOT EXISTS governor_readings_mv TO governor_readings AS
SELECT dao, space, at AS read_at
FROM governors_in
WHERE kind = 'reading';

ALTER TABLE dao_proposal_details
    ADD COLUMN IF NOT EXISTS outcome LowCardinality(String),
    ADD COLUMN IF NOT EXISTS is_estimated Bool DEFAULT false;

CREATE TABLE IF NOT EXISTS registry_records
(
    version  String,
    list     LowCardinality(String),
    position UInt32,
    record   String CODEC(ZSTD(3))
)
ENGINE = ReplacingMergeTree
ORDER BY (version, list, position);

CREATE TABLE IF NOT EXISTS registry_versions
(
    version   String,
    records   UInt32,
    stored_at DateTime64(3, 'UTC')
)
ENGINE = ReplacingMergeTree(stored_at)
ORDER BY version;

INSERT INTO job_state (job, name, value, written_at)
SELECT job,
       'failing providers',
       toJSONString(mapApply((provider, since) -> (provider, map('since', since, 'reason', 'noted by an earlier version, without a reason')),
                             JSONExtract(value, 'Map(String, String)'))),
       written_at
FROM job_state FINAL
WHERE name = 'failing providers since';

ALTER TABLE tokens MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

ALTER TABLE token_prices MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

ALTER TABLE token_quotes MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

ALTER TABLE token_price_rollups MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

ALTER TABLE protocol_tvl MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

ALTER TABLE protocol_tvl_latest MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

ALTER TABLE job_state MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

ALTER TABLE token_holders MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

ALTER TABLE token_holders_latest MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

ALTER TABLE dex_trades MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

ALTER TABLE dex_trade_days MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

ALTER TABLE dex_trade_parties MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

ALTER TABLE dex_data MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

ALTER TABLE daos MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

ALTER TABLE dao_links MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

ALTER TABLE dao_votes MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

ALTER TABLE dao_cast_votes MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

ALTER TABLE dao_proposals MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

ALTER TABLE dao_proposal_details MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

ALTER TABLE governance_readings MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

ALTER TABLE governance_sweeps MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

ALTER TABLE governor_events MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

ALTER TABLE governor_readings MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

ALTER TABLE dao_treasuries MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

ALTER TABLE dao_ratings MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

ALTER TABLE dao_ratings_latest MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

ALTER TABLE twitter_counts MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

ALTER TABLE twitter_counts_latest MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

ALTER TABLE discord_members MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

ALTER TABLE discord_members_latest MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

ALTER TABLE telegram_members MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

ALTER TABLE twitter_sentiment MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

ALTER TABLE twitter_sentiment_latest MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

ALTER TABLE market_caps MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

ALTER TABLE treasury_values MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

ALTER TABLE index_points MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

ALTER TABLE index_token MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

ALTER TABLE coverage MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

ALTER TABLE coverage_notes MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

ALTER TABLE history_changes MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

ALTER TABLE coverage_wanted MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

ALTER TABLE computations MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

ALTER TABLE registry_records MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

ALTER TABLE registry_versions MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

ALTER TABLE governance_in
    ADD COLUMN IF NOT EXISTS scores_state LowCardinality(String),
    ADD COLUMN IF NOT EXISTS is_flagged Bool DEFAULT false;

ALTER TABLE dao_proposal_details
    ADD COLUMN IF NOT EXISTS scores_state LowCardinality(String),
    ADD COLUMN IF NOT EXISTS is_flagged Bool DEFAULT false;

ALTER TABLE dao_proposal_details_mv MODIFY QUERY
SELECT dao, space, proposal, title, voting_type, choices, scores, scores_total, votes, quorum, starts_at, ends_at, url, collected_at,
  scores_state, is_flagged
FROM governance_in
WHERE kind = 'proposal';

CREATE TABLE IF NOT EXISTS dao_fees
(
    dao          UInt64 CODEC(ZSTD(1)),
    observed_at  DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    collected_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    fees_usd     Nullable(Float64) CODEC(ZSTD(1)),
    revenue_usd  Nullable(Float64) CODEC(ZSTD(1))
)
ENGINE = ReplacingMergeTree(collected_at)
ORDER BY (dao, observed_at)
SETTINGS index_granularity = 1024;

ALTER TABLE dao_fees MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

ALTER TABLE twitter_sentiment
    ADD COLUMN IF NOT EXISTS positive_share Float64 DEFAULT positive_posts / (positive_posts + neutral_posts + negative_posts),
    ADD COLUMN IF NOT EXISTS negative_share Float64 DEFAULT negative_posts / (positive_posts + neutral_posts + negative_posts),
    ADD COLUMN IF NOT EXISTS unknown_posts Nullable(UInt32),
    ADD COLUMN IF NOT EXISTS model LowCardinality(String) DEFAULT lexicon;

ALTER TABLE twitter_sentiment_latest
    ADD COLUMN IF NOT EXISTS positive_share Float64 DEFAULT positive_posts / (positive_posts + neutral_posts + negative_posts),
    ADD COLUMN IF NOT EXISTS negative_share Float64 DEFAULT negative_posts / (positive_posts + neutral_posts + negative_posts),
    ADD COLUMN IF NOT EXISTS unknown_posts Nullable(UInt32),
    ADD COLUMN IF NOT EXISTS model LowCardinality(String) DEFAULT 'afinn-165+crypto-1';

ALTER TABLE twitter_sentiment_latest_mv MODIFY QUERY
SELECT dao, observed_at, collected_at, positive_posts, neutral_posts, negative_posts, positive_share, negative_share, unknown_posts,
  model
FROM twitter_sentiment;

ALTER TABLE governors_in
    ADD COLUMN IF NOT EXISTS power_exact Nullable(UInt256),
    ADD COLUMN IF NOT EXISTS choice_powers Array(UInt256),
    ADD COLUMN IF NOT EXISTS decimals UInt8,
    ADD COLUMN IF NOT EXISTS is_whole Bool DEFAULT false;

ALTER TABLE governance_in
    ADD COLUMN IF NOT EXISTS power_exact Nullable(UInt256),
    ADD COLUMN IF NOT EXISTS choice_powers Array(UInt256),
    ADD COLUMN IF NOT EXISTS decimals UInt8,
    ADD COLUMN IF NOT EXISTS is_whole Bool DEFAULT false;

ALTER TABLE dao_cast_votes
    ADD COLUMN IF NOT EXISTS power_exact Nullable(UInt256) CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS choice_powers Array(UInt256) CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS decimals UInt8 CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS is_whole Bool DEFAULT false;

ALTER TABLE dao_proposal_details
    ADD COLUMN IF NOT EXISTS scores_exact Array(UInt256) CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS total_exact Nullable(UInt256) CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS decimals UInt8 CODEC(ZSTD(1));

ALTER TABLE dao_cast_votes_mv MODIFY QUERY
SELECT dao, toDateTime(at, 'UTC') AS created_at, proposal, address AS voter, space, choice, voting_power, collected_at,
  power_exact, choice_powers, decimals, is_whole
FROM governance_in
WHERE kind = 'vote';

ALTER TABLE governors_votes_mv MODIFY QUERY
SELECT dao, space, kind, proposal, address, at, choice, voting_power, collected_at, power_exact, choice_powers, decimals, is_whole
FROM governors_in
WHERE kind = 'vote';

ALTER TABLE governors_in
    ADD COLUMN IF NOT EXISTS body String,
    ADD COLUMN IF NOT EXISTS executable_at Nullable(DateTime('UTC')),
    ADD COLUMN IF NOT EXISTS actions Array(Tuple(target String, value_wei UInt256, function Nullable(String), signature Nullable(String),
        arguments Array(Tuple(name Nullable(String), type String, value String)), calldata String));

ALTER TABLE governor_events
    ADD COLUMN IF NOT EXISTS body String CODEC(ZSTD(3)),
    ADD COLUMN IF NOT EXISTS executable_at Nullable(DateTime('UTC')) CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS actions Array(Tuple(target String, value_wei UInt256, function Nullable(String), signature Nullable(String),
        arguments Array(Tuple(name Nullable(String), type String, value String)), calldata String)) CODEC(ZSTD(3));

ALTER TABLE governor_events_mv MODIFY QUERY
SELECT dao, space, proposal, kind, toDateTime(at, 'UTC') AS at, title, choices, starts_at, ends_at, is_estimated, url, collected_at,
  body, executable_at, actions
FROM governors_in
WHERE kind NOT IN ('vote', 'reading');

ALTER TABLE dao_proposal_details
    ADD COLUMN IF NOT EXISTS body Nullable(String) CODEC(ZSTD(3)),
    ADD COLUMN IF NOT EXISTS queued_at Nullable(DateTime('UTC')) CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS executable_at Nullable(DateTime('UTC')) CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS executed_at Nullable(DateTime('UTC')) CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS canceled_at Nullable(DateTime('UTC')) CODEC(ZSTD(1));

CREATE TABLE IF NOT EXISTS delegations_in
(
    dao            UInt64,
    space          String,
    kind           LowCardinality(String),
    at             DateTime64(3, 'UTC'),
    block_number   UInt64,
    log_index      UInt32,
    tx             String,
    delegate       String,
    previous       UInt256,
    power          UInt256,
    decimals       UInt8,
    cause          LowCardinality(String),
    delegator      String,
    from_delegate  String,
    to_delegate    String,
    collected_at   DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC')
)
ENGINE = Null;

CREATE TABLE IF NOT EXISTS delegate_powers
(
    dao          UInt64 CODEC(ZSTD(1)),
    space        LowCardinality(String),
    delegate     String CODEC(ZSTD(3)),
    block_number UInt64 CODEC(Delta, ZSTD(1)),
    log_index    UInt32 CODEC(ZSTD(1)),
    at           DateTime('UTC') CODEC(Delta, ZSTD(1)),
    previous     UInt256 CODEC(ZSTD(1)),
    power        UInt256 CODEC(ZSTD(1)),
    decimals     UInt8 CODEC(ZSTD(1)),
    cause        LowCardinality(String),
    tx           String CODEC(ZSTD(1)),
    collected_at DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1))
)
ENGINE = ReplacingMergeTree(collected_at)
ORDER BY (dao, space, delegate, block_number, log_index)
SETTINGS index_granularity = 1024;

CREATE MATERIALIZED VIEW IF NOT EXISTS delegate_powers_mv TO delegate_powers AS
SELECT dao, space, delegate, block_number, log_index, toDateTime(at, 'UTC') AS at, previous, power, decimals, cause, tx, collected_at
FROM delegations_in
WHERE kind = 'power';

CREATE TABLE IF NOT EXISTS delegate_powers_latest
(
    dao        UInt64,
    space      LowCardinality(String),
    delegate   String,
    first_at   SimpleAggregateFunction(min, DateTime('UTC')),
    last_power AggregateFunction(argMax, UInt256, Tuple(UInt64, UInt32)),
    decimals   SimpleAggregateFunction(max, UInt8)
)
ENGINE = AggregatingMergeTree
ORDER BY (dao, space, delegate);

CREATE MATERIALIZED VIEW IF NOT EXISTS delegate_powers_latest_mv TO delegate_powers_latest AS
SELECT dao, space, delegate, min(toDateTime(at, 'UTC')) AS first_at, argMaxState(power, (block_number, log_index)) AS last_power,
  max(decimals) AS decimals
FROM delegations_in
WHERE kind = 'power'
GROUP BY dao, space, delegate;

CREATE TABLE IF NOT EXISTS delegation_events
(
    dao           UInt64 CODEC(ZSTD(1)),
    at            DateTime('UTC') CODEC(Delta, ZSTD(1)),
    block_number  UInt64 CODEC(Delta, ZSTD(1)),
    log_index     UInt32 CODEC(ZSTD(1)),
    space         LowCardinality(String),
    delegator     String CODEC(ZSTD(3)),
    from_delegate String CODEC(ZSTD(3)),
    to_delegate   String CODEC(ZSTD(3)),
    tx            String CODEC(ZSTD(1)),
    collected_at  DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1))
)
ENGINE = ReplacingMergeTree(collected_at)
ORDER BY (dao, at, block_number, log_index, space);

CREATE MATERIALIZED VIEW IF NOT EXISTS delegation_events_mv TO delegation_events AS
SELECT dao, toDateTime(at, 'UTC') AS at, block_number, log_index, space, delegator, from_delegate, to_delegate, tx, collected_at
FROM delegations_in
WHERE kind = 'delegation';

CREATE TABLE IF NOT EXISTS delegation_readings
(
    dao     UInt64,
    space   String,
    read_at DateTime64(3, 'UTC')
)
ENGINE = ReplacingMergeTree(read_at)
ORDER BY (dao, space);

CREATE MATERIALIZED VIEW IF NOT EXISTS delegation_readings_mv TO delegation_readings AS
SELECT dao, space, at AS read_at
FROM delegations_in
WHERE kind = 'reading';

ALTER TABLE delegate_powers MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

ALTER TABLE delegate_powers_latest MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

ALTER TABLE delegation_events MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

ALTER TABLE delegation_readings MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

CREATE TABLE IF NOT EXISTS alert_rules
(
    rule        String,
    revision    String,
    kind        LowCardinality(String),
    description String,
    state       Enum8('active' = 1, 'paused' = 2, 'removed' = 3),
    began_at    DateTime64(3, 'UTC'),
    written_at  DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC')
)
ENGINE = ReplacingMergeTree(written_at)
ORDER BY rule;

CREATE TABLE IF NOT EXISTS alert_states
(
    rule         String,
    revision     String,
    subject      String,
    holds        Bool,
    value        Nullable(Float64),
    firing_count UInt32,
    fired_at     Nullable(DateTime64(3, 'UTC')),
    written_at   DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC')
)
ENGINE = ReplacingMergeTree(written_at)
ORDER BY (rule, revision, subject);

CREATE TABLE IF NOT EXISTS alert_firings
(
    rule         String,
    id           String,
    revision     String,
    subject      String,
    kind         LowCardinality(String),
    firing_count UInt32,
    holds        Bool,
    fired_at     DateTime64(3, 'UTC'),
    title        String CODEC(ZSTD(3)),
    text         String CODEC(ZSTD(3)),
    entity_type  LowCardinality(String),
    entity_id    String,
    entity_name  String,
    observed_at  Nullable(DateTime64(3, 'UTC')),
    value        Nullable(Float64),
    before       Nullable(Float64),
    threshold    Nullable(Float64),
    unit         LowCardinality(String),
    page         Nullable(String),
    request      Nullable(String),
    channels     Array(LowCardinality(String)),
    due_at       DateTime64(3, 'UTC'),
    is_digest    Bool,
    version      UInt64 MATERIALIZED 9223372036854775807 - toUnixTimestamp64Milli(fired_at)
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (rule, id);

CREATE TABLE IF NOT EXISTS alert_deliveries
(
    rule         String,
    channel      String,
    firing       String,
    message      String,
    due_at       DateTime64(3, 'UTC'),
    state        Enum8('pending' = 1, 'delivered' = 2, 'dead' = 3),
    attempts     UInt32,
    first_try_at Nullable(DateTime64(3, 'UTC')),
    next_try_at  DateTime64(3, 'UTC'),
    reason       String CODEC(ZSTD(3)),
    version      UInt32,
    written_at   DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC')
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (rule, channel, firing);

ALTER TABLE alert_rules MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

ALTER TABLE alert_states MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

ALTER TABLE alert_firings MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

ALTER TABLE alert_deliveries MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

ALTER TABLE governance_in
    ADD COLUMN IF NOT EXISTS body String;

CREATE TABLE IF NOT EXISTS dao_proposal_texts
(
    dao          UInt64,
    space        LowCardinality(String),
    proposal     String CODEC(ZSTD(1)),
    edited_at    DateTime('UTC') CODEC(ZSTD(1)),
    body         String CODEC(ZSTD(3)),
    collected_at DateTime64(3, 'UTC') CODEC(ZSTD(1))
)
ENGINE = ReplacingMergeTree(collected_at)
ORDER BY (dao, space, proposal);

CREATE MATERIALIZED VIEW IF NOT EXISTS dao_proposal_texts_mv TO dao_proposal_texts AS
SELECT dao, space, proposal, toDateTime(at, 'UTC') AS edited_at, body, collected_at
FROM governance_in
WHERE kind = 'text';

ALTER TABLE dao_proposal_texts MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

ALTER TABLE dao_treasuries ADD COLUMN IF NOT EXISTS
    unread Array(Tuple(chain String, address Nullable(String), contract Nullable(String), symbol String)) CODEC(ZSTD(1));

ALTER TABLE dao_treasuries ADD COLUMN IF NOT EXISTS spam Array(Tuple(chain String, contract String)) CODEC(ZSTD(3));

INSERT INTO job_state (job, name, value, written_at)
SELECT DISTINCT 'recount', dataset, 'unproven', now64(3)
FROM coverage
WHERE dataset = 'dex-trades' AND state = 'stored';

ALTER TABLE token_quotes_mv MODIFY QUERY
SELECT token, observed_at, collected_at, price, volume_24h, market_cap, total_supply, circulating_supply, max_supply,
       fully_diluted_market_cap, volume_change_24h, percent_change_1h, percent_change_24h, percent_change_7d,
       percent_change_30d, percent_change_60d, percent_change_90d, tvl
FROM token_quotes_in
WHERE is_latest;

ALTER TABLE token_quotes_in ADD COLUMN IF NOT EXISTS provider LowCardinality(String);

ALTER TABLE token_quotes_in ADD COLUMN IF NOT EXISTS agreement Enum8('single' = 1, 'confirmed' = 2, 'median' = 3, 'persisted' = 4, 'released' = 5);

ALTER TABLE token_quotes_in ADD COLUMN IF NOT EXISTS checked_with Array(LowCardinality(String));

ALTER TABLE token_quotes_in ADD COLUMN IF NOT EXISTS deviation Nullable(Float32);

CREATE TABLE IF NOT EXISTS price_sources
(
    token        UInt64 CODEC(ZSTD(1)),
    observed_at  DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    version      UInt32 CODEC(DoubleDelta, ZSTD(1)),
    provider     LowCardinality(String) CODEC(ZSTD(1)),
    agreement    Enum8('single' = 1, 'confirmed' = 2, 'median' = 3, 'persisted' = 4, 'released' = 5) CODEC(ZSTD(1)),
    checked_with Array(LowCardinality(String)) CODEC(ZSTD(1)),
    deviation    Nullable(Float32) CODEC(ZSTD(1))
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYear(observed_at)
ORDER BY (token, observed_at)
SETTINGS index_granularity = 1024;

CREATE MATERIALIZED VIEW IF NOT EXISTS price_sources_mv TO price_sources AS
SELECT token, observed_at, version, provider, agreement, checked_with, deviation
FROM token_quotes_in;

ALTER TABLE price_sources MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

CREATE TABLE IF NOT EXISTS price_checks
(
    token         UInt64,
    slot          DateTime64(3, 'UTC'),
    exclusions    Array(Tuple(provider String, since DateTime64(3, 'UTC'), recovered UInt8, frozen_at Nullable(Float64))),
    difference_at Nullable(DateTime64(3, 'UTC')),
    gaps          Map(String, Float64),
    written_at    DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC')
)
ENGINE = ReplacingMergeTree(written_at)
ORDER BY (token, slot);

CREATE TABLE IF NOT EXISTS suspect_prices
(
    token        UInt64,
    slot         DateTime64(3, 'UTC'),
    provider     LowCardinality(String),
    observed_at  DateTime64(3, 'UTC'),
    price        Float64,
    others       Array(Tuple(provider String, price Float64, observed_at DateTime64(3, 'UTC'))),
    last_price   Nullable(Float64),
    last_at      Nullable(DateTime64(3, 'UTC')),
    reason       String CODEC(ZSTD(3)),
    is_withheld  Bool,
    state        Enum8('suspect' = 1, 'released' = 2, 'taking_out' = 3, 'taken_out' = 4),
    quote        String CODEC(ZSTD(3)),
    decided_slot DateTime64(3, 'UTC'),
    written_at   DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC')
)
ENGINE = ReplacingMergeTree(written_at)
ORDER BY (token, slot, provider);

ALTER TABLE price_checks MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

ALTER TABLE suspect_prices MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

ALTER TABLE governors_in
    ADD COLUMN IF NOT EXISTS operations Array(String),
    ADD COLUMN IF NOT EXISTS calls Array(String),
    ADD COLUMN IF NOT EXISTS operation String,
    ADD COLUMN IF NOT EXISTS step LowCardinality(String),
    ADD COLUMN IF NOT EXISTS eta Nullable(DateTime('UTC')),
    ADD COLUMN IF NOT EXISTS expires_at Nullable(DateTime('UTC')),
    ADD COLUMN IF NOT EXISTS block_number UInt64,
    ADD COLUMN IF NOT EXISTS log_index UInt32;

ALTER TABLE governor_events
    ADD COLUMN IF NOT EXISTS operations Array(String) CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS calls Array(String) CODEC(ZSTD(1));

ALTER TABLE governor_events_mv MODIFY QUERY
SELECT dao, space, proposal, kind, toDateTime(at, 'UTC') AS at, title, choices, starts_at, ends_at, is_estimated, url, collected_at,
  body, executable_at, actions, operations, calls
FROM governors_in
WHERE kind NOT IN ('vote', 'reading', 'timelock');

CREATE TABLE IF NOT EXISTS timelock_events
(
    dao           UInt64,
    space         LowCardinality(String),
    operation     String CODEC(ZSTD(1)),
    block_number  UInt64 CODEC(ZSTD(1)),
    log_index     UInt32 CODEC(ZSTD(1)),
    step          LowCardinality(String),
    at            DateTime('UTC') CODEC(ZSTD(1)),
    eta           Nullable(DateTime('UTC')) CODEC(ZSTD(1)),
    executable_at Nullable(DateTime('UTC')) CODEC(ZSTD(1)),
    expires_at    Nullable(DateTime('UTC')) CODEC(ZSTD(1)),
    collected_at  DateTime64(3, 'UTC') CODEC(ZSTD(1))
)
ENGINE = ReplacingMergeTree(collected_at)
ORDER BY (dao, space, operation, block_number, log_index);

CREATE MATERIALIZED VIEW IF NOT EXISTS timelock_events_mv TO timelock_events AS
SELECT dao, space, operation, block_number, log_index, step, toDateTime(at, 'UTC') AS at, eta, executable_at, expires_at, collected_at
FROM governors_in
WHERE kind = 'timelock';

ALTER TABLE timelock_events MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

ALTER TABLE dao_proposal_details
    ADD COLUMN IF NOT EXISTS expires_at Nullable(DateTime('UTC')) CODEC(ZSTD(1));

CREATE TABLE IF NOT EXISTS raw_answers
(
    beginning  String CODEC(ZSTD(1)),
    hash       String CODEC(ZSTD(1)),
    body       String CODEC(ZSTD(6)),
    bytes      UInt64 CODEC(ZSTD(1)),
    omitted    String CODEC(ZSTD(1)),
    kept_until DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    INDEX by_hash hash TYPE bloom_filter GRANULARITY 1
)
ENGINE = ReplacingMergeTree(kept_until)
ORDER BY (beginning, hash)
TTL toDateTime(kept_until)
SETTINGS index_granularity = 64, max_compress_block_size = 4194304;

CREATE TABLE IF NOT EXISTS raw_runs
(
    dataset      LowCardinality(String),
    job          LowCardinality(String),
    slot_at      DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    until_at     DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    collected_at DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    run          String CODEC(ZSTD(1)),
    payload      String CODEC(ZSTD(3)),
    state        String CODEC(ZSTD(3)),
    outcome      String CODEC(ZSTD(3)),
    decoder      LowCardinality(String),
    answers      Nested
    (
        provider     LowCardinality(String),
        method       LowCardinality(String),
        host         LowCardinality(String),
        path         String,
        query        String,
        sent         String,
        status       UInt16,
        content_type LowCardinality(String),
        received_at  DateTime64(3, 'UTC'),
        attempt      UInt16,
        code         LowCardinality(String),
        reason       String,
        hash         String,
        bytes        UInt64,
        entities     Array(UInt64)
    ),
    kept_until   DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1))
)
ENGINE = ReplacingMergeTree(kept_until)
ORDER BY (dataset, slot_at, collected_at, run)
TTL toDateTime(kept_until)
SETTINGS index_granularity = 256;

CREATE TABLE IF NOT EXISTS corrections
(
    dataset     LowCardinality(String),
    entity      UInt64,
    observed_at DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    stored_at   DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    job         LowCardinality(String),
    before      Nullable(String) CODEC(ZSTD(3)),
    after       Nullable(String) CODEC(ZSTD(3)),
    reason      String CODEC(ZSTD(1))
)
ENGINE = ReplacingMergeTree
ORDER BY (entity, dataset, observed_at, stored_at);

ALTER TABLE raw_answers MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

ALTER TABLE raw_runs MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

ALTER TABLE corrections MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

CREATE TABLE IF NOT EXISTS treasury_flows
(
    dao                UInt64 CODEC(ZSTD(1)),
    recorded_at        DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    chain              LowCardinality(String),
    transaction_hash   String CODEC(ZSTD(1)),
    contract_address   String CODEC(ZSTD(1)),
    sender             String CODEC(ZSTD(1)),
    recipient          String CODEC(ZSTD(1)),
    base_units         UInt256 CODEC(ZSTD(1)),
    occurrence         UInt32 CODEC(ZSTD(1)),
    block_number       UInt64 CODEC(Delta, ZSTD(1)),
    symbol             String CODEC(ZSTD(1)),
    decimals           Nullable(UInt8) CODEC(ZSTD(1)),
    wallet             String CODEC(ZSTD(1)),
    counterparty       String CODEC(ZSTD(1)),
    counterparty_label String CODEC(ZSTD(1)),
    direction          Enum8('in' = 1, 'out' = 2, 'internal' = 3, 'swap' = 4) CODEC(ZSTD(1)),
    leg                LowCardinality(String),
    kind               Enum8('spam' = 1, 'internal' = 2, 'swap' = 3, 'investment' = 4, 'mint' = 5, 'burn' = 6, 'income' = 7, 'spending' = 8) CODEC(ZSTD(1)),
    rule               LowCardinality(String),
    category           LowCardinality(String),
    swap_group         String CODEC(ZSTD(1)),
    provider           LowCardinality(String),
    collected_at       DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC') CODEC(Delta, ZSTD(1))
)
ENGINE = ReplacingMergeTree(collected_at)
ORDER BY (dao, recorded_at, chain, transaction_hash, contract_address, sender, recipient, base_units, occurrence)
SETTINGS index_granularity = 1024;

ALTER TABLE treasury_flows MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

CREATE TABLE IF NOT EXISTS holding_prices
(
    dao              UInt64 CODEC(ZSTD(1)),
    contract_address String CODEC(ZSTD(1)),
    chain            LowCardinality(String),
    day              Date CODEC(Delta, ZSTD(1)),
    price_usd        Float64 CODEC(ZSTD(1)),
    collected_at     DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1))
)
ENGINE = ReplacingMergeTree(collected_at)
ORDER BY (dao, contract_address, chain, day)
SETTINGS index_granularity = 1024;

ALTER TABLE holding_prices MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS holding_prices_mv TO holding_prices AS
SELECT if(holding.contract = '0xeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee', '', assumeNotNull(holding.contract)) AS contract_address,
  holding.chain AS chain, toDate(observed_at, 'UTC') AS day, dao,
  sum(assumeNotNull(holding.value_usd)) / sum(holding.quantity) AS price_usd, collected_at
FROM (SELECT dao, arrayJoin(holdings) AS holding, observed_at, collected_at FROM dao_treasuries)
WHERE isNotNull(holding.contract) AND holding.value_usd > 0 AND holding.quantity > 0
GROUP BY contract_address, chain, day, dao, collected_at;

INSERT INTO holding_prices (contract_address, chain, day, dao, price_usd, collected_at)
SELECT if(holding.contract = '0xeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee', '', assumeNotNull(holding.contract)) AS contract_address,
  holding.chain AS chain, toDate(observed_at, 'UTC') AS day, dao, sum(assumeNotNull(holding.value_usd)) / sum(holding.quantity), collected_at
FROM (SELECT dao, arrayJoin(holdings) AS holding, observed_at, collected_at FROM dao_treasuries FINAL)
WHERE isNotNull(holding.contract) AND holding.value_usd > 0 AND holding.quantity > 0
GROUP BY contract_address, chain, day, dao, collected_at;

ALTER TABLE governors_in ADD COLUMN IF NOT EXISTS tx String;

ALTER TABLE governor_events ADD COLUMN IF NOT EXISTS tx String CODEC(ZSTD(1));

ALTER TABLE governor_events_mv MODIFY QUERY
SELECT dao, space, proposal, kind, toDateTime(at, 'UTC') AS at, title, choices, starts_at, ends_at, is_estimated, url, collected_at,
  body, executable_at, actions, operations, calls, tx
FROM governors_in
WHERE kind NOT IN ('vote', 'reading', 'timelock');

ALTER TABLE timelock_events ADD COLUMN IF NOT EXISTS tx String CODEC(ZSTD(1));

ALTER TABLE timelock_events_mv MODIFY QUERY
SELECT dao, space, operation, block_number, log_index, step, toDateTime(at, 'UTC') AS at, eta, executable_at, expires_at, collected_at, tx
FROM governors_in
WHERE kind = 'timelock';

ALTER TABLE dao_proposal_details ADD COLUMN IF NOT EXISTS executed_tx String CODEC(ZSTD(1));

ALTER TABLE governors_in
    ADD COLUMN IF NOT EXISTS quorum_exact Nullable(UInt256),
    ADD COLUMN IF NOT EXISTS quorum_counts LowCardinality(String),
    ADD COLUMN IF NOT EXISTS is_quorum_live Bool;

ALTER TABLE governor_events
    ADD COLUMN IF NOT EXISTS quorum_exact Nullable(UInt256) CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS quorum_counts LowCardinality(String) CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS is_quorum_live Bool CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS decimals UInt8 CODEC(ZSTD(1));

ALTER TABLE governor_events_mv MODIFY QUERY
SELECT dao, space, proposal, kind, toDateTime(at, 'UTC') AS at, title, choices, starts_at, ends_at, is_estimated, url, collected_at,
  body, executable_at, actions, operations, calls, tx, quorum_exact, quorum_counts, is_quorum_live, decimals
FROM governors_in
WHERE kind NOT IN ('vote', 'reading', 'timelock');

ALTER TABLE dao_proposal_details
    ADD COLUMN IF NOT EXISTS quorum_exact Nullable(UInt256) CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS quorum_counts LowCardinality(String) CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS is_quorum_live Bool CODEC(ZSTD(1));

ALTER TABLE token_holders ADD COLUMN IF NOT EXISTS provider LowCardinality(String) CODEC(ZSTD(1));

ALTER TABLE twitter_counts ADD COLUMN IF NOT EXISTS provider LowCardinality(String) CODEC(ZSTD(1));

ALTER TABLE discord_members ADD COLUMN IF NOT EXISTS provider LowCardinality(String) CODEC(ZSTD(1));

ALTER TABLE telegram_members ADD COLUMN IF NOT EXISTS provider LowCardinality(String) CODEC(ZSTD(1));

ALTER TABLE twitter_sentiment ADD COLUMN IF NOT EXISTS provider LowCardinality(String) CODEC(ZSTD(1));

CREATE TABLE IF NOT EXISTS treasury_flow_days
(
    dao     UInt64 CODEC(ZSTD(1)),
    day     Date CODEC(Delta, ZSTD(1)),
    sums    Array(Tuple(chain String, contract_address String, kind String, direction String, leg String, symbol String, decimals Nullable(UInt8), base_units UInt256, transfers UInt64, last_at DateTime64(3, 'UTC'))) CODEC(ZSTD(1)),
    version UInt128 CODEC(ZSTD(1))
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (dao, day)
SETTINGS index_granularity = 256;

ALTER TABLE treasury_flow_days MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

INSERT INTO treasury_flow_days (dao, day, sums, version)
SELECT dao, day,
  arraySort(groupArrayIf(tuple(chain, contract_address, kind, direction, leg, symbol, decimals, base_units, transfers, last_at), kind != 'spam')) AS sums,
  bitShiftLeft(toUInt128(sum(transfers)), 64) + toUInt128(sum(collected)) AS version
FROM
(
  SELECT f.dao AS dao, toDate(f.recorded_at) AS day, toString(f.kind) AS kind, toString(f.direction) AS direction, toString(f.leg) AS leg,
    if(f.kind = 'spam', '', toString(f.chain)) AS chain, if(f.kind = 'spam', '', f.contract_address) AS contract_address,
    argMax(f.symbol, f.recorded_at) AS symbol, max(f.decimals) AS decimals, sum(f.base_units) AS base_units, count() AS transfers,
    max(f.recorded_at) AS last_at, sum(toUnixTimestamp64Milli(f.collected_at)) AS collected
  FROM treasury_flows AS f FINAL
  GROUP BY dao, day, kind, direction, leg, chain, contract_address
)
GROUP BY dao, day;

CREATE TABLE IF NOT EXISTS dao_votes_by_voter
(
    dao          UInt64 CODEC(ZSTD(1)),
    voter        String CODEC(ZSTD(3)),
    created_at   DateTime('UTC') CODEC(Delta, ZSTD(1)),
    proposal     LowCardinality(String),
    space        LowCardinality(String),
    choice       String CODEC(ZSTD(1)),
    voting_power Nullable(Float64) CODEC(ZSTD(1)),
    is_replaced  Bool CODEC(ZSTD(1)),
    collected_at DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1))
)
ENGINE = ReplacingMergeTree(collected_at)
ORDER BY (dao, voter, created_at, proposal, space)
SETTINGS index_granularity = 1024;

ALTER TABLE dao_votes_by_voter MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS dao_votes_by_voter_mv TO dao_votes_by_voter AS
SELECT dao, voter, created_at, proposal, space, choice, voting_power, is_replaced, collected_at
FROM dao_cast_votes;

INSERT INTO dao_votes_by_voter (dao, voter, created_at, proposal, space, choice, voting_power, is_replaced, collected_at)
SELECT dao, voter, created_at, proposal, space, choice, voting_power, is_replaced, collected_at FROM dao_cast_votes;

ALTER TABLE treasury_flows ADD INDEX IF NOT EXISTS by_party [sender, recipient] TYPE bloom_filter(0.01) GRANULARITY 1;

ALTER TABLE treasury_flows MATERIALIZE INDEX by_party;

ALTER TABLE treasury_flows ADD INDEX IF NOT EXISTS by_collection collected_at TYPE minmax GRANULARITY 1;

ALTER TABLE treasury_flows MATERIALIZE INDEX by_collection;
