CREATE TABLE IF NOT EXISTS migrations
(
    name       String,
    checksum   String,
    applied_at DateTime64(3, 'UTC')
)
ENGINE = ReplacingMergeTree(applied_at)
ORDER BY name;

-- The registry's tokens as ClickHouse sees them, so that it can filter, order and write token records by itself.
-- The files in shared/registry are the truth; every migration run brings this table in step with them. A token that
-- left the files stays with live = false, because series refer to it.
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

-- Token market data. Jobs insert once, into a table that stores nothing; its views fill the raw series, the latest quotes
-- and the roll-ups. Every target replaces by its natural key, so an insert may be repeated, run in parallel or be sent
-- again after a view failed half-way, and the answer stays the same. Of two observations of the same time the one that
-- knows more of its values stays, so that a provider which stands in with less takes nothing away; of two that know as
-- much, the one that was collected later; of two collected in the same minute, the one that is stored last. That holds
-- in every table, because all of them get each row and leave the choice to the engine.
--
-- How values are stored. Integers, unlike Float64, can be packed by T64: prices, volumes and market caps take a third to
-- two thirds of the bytes that the best codec for Float64 leaves (FPC), and come back bit by bit.
--
-- A price or volume with few decimals, as exchanges quote it, is stored as its digits and the place of the decimal point:
-- bitNot(digits * 8 + place), where `place` counts in a list of powers of ten. A number is stored so only if dividing the
-- digits by the power gives the very same Float64. Any other is stored as the bits of its Float64. Neither can be taken
-- for the other: codes of digits lie between -2^52 and 0, where bits would mean values that are no numbers.
--
-- A market cap is in what providers send the product of price and circulating supply, to the last bit. Stored is how far
-- its bits are from the product's: next to nothing then, and its own bits where the supply is not known.
--
-- These functions are the only place that knows of this. ClickHouse writes what they say into the tables below when it
-- makes them, so a later change of a function changes no table. Functions belong to the server and not to a database:
-- a file makes those that it uses, under names that begin with the project's.
CREATE OR REPLACE FUNCTION dao_data_powers AS () -> [1e0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12];

-- Which of the powers makes digits of a number; 0 where none does.
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

-- `version` is what of two observations of the same time decides: how many of the four other values are known, times
-- 2^28, plus how many minutes after the observation it was collected. Minutes since then, unlike a time, hardly change
-- from one row to the next, and take no space.
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

-- The raw series: every observation under its own time. It is the 5-minute tier as well: about one observation arrives
-- per cadence, so a 5-minute roll-up would repeat this one row for row and cost more than the five coarser ones together.
--
-- `price`, `volume_24h` and `market_cap` are read as if they were stored. They cannot be inserted here, where only codes
-- are, and a condition on them reads every row of its range; both go through `token_quotes_in` and the sorting key.
-- Stored as Float64 beside the codes or in their place they would take three times the bytes.
-- A query over them may not call something else `price`: a cluster's nodes are sent the expression under that name.
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

-- The newest quote of each token with everything a latest quote says; of two of the same time, the one collected later.
-- Historical quotes lack most of it and stay out.
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

-- The roll-ups: the first observation of each bucket, for every interval that is coarser than the raw series. The view
-- puts each observation into its bucket of every interval, and the largest `rank` stays: how long before the bucket's
-- end the observation was made, in milliseconds, times 2^31, plus its version. So what stays of a bucket is what stays
-- in the raw series of its first moment. All buckets lie on a grid from the first Monday, 1970-01-05, on.
--
-- `observed_at` is told from the rank: stored as well it would say the same twice. There are so few rows that parts
-- would stay compact, a block of each column every 1024 rows; as wide parts from 256 kB on they take 12 % less.
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

-- Total value locked per DAO, in USD, as the sum over its protocols at one time. Of two rows of one time the one that was
-- collected later stays, whichever is stored last.
CREATE TABLE IF NOT EXISTS protocol_tvl
(
    dao          UInt64 CODEC(ZSTD(1)),
    observed_at  DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    collected_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    tvl_usd      Float64 CODEC(FPC(12), ZSTD(1))
)
ENGINE = ReplacingMergeTree(collected_at)
ORDER BY (dao, observed_at);

-- The newest value of each DAO: the latest time, and of that what was collected last.
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

-- What a job must remember from one run to the next, such as the block it has read up to. Written after the rows it
-- speaks of, so that a run that dies between the two reads the same range again. Where a job has read up to is kept for
-- as long as the job may come back. What is of use only while it is young goes after a month: how far a table was rebuilt,
-- and when each dataset was last committed.
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
ENGINE = ReplacingMergeTree(collected_at)
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
ENGINE = ReplacingMergeTree(version)
ORDER BY token;

CREATE MATERIALIZED VIEW IF NOT EXISTS token_holders_latest_mv TO token_holders_latest AS
SELECT token, observed_at, collected_at, total_holders, top100_share, holders
FROM token_holders;

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
ENGINE = ReplacingMergeTree(collected_at)
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
ENGINE = ReplacingMergeTree(version)
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
ENGINE = ReplacingMergeTree
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
ENGINE = ReplacingMergeTree(version)
ORDER BY token;

-- The registry's DAOs as the API's records. The files in shared/registry are the truth; every migration run brings this
-- table in step with them. A DAO that left the files stays with live = false, because series refer to it. `links` holds
-- what providers know of the links that the files leave empty, by the name of the column they stand in for.
-- `changes` counts how often the record changed since it was first stored. Of two writers that make the same change at
-- once the earlier one counts, whichever is stored last: a newer version is one with more changes, then an older time.
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

-- What a source says a DAO's link or logo is: the newest word of each source about each field. A source's silence about
-- a field does not take its earlier word back; of two words of one slot the one that was collected later stays.
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

-- How DAOs vote. Jobs insert once, into a table that stores nothing; its views put votes, proposals and readings where
-- they belong. Every target replaces by its natural key, so an insert may be repeated or sent again after a view failed.
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

-- A voter has one vote on a proposal: voting again replaces it, under another id at the source, so that the voter and
-- the proposal are the key. Sorted by voter, the distinct voters of a DAO come out in order, without a table in memory.
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

-- When a space was last read to its end. Before the first time its votes are incomplete and no counts are told.
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
ENGINE = ReplacingMergeTree(collected_at)
ORDER BY (dao, observed_at)
SETTINGS index_granularity = 256;

-- Ratings as each day's import of the operator's file found them. Every import is kept, so that what left the file can be
-- told from what is still in it. Of two imports of one day the later one stays, whichever is stored last.
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

-- The newest import of each DAO.
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

-- What DAOs' accounts on X count, a row per DAO and day. The time is the start of the day that a count was taken on, so
-- that taking it again replaces the row and a series has one point a day: the one that was collected later stays,
-- whichever is stored last.
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

-- The newest day of each DAO.
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

-- Members of DAOs' communities on Discord, a row per DAO and day, as `twitter_counts` has them. The networks are stored
-- apart: each comes from a provider of its own, at its own time, and may fail without the others.
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

-- The newest day of each DAO.
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
ENGINE = ReplacingMergeTree(collected_at)
ORDER BY (dao, observed_at)
SETTINGS index_granularity = 1024;

-- The mood of posts about DAOs, a row per DAO and day. Numbers of posts are stored, not shares: shares are rounded so
-- that they sum to one, which is the reader's business. The lexicon's name tells which points may be compared. Of two
-- rows of one day the one that was collected later stays, whichever is stored last.
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

-- The newest day of each DAO.
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

-- The market cap of all members of the registry together, one row a UTC day, computed from the stored series. Of two
-- computations of a day the one that began later has seen more and wins, whichever is stored last. A day that has lost its
-- last member is withdrawn, and comes back should it have one again.
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

-- The value of the treasuries of all members of the registry together, kept as `market_caps` is.
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
ENGINE = ReplacingMergeTree(computed_at, is_retracted)
PARTITION BY toYear(created_at)
ORDER BY (index_key, created_at)
SETTINGS index_granularity = 1024;

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
ENGINE = ReplacingMergeTree(collected_at)
ORDER BY (index_key, created_at)
SETTINGS index_granularity = 1024;

-- What was collected, as data: which buckets of time of which entity are stored, by whom and at which step, and why others
-- are not. A run writes its rows and then says here what it has of whom. Everything that decides what to collect reads
-- this; the queues only know who works on what now.
--
-- A bucket is a cadence of its dataset: its number is the time in seconds divided by the cadence's. A year of an entity is
-- one row for each provider and step, and the numbers in it are a bitmap, which a run of them without gaps hardly fills.
-- Bits are only ever added, so that any report may come twice, late or from two workers at once.
--
-- `stored`: there is a row, which stands for `interval_seconds` from its bucket on; more than a cadence is coarser data.
-- `nothing`: the provider was asked at that step and has nothing there, for sure.
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

-- `first` and `last` are the first and the last bucket of a report; both are of one year.
CREATE MATERIALIZED VIEW IF NOT EXISTS coverage_mv TO coverage AS
SELECT dataset,
       entity,
       toYear(toDateTime(toInt64(first) * cadence_seconds, 'UTC')) AS year,
       state,
       provider,
       interval_seconds,
       bitmapBuild(CAST(range(first, last + 1), 'Array(UInt32)')) AS buckets
FROM coverage_in;

-- Why buckets are not stored, or only at a coarser step: what the last try that was about them came to. A note of the live
-- lane begins with the first slot that an entity missed and stays open until a slot has it again; one of the history lane
-- is about the range that a job asked for. A note explains the buckets of its time that `coverage` does not have, and no
-- others.
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

-- What there should be: from when on a dataset is collected, without an end, and the ranges that somebody asked for.
-- Entity 0 is all that the dataset collects for.
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

-- Which hours or days of a computed dataset were computed since the rows were stored that they are computed from. Written
-- after those rows, so that a computation that nobody enqueued, or that was lost, is found.
CREATE TABLE IF NOT EXISTS computations
(
    dataset     LowCardinality(String),
    unit_at     DateTime('UTC'),
    stored_at   SimpleAggregateFunction(max, DateTime64(3, 'UTC')),
    computed_at SimpleAggregateFunction(max, DateTime64(3, 'UTC'))
)
ENGINE = AggregatingMergeTree
ORDER BY (dataset, unit_at);

-- What is known of each proposal and of each vote beside that it was made.
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

-- Of a vote that was stored when powers were not collected it is unknown, until every vote is read once more.
ALTER TABLE dao_votes
    ADD COLUMN IF NOT EXISTS voting_power Nullable(Float64) CODEC(ZSTD(1));

ALTER TABLE dao_votes_mv MODIFY QUERY
SELECT dao, space, address AS voter, proposal, toDateTime(at, 'UTC') AS created_at, voting_power
FROM governance_in
WHERE kind = 'vote';

-- The same votes in order of time, of which a page is read without the others. The choice is JSON as the source gave it: a
-- number, a list or an object, by the type of voting; empty where it was not collected. dao_votes keeps the last vote of a
-- voter on a proposal; here the ones before it stay, marked.
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

-- The public id (contract section 3), by which the votes on a proposal are asked for.
ALTER TABLE dao_proposals
    ADD COLUMN IF NOT EXISTS id String DEFAULT substring(lower(hex(SHA256(concat('proposal', '\x1f', toString(dao), '\x1f', proposal)))), 1, 24) CODEC(ZSTD(1));

-- What a source said of a proposal when it was last read. Who made a proposal and when never changes and stands in
-- dao_proposals; all of this may: titles are edited, scores grow, and a proposal is taken back.
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

-- When the last reading began that saw every proposal of a space. What was not seen since is no more.
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

-- What a treasury's total is made of, in the row of the total itself, so that neither is ever of another moment than the
-- other: each asset on each chain at each address. A chain is the registry's slug, or a word of the source's own where it
-- tells none; address and contract are null where the source does not tell them. Rows from before, and those of a source
-- that only tells totals, have no holdings. `spam_count` says how many tokens were left out as spam; null is unknown.
ALTER TABLE dao_treasuries ADD COLUMN IF NOT EXISTS
    holdings Array(Tuple(chain String, address Nullable(String), contract Nullable(String), symbol String, quantity Float64,
        value_usd Nullable(Float64), price_source Nullable(String), kind String)) CODEC(ZSTD(3));

ALTER TABLE dao_treasuries ADD COLUMN IF NOT EXISTS spam_count Nullable(UInt32) CODEC(ZSTD(1));

-- Which of the past was changed, when and by which job: whoever keeps a copy of a series learns what to read again. A row is
-- a range of one entity that a job of the history lane stored anew, be it for the first time. Entity 0 is all of a dataset
-- together. The same work done again is the same row with its latest time.
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

-- Votes on contracts beside those on Snapshot. They stand in the tables of votes and proposals, told apart by their space,
-- which is the contract's account id (eip155:1:0x...) and no name of a Snapshot space. A contract tells what happens to a
-- proposal one event at a time; what is known of it is put together of these.
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

-- From there on a vote goes the way of every vote.
CREATE MATERIALIZED VIEW IF NOT EXISTS governors_votes_mv TO governance_in AS
SELECT dao, space, kind, proposal, address, at, choice, voting_power, collected_at
FROM governors_in
WHERE kind = 'vote';

CREATE MATERIALIZED VIEW IF NOT EXISTS governors_proposals_mv TO dao_proposals AS
SELECT dao, space, proposal, address AS author, toDateTime(at, 'UTC') AS created_at
FROM governors_in
WHERE kind = 'proposal';

-- What happens to a proposal at most once: that it was made ('proposal'), canceled, queued or executed; and its times, which
-- are estimates while the chain has not reached the blocks that it counts to. The same event read again replaces itself.
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

-- When a contract was last read to its newest final block. Before the first time its votes are incomplete and not told.
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

-- What became of a proposal on its chain, empty where nothing did or its source tells nothing of it.
ALTER TABLE dao_proposal_details
    ADD COLUMN IF NOT EXISTS outcome LowCardinality(String),
    ADD COLUMN IF NOT EXISTS is_estimated Bool DEFAULT false;

-- The registry that is in force, as every process reads it. A version is a whole registry: `version` is the digest of its
-- records, so that storing the same one again, at once or from two machines, changes nothing. `list` is categories, chains,
-- tokens, daos or index, `position` the record's place in it.
CREATE TABLE IF NOT EXISTS registry_records
(
    version  String,
    list     LowCardinality(String),
    position UInt32,
    record   String CODEC(ZSTD(3))
)
ENGINE = ReplacingMergeTree
ORDER BY (version, list, position);

-- The versions there were, each with the number of its records and when it last came into force. It is written after them.
CREATE TABLE IF NOT EXISTS registry_versions
(
    version   String,
    records   UInt32,
    stored_at DateTime64(3, 'UTC')
)
ENGINE = ReplacingMergeTree(stored_at)
ORDER BY version;

-- Until 2026-11-22 a job remembered its failing providers under the name 'failing providers since', each with its time and
-- no reason. This copies them into the present form. `written_at` stays, so that whatever a job has remembered since counts.
INSERT INTO job_state (job, name, value, written_at)
SELECT job,
       'failing providers',
       toJSONString(mapApply((provider, since) -> (provider, map('since', since, 'reason', 'noted by an earlier version, without a reason')),
                             JSONExtract(value, 'Map(String, String)'))),
       written_at
FROM job_state FINAL
WHERE name = 'failing providers since';

-- Rows are on the disk before an insert is answered. Else a power loss would take what the system had not written yet, up to
-- half a minute: of socials, holders, sentiment and the index token no provider has that a second time, and the ledger and
-- the cursors, once they are on the disk, must not speak of rows that are not. Merged parts are safe as well: the parts that
-- they replace stay for eight minutes. `npm run bench -- durability` measures the cost.
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

-- What Snapshot says of a proposal beside its scores: whether they are final (`pending`, `final` or `invalid`, empty where it
-- says nothing), and whether it flagged the proposal as spam or a scam.
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

-- Shares come from probabilities, not only from counts: the mean of the probabilities that a model gives each post of the
-- sample. The neutral share is the rest. Rows from before are judged by the word list alone, whose shares are those of the
-- counts. The counts stay: a post is counted under the mood with its highest score, and their sum is the size of the sample.
ALTER TABLE twitter_sentiment
    ADD COLUMN IF NOT EXISTS positive_share Float64 DEFAULT positive_posts / (positive_posts + neutral_posts + negative_posts),
    ADD COLUMN IF NOT EXISTS negative_share Float64 DEFAULT negative_posts / (positive_posts + neutral_posts + negative_posts),
    ADD COLUMN IF NOT EXISTS unknown_posts Nullable(UInt32),
    ADD COLUMN IF NOT EXISTS model LowCardinality(String) DEFAULT lexicon;

-- Every row until now was judged by this word list.
ALTER TABLE twitter_sentiment_latest
    ADD COLUMN IF NOT EXISTS positive_share Float64 DEFAULT positive_posts / (positive_posts + neutral_posts + negative_posts),
    ADD COLUMN IF NOT EXISTS negative_share Float64 DEFAULT negative_posts / (positive_posts + neutral_posts + negative_posts),
    ADD COLUMN IF NOT EXISTS unknown_posts Nullable(UInt32),
    ADD COLUMN IF NOT EXISTS model LowCardinality(String) DEFAULT 'afinn-165+crypto-1';

ALTER TABLE twitter_sentiment_latest_mv MODIFY QUERY
SELECT dao, observed_at, collected_at, positive_posts, neutral_posts, negative_posts, positive_share, negative_share, unknown_posts,
  model
FROM twitter_sentiment;
