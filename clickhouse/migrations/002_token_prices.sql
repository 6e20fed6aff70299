-- Token market data. Jobs insert once, into a table that stores nothing; its views fill the raw series, the latest
-- quotes and the roll-ups. Every target replaces by its natural key, so an insert may be repeated, run in parallel or be
-- sent again after a view failed half-way, and the answer stays the same. Of two observations of the same time the one
-- that knows more of its values stays (`known_count`), so that a provider which stands in with less takes nothing away;
-- of two that know as much, the later one.
CREATE TABLE IF NOT EXISTS token_quotes_in
(
    token                    UInt64,
    observed_at              DateTime64(3, 'UTC'),
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
    tvl                      Nullable(Float64)
)
ENGINE = Null;

-- The raw series: every observation under its own time. It is the 5-minute tier as well: about one observation arrives
-- per cadence, so a 5-minute table would repeat this one row for row and cost more than the five coarser tiers together.
CREATE TABLE IF NOT EXISTS token_prices
(
    token              UInt64 CODEC(ZSTD(1)),
    observed_at        DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    price              Float64 CODEC(FPC(12), ZSTD(1)),
    volume_24h         Nullable(Float64) CODEC(FPC(12), ZSTD(1)),
    market_cap         Nullable(Float64) CODEC(FPC(12), ZSTD(1)),
    total_supply       Nullable(Float64) CODEC(FPC(12), ZSTD(1)),
    circulating_supply Nullable(Float64) CODEC(FPC(12), ZSTD(1)),
    known_count        UInt8 CODEC(ZSTD(1))
)
ENGINE = {engine}ReplacingMergeTree(known_count)
PARTITION BY toYear(observed_at)
ORDER BY (token, observed_at)
SETTINGS index_granularity = 1024;

CREATE MATERIALIZED VIEW IF NOT EXISTS token_prices_mv TO token_prices AS
SELECT token, observed_at, price, volume_24h, market_cap, total_supply, circulating_supply,
       toUInt8((volume_24h IS NOT NULL) + (market_cap IS NOT NULL) + (total_supply IS NOT NULL) + (circulating_supply IS NOT NULL)) AS known_count
FROM token_quotes_in;

-- The newest quote of each token with everything a latest quote says. Historical quotes lack most of it and stay out.
CREATE TABLE IF NOT EXISTS token_quotes
(
    token                    UInt64,
    observed_at              DateTime64(3, 'UTC'),
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
    tvl                      Nullable(Float64)
)
ENGINE = {engine}ReplacingMergeTree(observed_at)
ORDER BY token;

CREATE MATERIALIZED VIEW IF NOT EXISTS token_quotes_mv TO token_quotes AS
SELECT * EXCEPT is_latest
FROM token_quotes_in
WHERE is_latest;

-- The roll-ups keep the first observation of each bucket. The largest `rank` stays: how long before the bucket's end the
-- observation was made, in milliseconds, times 8, plus how many of its four other values are known.
CREATE TABLE IF NOT EXISTS token_prices_30m
(
    token              UInt64 CODEC(ZSTD(1)),
    bucket_at          DateTime('UTC') CODEC(DoubleDelta, ZSTD(1)),
    rank               UInt64 CODEC(T64, ZSTD(1)),
    price              Float64 CODEC(FPC(12), ZSTD(1)),
    volume_24h         Nullable(Float64) CODEC(FPC(12), ZSTD(1)),
    market_cap         Nullable(Float64) CODEC(FPC(12), ZSTD(1)),
    total_supply       Nullable(Float64) CODEC(FPC(12), ZSTD(1)),
    circulating_supply Nullable(Float64) CODEC(FPC(12), ZSTD(1)),
    observed_at        DateTime64(3, 'UTC') ALIAS fromUnixTimestamp64Milli(toInt64(toUnixTimestamp(bucket_at)) * 1000 + 1800000 - intDiv(rank, 8), 'UTC')
)
ENGINE = {engine}ReplacingMergeTree(rank)
PARTITION BY toYear(bucket_at)
ORDER BY (token, bucket_at)
SETTINGS index_granularity = 1024;

CREATE MATERIALIZED VIEW IF NOT EXISTS token_prices_30m_mv TO token_prices_30m AS
SELECT token,
       bucket_at,
       toUInt64(toInt64(toUnixTimestamp(bucket_at)) * 1000 + 1800000 - toUnixTimestamp64Milli(first_at)) * 8 + first_quote.6 AS rank,
       first_quote.1 AS price,
       first_quote.2 AS volume_24h,
       first_quote.3 AS market_cap,
       first_quote.4 AS total_supply,
       first_quote.5 AS circulating_supply
FROM
(
    SELECT token,
           toStartOfInterval(observed_at, INTERVAL 30 MINUTE, 'UTC') AS bucket_at,
           min(observed_at) AS first_at,
           argMin((price, volume_24h, market_cap, total_supply, circulating_supply, known_count), (observed_at, -known_count)) AS first_quote
    FROM
    (
        SELECT *, toInt16((volume_24h IS NOT NULL) + (market_cap IS NOT NULL) + (total_supply IS NOT NULL) + (circulating_supply IS NOT NULL)) AS known_count
        FROM token_quotes_in
    )
    GROUP BY token, bucket_at
);

CREATE TABLE IF NOT EXISTS token_prices_1h
(
    token              UInt64 CODEC(ZSTD(1)),
    bucket_at          DateTime('UTC') CODEC(DoubleDelta, ZSTD(1)),
    rank               UInt64 CODEC(T64, ZSTD(1)),
    price              Float64 CODEC(FPC(12), ZSTD(1)),
    volume_24h         Nullable(Float64) CODEC(FPC(12), ZSTD(1)),
    market_cap         Nullable(Float64) CODEC(FPC(12), ZSTD(1)),
    total_supply       Nullable(Float64) CODEC(FPC(12), ZSTD(1)),
    circulating_supply Nullable(Float64) CODEC(FPC(12), ZSTD(1)),
    observed_at        DateTime64(3, 'UTC') ALIAS fromUnixTimestamp64Milli(toInt64(toUnixTimestamp(bucket_at)) * 1000 + 3600000 - intDiv(rank, 8), 'UTC')
)
ENGINE = {engine}ReplacingMergeTree(rank)
PARTITION BY toYear(bucket_at)
ORDER BY (token, bucket_at)
SETTINGS index_granularity = 1024;

CREATE MATERIALIZED VIEW IF NOT EXISTS token_prices_1h_mv TO token_prices_1h AS
SELECT token,
       bucket_at,
       toUInt64(toInt64(toUnixTimestamp(bucket_at)) * 1000 + 3600000 - toUnixTimestamp64Milli(first_at)) * 8 + first_quote.6 AS rank,
       first_quote.1 AS price,
       first_quote.2 AS volume_24h,
       first_quote.3 AS market_cap,
       first_quote.4 AS total_supply,
       first_quote.5 AS circulating_supply
FROM
(
    SELECT token,
           toStartOfInterval(observed_at, INTERVAL 60 MINUTE, 'UTC') AS bucket_at,
           min(observed_at) AS first_at,
           argMin((price, volume_24h, market_cap, total_supply, circulating_supply, known_count), (observed_at, -known_count)) AS first_quote
    FROM
    (
        SELECT *, toInt16((volume_24h IS NOT NULL) + (market_cap IS NOT NULL) + (total_supply IS NOT NULL) + (circulating_supply IS NOT NULL)) AS known_count
        FROM token_quotes_in
    )
    GROUP BY token, bucket_at
);

CREATE TABLE IF NOT EXISTS token_prices_4h
(
    token              UInt64 CODEC(ZSTD(1)),
    bucket_at          DateTime('UTC') CODEC(DoubleDelta, ZSTD(1)),
    rank               UInt64 CODEC(T64, ZSTD(1)),
    price              Float64 CODEC(FPC(12), ZSTD(1)),
    volume_24h         Nullable(Float64) CODEC(FPC(12), ZSTD(1)),
    market_cap         Nullable(Float64) CODEC(FPC(12), ZSTD(1)),
    total_supply       Nullable(Float64) CODEC(FPC(12), ZSTD(1)),
    circulating_supply Nullable(Float64) CODEC(FPC(12), ZSTD(1)),
    observed_at        DateTime64(3, 'UTC') ALIAS fromUnixTimestamp64Milli(toInt64(toUnixTimestamp(bucket_at)) * 1000 + 14400000 - intDiv(rank, 8), 'UTC')
)
ENGINE = {engine}ReplacingMergeTree(rank)
ORDER BY (token, bucket_at)
SETTINGS index_granularity = 1024;

CREATE MATERIALIZED VIEW IF NOT EXISTS token_prices_4h_mv TO token_prices_4h AS
SELECT token,
       bucket_at,
       toUInt64(toInt64(toUnixTimestamp(bucket_at)) * 1000 + 14400000 - toUnixTimestamp64Milli(first_at)) * 8 + first_quote.6 AS rank,
       first_quote.1 AS price,
       first_quote.2 AS volume_24h,
       first_quote.3 AS market_cap,
       first_quote.4 AS total_supply,
       first_quote.5 AS circulating_supply
FROM
(
    SELECT token,
           toStartOfInterval(observed_at, INTERVAL 240 MINUTE, 'UTC') AS bucket_at,
           min(observed_at) AS first_at,
           argMin((price, volume_24h, market_cap, total_supply, circulating_supply, known_count), (observed_at, -known_count)) AS first_quote
    FROM
    (
        SELECT *, toInt16((volume_24h IS NOT NULL) + (market_cap IS NOT NULL) + (total_supply IS NOT NULL) + (circulating_supply IS NOT NULL)) AS known_count
        FROM token_quotes_in
    )
    GROUP BY token, bucket_at
);

CREATE TABLE IF NOT EXISTS token_prices_1d
(
    token              UInt64 CODEC(ZSTD(1)),
    bucket_at          DateTime('UTC') CODEC(DoubleDelta, ZSTD(1)),
    rank               UInt64 CODEC(T64, ZSTD(1)),
    price              Float64 CODEC(FPC(12), ZSTD(1)),
    volume_24h         Nullable(Float64) CODEC(FPC(12), ZSTD(1)),
    market_cap         Nullable(Float64) CODEC(FPC(12), ZSTD(1)),
    total_supply       Nullable(Float64) CODEC(FPC(12), ZSTD(1)),
    circulating_supply Nullable(Float64) CODEC(FPC(12), ZSTD(1)),
    observed_at        DateTime64(3, 'UTC') ALIAS fromUnixTimestamp64Milli(toInt64(toUnixTimestamp(bucket_at)) * 1000 + 86400000 - intDiv(rank, 8), 'UTC')
)
ENGINE = {engine}ReplacingMergeTree(rank)
ORDER BY (token, bucket_at)
SETTINGS index_granularity = 1024;

CREATE MATERIALIZED VIEW IF NOT EXISTS token_prices_1d_mv TO token_prices_1d AS
SELECT token,
       bucket_at,
       toUInt64(toInt64(toUnixTimestamp(bucket_at)) * 1000 + 86400000 - toUnixTimestamp64Milli(first_at)) * 8 + first_quote.6 AS rank,
       first_quote.1 AS price,
       first_quote.2 AS volume_24h,
       first_quote.3 AS market_cap,
       first_quote.4 AS total_supply,
       first_quote.5 AS circulating_supply
FROM
(
    SELECT token,
           toStartOfDay(observed_at, 'UTC') AS bucket_at,
           min(observed_at) AS first_at,
           argMin((price, volume_24h, market_cap, total_supply, circulating_supply, known_count), (observed_at, -known_count)) AS first_quote
    FROM
    (
        SELECT *, toInt16((volume_24h IS NOT NULL) + (market_cap IS NOT NULL) + (total_supply IS NOT NULL) + (circulating_supply IS NOT NULL)) AS known_count
        FROM token_quotes_in
    )
    GROUP BY token, bucket_at
);

CREATE TABLE IF NOT EXISTS token_prices_7d
(
    token              UInt64 CODEC(ZSTD(1)),
    bucket_at          DateTime('UTC') CODEC(DoubleDelta, ZSTD(1)),
    rank               UInt64 CODEC(T64, ZSTD(1)),
    price              Float64 CODEC(FPC(12), ZSTD(1)),
    volume_24h         Nullable(Float64) CODEC(FPC(12), ZSTD(1)),
    market_cap         Nullable(Float64) CODEC(FPC(12), ZSTD(1)),
    total_supply       Nullable(Float64) CODEC(FPC(12), ZSTD(1)),
    circulating_supply Nullable(Float64) CODEC(FPC(12), ZSTD(1)),
    observed_at        DateTime64(3, 'UTC') ALIAS fromUnixTimestamp64Milli(toInt64(toUnixTimestamp(bucket_at)) * 1000 + 604800000 - intDiv(rank, 8), 'UTC')
)
ENGINE = {engine}ReplacingMergeTree(rank)
ORDER BY (token, bucket_at)
SETTINGS index_granularity = 1024;

CREATE MATERIALIZED VIEW IF NOT EXISTS token_prices_7d_mv TO token_prices_7d AS
SELECT token,
       bucket_at,
       toUInt64(toInt64(toUnixTimestamp(bucket_at)) * 1000 + 604800000 - toUnixTimestamp64Milli(first_at)) * 8 + first_quote.6 AS rank,
       first_quote.1 AS price,
       first_quote.2 AS volume_24h,
       first_quote.3 AS market_cap,
       first_quote.4 AS total_supply,
       first_quote.5 AS circulating_supply
FROM
(
    SELECT token,
           toDateTime(toStartOfInterval(observed_at, INTERVAL 1 WEEK, 'UTC'), 'UTC') AS bucket_at,
           min(observed_at) AS first_at,
           argMin((price, volume_24h, market_cap, total_supply, circulating_supply, known_count), (observed_at, -known_count)) AS first_quote
    FROM
    (
        SELECT *, toInt16((volume_24h IS NOT NULL) + (market_cap IS NOT NULL) + (total_supply IS NOT NULL) + (circulating_supply IS NOT NULL)) AS known_count
        FROM token_quotes_in
    )
    GROUP BY token, bucket_at
);
