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
ENGINE = {engine}ReplacingMergeTree(version)
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
ENGINE = {engine}ReplacingMergeTree(version)
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
ENGINE = {engine}ReplacingMergeTree(rank)
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
