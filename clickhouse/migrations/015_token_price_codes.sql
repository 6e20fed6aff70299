-- Prices, volumes and market caps as integers, which pack into a third to two thirds of the bytes and come back bit by bit.
--
-- A price or volume with few decimals, as exchanges quote it, is stored as its digits and the place of the decimal point:
-- bitNot(digits * 8 + place), where `place` counts in a list of powers of ten. A number is stored so only if dividing the
-- digits by the power gives the very same Float64. Any other is stored as the bits of its Float64. Neither can be taken
-- for the other: codes of digits lie between -2^52 and 0, where bits would mean values that are no numbers. Integers, unlike
-- Float64, can be packed by T64: against FPC that made prices of full precision 8 % smaller and recorded ones of an
-- exchange, with few decimals, 65 %.
--
-- A market cap is in what providers send the product of price and circulating supply, to the last bit. Stored is how far
-- its bits are from the product's: next to nothing then, and its own bits where the supply is not known.
--
-- The columns of old are computed from these, so that nobody who reads sees a difference. Every step may be repeated, and
-- reads and inserts go on meanwhile: first new rows bring codes, of which the columns of old take their values; then rows
-- that were there before get codes, as bits; then the columns of old give up their bytes, unless a row is found without a
-- code, of an insert that was under way when its view changed: the file fails then and is done again. A query over them may not call
-- something else `price`: a cluster's nodes are sent the expression under that name.
--
-- Roll-ups have so few rows that their parts stayed compact, a block of each column every 1024 rows. As wide parts from
-- 256 kB on they take 12 % less.
ALTER TABLE token_quotes_in
    ADD COLUMN IF NOT EXISTS price_place UInt8 MATERIALIZED arrayFirstIndex(
        power -> price > 0 AND price * power < 5e14 AND round(price * power) / power = price,
        [1e0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12]),
    ADD COLUMN IF NOT EXISTS volume_24h_place UInt8 MATERIALIZED arrayFirstIndex(
        power -> assumeNotNull(volume_24h) > 0 AND assumeNotNull(volume_24h) * power < 5e14 AND round(assumeNotNull(volume_24h) * power) / power = assumeNotNull(volume_24h),
        [1e0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12]),
    ADD COLUMN IF NOT EXISTS price_code Int64 MATERIALIZED if(price_place = 0,
        reinterpretAsInt64(price),
        bitNot(toInt64(round(price * [1e0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12][price_place])) * 8 + price_place)),
    ADD COLUMN IF NOT EXISTS volume_24h_code Nullable(Int64) MATERIALIZED if(volume_24h IS NULL, NULL, if(volume_24h_place = 0,
        reinterpretAsInt64(assumeNotNull(volume_24h)),
        bitNot(toInt64(round(assumeNotNull(volume_24h) * [1e0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12][volume_24h_place])) * 8 + volume_24h_place))),
    ADD COLUMN IF NOT EXISTS market_cap_code Nullable(Int64) MATERIALIZED if(market_cap IS NULL, NULL, reinterpretAsInt64(assumeNotNull(market_cap)) - reinterpretAsInt64(price * ifNull(circulating_supply, 0)));

ALTER TABLE token_prices
    ADD COLUMN IF NOT EXISTS price_code Int64 CODEC(Delta, T64('bit'), ZSTD(1)),
    ADD COLUMN IF NOT EXISTS volume_24h_code Nullable(Int64) CODEC(Delta, T64('bit'), ZSTD(1)),
    ADD COLUMN IF NOT EXISTS market_cap_code Nullable(Int64) CODEC(Delta, T64('bit'), ZSTD(1)),
    MODIFY COLUMN price Float64 DEFAULT if(price_code < 0 AND price_code > -4503599627370496,
        bitShiftRight(bitNot(price_code), 3) / [1e0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12][bitAnd(bitNot(price_code), 7)],
        reinterpretAsFloat64(price_code)),
    MODIFY COLUMN volume_24h Nullable(Float64) DEFAULT if(volume_24h_code IS NULL, NULL, if(assumeNotNull(volume_24h_code) < 0 AND assumeNotNull(volume_24h_code) > -4503599627370496,
        bitShiftRight(bitNot(assumeNotNull(volume_24h_code)), 3) / [1e0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12][bitAnd(bitNot(assumeNotNull(volume_24h_code)), 7)],
        reinterpretAsFloat64(assumeNotNull(volume_24h_code)))),
    MODIFY COLUMN market_cap Nullable(Float64) DEFAULT if(market_cap_code IS NULL, NULL,
        reinterpretAsFloat64(assumeNotNull(market_cap_code) + reinterpretAsInt64(price * ifNull(circulating_supply, 0))));

ALTER TABLE token_prices_mv MODIFY QUERY
SELECT token, observed_at, price_code, volume_24h_code, market_cap_code, total_supply, circulating_supply,
       toUInt8((volume_24h_code IS NOT NULL) + (market_cap_code IS NOT NULL) + (total_supply IS NOT NULL) + (circulating_supply IS NOT NULL)) AS known_count
FROM token_quotes_in;

ALTER TABLE token_prices_30m
    ADD COLUMN IF NOT EXISTS price_code Int64 CODEC(Delta, T64('bit'), ZSTD(1)),
    ADD COLUMN IF NOT EXISTS volume_24h_code Nullable(Int64) CODEC(Delta, T64('bit'), ZSTD(1)),
    ADD COLUMN IF NOT EXISTS market_cap_code Nullable(Int64) CODEC(Delta, T64('bit'), ZSTD(1)),
    MODIFY COLUMN price Float64 DEFAULT if(price_code < 0 AND price_code > -4503599627370496,
        bitShiftRight(bitNot(price_code), 3) / [1e0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12][bitAnd(bitNot(price_code), 7)],
        reinterpretAsFloat64(price_code)),
    MODIFY COLUMN volume_24h Nullable(Float64) DEFAULT if(volume_24h_code IS NULL, NULL, if(assumeNotNull(volume_24h_code) < 0 AND assumeNotNull(volume_24h_code) > -4503599627370496,
        bitShiftRight(bitNot(assumeNotNull(volume_24h_code)), 3) / [1e0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12][bitAnd(bitNot(assumeNotNull(volume_24h_code)), 7)],
        reinterpretAsFloat64(assumeNotNull(volume_24h_code)))),
    MODIFY COLUMN market_cap Nullable(Float64) DEFAULT if(market_cap_code IS NULL, NULL,
        reinterpretAsFloat64(assumeNotNull(market_cap_code) + reinterpretAsInt64(price * ifNull(circulating_supply, 0))));

ALTER TABLE token_prices_30m_mv MODIFY QUERY
SELECT token,
       bucket_at,
       toUInt64(toInt64(toUnixTimestamp(bucket_at)) * 1000 + 1800000 - toUnixTimestamp64Milli(first_at)) * 8 + first_quote.6 AS rank,
       first_quote.1 AS price_code,
       first_quote.2 AS volume_24h_code,
       first_quote.3 AS market_cap_code,
       first_quote.4 AS total_supply,
       first_quote.5 AS circulating_supply
FROM
(
    SELECT token,
           toStartOfInterval(observed_at, INTERVAL 30 MINUTE, 'UTC') AS bucket_at,
           min(observed_at) AS first_at,
           argMin((price_code, volume_24h_code, market_cap_code, total_supply, circulating_supply, known_count), (observed_at, -known_count)) AS first_quote
    FROM
    (
        SELECT token, observed_at, price_code, volume_24h_code, market_cap_code, total_supply, circulating_supply,
               toInt16((volume_24h_code IS NOT NULL) + (market_cap_code IS NOT NULL) + (total_supply IS NOT NULL) + (circulating_supply IS NOT NULL)) AS known_count
        FROM token_quotes_in
    )
    GROUP BY token, bucket_at
);

ALTER TABLE token_prices_1h
    ADD COLUMN IF NOT EXISTS price_code Int64 CODEC(Delta, T64('bit'), ZSTD(1)),
    ADD COLUMN IF NOT EXISTS volume_24h_code Nullable(Int64) CODEC(Delta, T64('bit'), ZSTD(1)),
    ADD COLUMN IF NOT EXISTS market_cap_code Nullable(Int64) CODEC(Delta, T64('bit'), ZSTD(1)),
    MODIFY COLUMN price Float64 DEFAULT if(price_code < 0 AND price_code > -4503599627370496,
        bitShiftRight(bitNot(price_code), 3) / [1e0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12][bitAnd(bitNot(price_code), 7)],
        reinterpretAsFloat64(price_code)),
    MODIFY COLUMN volume_24h Nullable(Float64) DEFAULT if(volume_24h_code IS NULL, NULL, if(assumeNotNull(volume_24h_code) < 0 AND assumeNotNull(volume_24h_code) > -4503599627370496,
        bitShiftRight(bitNot(assumeNotNull(volume_24h_code)), 3) / [1e0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12][bitAnd(bitNot(assumeNotNull(volume_24h_code)), 7)],
        reinterpretAsFloat64(assumeNotNull(volume_24h_code)))),
    MODIFY COLUMN market_cap Nullable(Float64) DEFAULT if(market_cap_code IS NULL, NULL,
        reinterpretAsFloat64(assumeNotNull(market_cap_code) + reinterpretAsInt64(price * ifNull(circulating_supply, 0))));

ALTER TABLE token_prices_1h_mv MODIFY QUERY
SELECT token,
       bucket_at,
       toUInt64(toInt64(toUnixTimestamp(bucket_at)) * 1000 + 3600000 - toUnixTimestamp64Milli(first_at)) * 8 + first_quote.6 AS rank,
       first_quote.1 AS price_code,
       first_quote.2 AS volume_24h_code,
       first_quote.3 AS market_cap_code,
       first_quote.4 AS total_supply,
       first_quote.5 AS circulating_supply
FROM
(
    SELECT token,
           toStartOfInterval(observed_at, INTERVAL 60 MINUTE, 'UTC') AS bucket_at,
           min(observed_at) AS first_at,
           argMin((price_code, volume_24h_code, market_cap_code, total_supply, circulating_supply, known_count), (observed_at, -known_count)) AS first_quote
    FROM
    (
        SELECT token, observed_at, price_code, volume_24h_code, market_cap_code, total_supply, circulating_supply,
               toInt16((volume_24h_code IS NOT NULL) + (market_cap_code IS NOT NULL) + (total_supply IS NOT NULL) + (circulating_supply IS NOT NULL)) AS known_count
        FROM token_quotes_in
    )
    GROUP BY token, bucket_at
);

ALTER TABLE token_prices_4h
    ADD COLUMN IF NOT EXISTS price_code Int64 CODEC(Delta, T64('bit'), ZSTD(1)),
    ADD COLUMN IF NOT EXISTS volume_24h_code Nullable(Int64) CODEC(Delta, T64('bit'), ZSTD(1)),
    ADD COLUMN IF NOT EXISTS market_cap_code Nullable(Int64) CODEC(Delta, T64('bit'), ZSTD(1)),
    MODIFY COLUMN price Float64 DEFAULT if(price_code < 0 AND price_code > -4503599627370496,
        bitShiftRight(bitNot(price_code), 3) / [1e0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12][bitAnd(bitNot(price_code), 7)],
        reinterpretAsFloat64(price_code)),
    MODIFY COLUMN volume_24h Nullable(Float64) DEFAULT if(volume_24h_code IS NULL, NULL, if(assumeNotNull(volume_24h_code) < 0 AND assumeNotNull(volume_24h_code) > -4503599627370496,
        bitShiftRight(bitNot(assumeNotNull(volume_24h_code)), 3) / [1e0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12][bitAnd(bitNot(assumeNotNull(volume_24h_code)), 7)],
        reinterpretAsFloat64(assumeNotNull(volume_24h_code)))),
    MODIFY COLUMN market_cap Nullable(Float64) DEFAULT if(market_cap_code IS NULL, NULL,
        reinterpretAsFloat64(assumeNotNull(market_cap_code) + reinterpretAsInt64(price * ifNull(circulating_supply, 0))));

ALTER TABLE token_prices_4h_mv MODIFY QUERY
SELECT token,
       bucket_at,
       toUInt64(toInt64(toUnixTimestamp(bucket_at)) * 1000 + 14400000 - toUnixTimestamp64Milli(first_at)) * 8 + first_quote.6 AS rank,
       first_quote.1 AS price_code,
       first_quote.2 AS volume_24h_code,
       first_quote.3 AS market_cap_code,
       first_quote.4 AS total_supply,
       first_quote.5 AS circulating_supply
FROM
(
    SELECT token,
           toStartOfInterval(observed_at, INTERVAL 240 MINUTE, 'UTC') AS bucket_at,
           min(observed_at) AS first_at,
           argMin((price_code, volume_24h_code, market_cap_code, total_supply, circulating_supply, known_count), (observed_at, -known_count)) AS first_quote
    FROM
    (
        SELECT token, observed_at, price_code, volume_24h_code, market_cap_code, total_supply, circulating_supply,
               toInt16((volume_24h_code IS NOT NULL) + (market_cap_code IS NOT NULL) + (total_supply IS NOT NULL) + (circulating_supply IS NOT NULL)) AS known_count
        FROM token_quotes_in
    )
    GROUP BY token, bucket_at
);

ALTER TABLE token_prices_1d
    ADD COLUMN IF NOT EXISTS price_code Int64 CODEC(Delta, T64('bit'), ZSTD(1)),
    ADD COLUMN IF NOT EXISTS volume_24h_code Nullable(Int64) CODEC(Delta, T64('bit'), ZSTD(1)),
    ADD COLUMN IF NOT EXISTS market_cap_code Nullable(Int64) CODEC(Delta, T64('bit'), ZSTD(1)),
    MODIFY COLUMN price Float64 DEFAULT if(price_code < 0 AND price_code > -4503599627370496,
        bitShiftRight(bitNot(price_code), 3) / [1e0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12][bitAnd(bitNot(price_code), 7)],
        reinterpretAsFloat64(price_code)),
    MODIFY COLUMN volume_24h Nullable(Float64) DEFAULT if(volume_24h_code IS NULL, NULL, if(assumeNotNull(volume_24h_code) < 0 AND assumeNotNull(volume_24h_code) > -4503599627370496,
        bitShiftRight(bitNot(assumeNotNull(volume_24h_code)), 3) / [1e0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12][bitAnd(bitNot(assumeNotNull(volume_24h_code)), 7)],
        reinterpretAsFloat64(assumeNotNull(volume_24h_code)))),
    MODIFY COLUMN market_cap Nullable(Float64) DEFAULT if(market_cap_code IS NULL, NULL,
        reinterpretAsFloat64(assumeNotNull(market_cap_code) + reinterpretAsInt64(price * ifNull(circulating_supply, 0))));

ALTER TABLE token_prices_1d_mv MODIFY QUERY
SELECT token,
       bucket_at,
       toUInt64(toInt64(toUnixTimestamp(bucket_at)) * 1000 + 86400000 - toUnixTimestamp64Milli(first_at)) * 8 + first_quote.6 AS rank,
       first_quote.1 AS price_code,
       first_quote.2 AS volume_24h_code,
       first_quote.3 AS market_cap_code,
       first_quote.4 AS total_supply,
       first_quote.5 AS circulating_supply
FROM
(
    SELECT token,
           toStartOfDay(observed_at, 'UTC') AS bucket_at,
           min(observed_at) AS first_at,
           argMin((price_code, volume_24h_code, market_cap_code, total_supply, circulating_supply, known_count), (observed_at, -known_count)) AS first_quote
    FROM
    (
        SELECT token, observed_at, price_code, volume_24h_code, market_cap_code, total_supply, circulating_supply,
               toInt16((volume_24h_code IS NOT NULL) + (market_cap_code IS NOT NULL) + (total_supply IS NOT NULL) + (circulating_supply IS NOT NULL)) AS known_count
        FROM token_quotes_in
    )
    GROUP BY token, bucket_at
);

ALTER TABLE token_prices_7d
    ADD COLUMN IF NOT EXISTS price_code Int64 CODEC(Delta, T64('bit'), ZSTD(1)),
    ADD COLUMN IF NOT EXISTS volume_24h_code Nullable(Int64) CODEC(Delta, T64('bit'), ZSTD(1)),
    ADD COLUMN IF NOT EXISTS market_cap_code Nullable(Int64) CODEC(Delta, T64('bit'), ZSTD(1)),
    MODIFY COLUMN price Float64 DEFAULT if(price_code < 0 AND price_code > -4503599627370496,
        bitShiftRight(bitNot(price_code), 3) / [1e0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12][bitAnd(bitNot(price_code), 7)],
        reinterpretAsFloat64(price_code)),
    MODIFY COLUMN volume_24h Nullable(Float64) DEFAULT if(volume_24h_code IS NULL, NULL, if(assumeNotNull(volume_24h_code) < 0 AND assumeNotNull(volume_24h_code) > -4503599627370496,
        bitShiftRight(bitNot(assumeNotNull(volume_24h_code)), 3) / [1e0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12][bitAnd(bitNot(assumeNotNull(volume_24h_code)), 7)],
        reinterpretAsFloat64(assumeNotNull(volume_24h_code)))),
    MODIFY COLUMN market_cap Nullable(Float64) DEFAULT if(market_cap_code IS NULL, NULL,
        reinterpretAsFloat64(assumeNotNull(market_cap_code) + reinterpretAsInt64(price * ifNull(circulating_supply, 0))));

ALTER TABLE token_prices_7d_mv MODIFY QUERY
SELECT token,
       bucket_at,
       toUInt64(toInt64(toUnixTimestamp(bucket_at)) * 1000 + 604800000 - toUnixTimestamp64Milli(first_at)) * 8 + first_quote.6 AS rank,
       first_quote.1 AS price_code,
       first_quote.2 AS volume_24h_code,
       first_quote.3 AS market_cap_code,
       first_quote.4 AS total_supply,
       first_quote.5 AS circulating_supply
FROM
(
    SELECT token,
           toDateTime(toStartOfInterval(observed_at, INTERVAL 1 WEEK, 'UTC'), 'UTC') AS bucket_at,
           min(observed_at) AS first_at,
           argMin((price_code, volume_24h_code, market_cap_code, total_supply, circulating_supply, known_count), (observed_at, -known_count)) AS first_quote
    FROM
    (
        SELECT token, observed_at, price_code, volume_24h_code, market_cap_code, total_supply, circulating_supply,
               toInt16((volume_24h_code IS NOT NULL) + (market_cap_code IS NOT NULL) + (total_supply IS NOT NULL) + (circulating_supply IS NOT NULL)) AS known_count
        FROM token_quotes_in
    )
    GROUP BY token, bucket_at
);

ALTER TABLE token_prices
    UPDATE price_code = reinterpretAsInt64(price),
           volume_24h_code = if(volume_24h IS NULL, NULL, reinterpretAsInt64(assumeNotNull(volume_24h))),
           market_cap_code = if(market_cap IS NULL, NULL, reinterpretAsInt64(assumeNotNull(market_cap)) - reinterpretAsInt64(price * ifNull(circulating_supply, 0)))
    WHERE price_code = 0
    SETTINGS mutations_sync = 2;

INSERT INTO token_prices (token, observed_at)
SELECT token, observed_at FROM token_prices WHERE price_code = 0 AND throwIf(price_code = 0, 'rows came without codes meanwhile: migrate again') = 0;

ALTER TABLE token_prices
    DROP COLUMN IF EXISTS market_cap,
    DROP COLUMN IF EXISTS volume_24h,
    DROP COLUMN IF EXISTS price,
    ADD COLUMN price Float64 ALIAS if(price_code < 0 AND price_code > -4503599627370496,
        bitShiftRight(bitNot(price_code), 3) / [1e0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12][bitAnd(bitNot(price_code), 7)],
        reinterpretAsFloat64(price_code)),
    ADD COLUMN volume_24h Nullable(Float64) ALIAS if(volume_24h_code IS NULL, NULL, if(assumeNotNull(volume_24h_code) < 0 AND assumeNotNull(volume_24h_code) > -4503599627370496,
        bitShiftRight(bitNot(assumeNotNull(volume_24h_code)), 3) / [1e0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12][bitAnd(bitNot(assumeNotNull(volume_24h_code)), 7)],
        reinterpretAsFloat64(assumeNotNull(volume_24h_code)))),
    ADD COLUMN market_cap Nullable(Float64) ALIAS if(market_cap_code IS NULL, NULL,
        reinterpretAsFloat64(assumeNotNull(market_cap_code) + reinterpretAsInt64(price * ifNull(circulating_supply, 0))));

ALTER TABLE token_prices_30m
    UPDATE price_code = reinterpretAsInt64(price),
           volume_24h_code = if(volume_24h IS NULL, NULL, reinterpretAsInt64(assumeNotNull(volume_24h))),
           market_cap_code = if(market_cap IS NULL, NULL, reinterpretAsInt64(assumeNotNull(market_cap)) - reinterpretAsInt64(price * ifNull(circulating_supply, 0)))
    WHERE price_code = 0
    SETTINGS mutations_sync = 2;

INSERT INTO token_prices_30m (token, bucket_at)
SELECT token, bucket_at FROM token_prices_30m WHERE price_code = 0 AND throwIf(price_code = 0, 'rows came without codes meanwhile: migrate again') = 0;

ALTER TABLE token_prices_30m
    DROP COLUMN IF EXISTS market_cap,
    DROP COLUMN IF EXISTS volume_24h,
    DROP COLUMN IF EXISTS price,
    ADD COLUMN price Float64 ALIAS if(price_code < 0 AND price_code > -4503599627370496,
        bitShiftRight(bitNot(price_code), 3) / [1e0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12][bitAnd(bitNot(price_code), 7)],
        reinterpretAsFloat64(price_code)),
    ADD COLUMN volume_24h Nullable(Float64) ALIAS if(volume_24h_code IS NULL, NULL, if(assumeNotNull(volume_24h_code) < 0 AND assumeNotNull(volume_24h_code) > -4503599627370496,
        bitShiftRight(bitNot(assumeNotNull(volume_24h_code)), 3) / [1e0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12][bitAnd(bitNot(assumeNotNull(volume_24h_code)), 7)],
        reinterpretAsFloat64(assumeNotNull(volume_24h_code)))),
    ADD COLUMN market_cap Nullable(Float64) ALIAS if(market_cap_code IS NULL, NULL,
        reinterpretAsFloat64(assumeNotNull(market_cap_code) + reinterpretAsInt64(price * ifNull(circulating_supply, 0))));

ALTER TABLE token_prices_1h
    UPDATE price_code = reinterpretAsInt64(price),
           volume_24h_code = if(volume_24h IS NULL, NULL, reinterpretAsInt64(assumeNotNull(volume_24h))),
           market_cap_code = if(market_cap IS NULL, NULL, reinterpretAsInt64(assumeNotNull(market_cap)) - reinterpretAsInt64(price * ifNull(circulating_supply, 0)))
    WHERE price_code = 0
    SETTINGS mutations_sync = 2;

INSERT INTO token_prices_1h (token, bucket_at)
SELECT token, bucket_at FROM token_prices_1h WHERE price_code = 0 AND throwIf(price_code = 0, 'rows came without codes meanwhile: migrate again') = 0;

ALTER TABLE token_prices_1h
    DROP COLUMN IF EXISTS market_cap,
    DROP COLUMN IF EXISTS volume_24h,
    DROP COLUMN IF EXISTS price,
    ADD COLUMN price Float64 ALIAS if(price_code < 0 AND price_code > -4503599627370496,
        bitShiftRight(bitNot(price_code), 3) / [1e0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12][bitAnd(bitNot(price_code), 7)],
        reinterpretAsFloat64(price_code)),
    ADD COLUMN volume_24h Nullable(Float64) ALIAS if(volume_24h_code IS NULL, NULL, if(assumeNotNull(volume_24h_code) < 0 AND assumeNotNull(volume_24h_code) > -4503599627370496,
        bitShiftRight(bitNot(assumeNotNull(volume_24h_code)), 3) / [1e0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12][bitAnd(bitNot(assumeNotNull(volume_24h_code)), 7)],
        reinterpretAsFloat64(assumeNotNull(volume_24h_code)))),
    ADD COLUMN market_cap Nullable(Float64) ALIAS if(market_cap_code IS NULL, NULL,
        reinterpretAsFloat64(assumeNotNull(market_cap_code) + reinterpretAsInt64(price * ifNull(circulating_supply, 0))));

ALTER TABLE token_prices_4h
    UPDATE price_code = reinterpretAsInt64(price),
           volume_24h_code = if(volume_24h IS NULL, NULL, reinterpretAsInt64(assumeNotNull(volume_24h))),
           market_cap_code = if(market_cap IS NULL, NULL, reinterpretAsInt64(assumeNotNull(market_cap)) - reinterpretAsInt64(price * ifNull(circulating_supply, 0)))
    WHERE price_code = 0
    SETTINGS mutations_sync = 2;

INSERT INTO token_prices_4h (token, bucket_at)
SELECT token, bucket_at FROM token_prices_4h WHERE price_code = 0 AND throwIf(price_code = 0, 'rows came without codes meanwhile: migrate again') = 0;

ALTER TABLE token_prices_4h
    DROP COLUMN IF EXISTS market_cap,
    DROP COLUMN IF EXISTS volume_24h,
    DROP COLUMN IF EXISTS price,
    ADD COLUMN price Float64 ALIAS if(price_code < 0 AND price_code > -4503599627370496,
        bitShiftRight(bitNot(price_code), 3) / [1e0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12][bitAnd(bitNot(price_code), 7)],
        reinterpretAsFloat64(price_code)),
    ADD COLUMN volume_24h Nullable(Float64) ALIAS if(volume_24h_code IS NULL, NULL, if(assumeNotNull(volume_24h_code) < 0 AND assumeNotNull(volume_24h_code) > -4503599627370496,
        bitShiftRight(bitNot(assumeNotNull(volume_24h_code)), 3) / [1e0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12][bitAnd(bitNot(assumeNotNull(volume_24h_code)), 7)],
        reinterpretAsFloat64(assumeNotNull(volume_24h_code)))),
    ADD COLUMN market_cap Nullable(Float64) ALIAS if(market_cap_code IS NULL, NULL,
        reinterpretAsFloat64(assumeNotNull(market_cap_code) + reinterpretAsInt64(price * ifNull(circulating_supply, 0))));

ALTER TABLE token_prices_1d
    UPDATE price_code = reinterpretAsInt64(price),
           volume_24h_code = if(volume_24h IS NULL, NULL, reinterpretAsInt64(assumeNotNull(volume_24h))),
           market_cap_code = if(market_cap IS NULL, NULL, reinterpretAsInt64(assumeNotNull(market_cap)) - reinterpretAsInt64(price * ifNull(circulating_supply, 0)))
    WHERE price_code = 0
    SETTINGS mutations_sync = 2;

INSERT INTO token_prices_1d (token, bucket_at)
SELECT token, bucket_at FROM token_prices_1d WHERE price_code = 0 AND throwIf(price_code = 0, 'rows came without codes meanwhile: migrate again') = 0;

ALTER TABLE token_prices_1d
    DROP COLUMN IF EXISTS market_cap,
    DROP COLUMN IF EXISTS volume_24h,
    DROP COLUMN IF EXISTS price,
    ADD COLUMN price Float64 ALIAS if(price_code < 0 AND price_code > -4503599627370496,
        bitShiftRight(bitNot(price_code), 3) / [1e0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12][bitAnd(bitNot(price_code), 7)],
        reinterpretAsFloat64(price_code)),
    ADD COLUMN volume_24h Nullable(Float64) ALIAS if(volume_24h_code IS NULL, NULL, if(assumeNotNull(volume_24h_code) < 0 AND assumeNotNull(volume_24h_code) > -4503599627370496,
        bitShiftRight(bitNot(assumeNotNull(volume_24h_code)), 3) / [1e0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12][bitAnd(bitNot(assumeNotNull(volume_24h_code)), 7)],
        reinterpretAsFloat64(assumeNotNull(volume_24h_code)))),
    ADD COLUMN market_cap Nullable(Float64) ALIAS if(market_cap_code IS NULL, NULL,
        reinterpretAsFloat64(assumeNotNull(market_cap_code) + reinterpretAsInt64(price * ifNull(circulating_supply, 0))));

ALTER TABLE token_prices_7d
    UPDATE price_code = reinterpretAsInt64(price),
           volume_24h_code = if(volume_24h IS NULL, NULL, reinterpretAsInt64(assumeNotNull(volume_24h))),
           market_cap_code = if(market_cap IS NULL, NULL, reinterpretAsInt64(assumeNotNull(market_cap)) - reinterpretAsInt64(price * ifNull(circulating_supply, 0)))
    WHERE price_code = 0
    SETTINGS mutations_sync = 2;

INSERT INTO token_prices_7d (token, bucket_at)
SELECT token, bucket_at FROM token_prices_7d WHERE price_code = 0 AND throwIf(price_code = 0, 'rows came without codes meanwhile: migrate again') = 0;

ALTER TABLE token_prices_7d
    DROP COLUMN IF EXISTS market_cap,
    DROP COLUMN IF EXISTS volume_24h,
    DROP COLUMN IF EXISTS price,
    ADD COLUMN price Float64 ALIAS if(price_code < 0 AND price_code > -4503599627370496,
        bitShiftRight(bitNot(price_code), 3) / [1e0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12][bitAnd(bitNot(price_code), 7)],
        reinterpretAsFloat64(price_code)),
    ADD COLUMN volume_24h Nullable(Float64) ALIAS if(volume_24h_code IS NULL, NULL, if(assumeNotNull(volume_24h_code) < 0 AND assumeNotNull(volume_24h_code) > -4503599627370496,
        bitShiftRight(bitNot(assumeNotNull(volume_24h_code)), 3) / [1e0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12][bitAnd(bitNot(assumeNotNull(volume_24h_code)), 7)],
        reinterpretAsFloat64(assumeNotNull(volume_24h_code)))),
    ADD COLUMN market_cap Nullable(Float64) ALIAS if(market_cap_code IS NULL, NULL,
        reinterpretAsFloat64(assumeNotNull(market_cap_code) + reinterpretAsInt64(price * ifNull(circulating_supply, 0))));

ALTER TABLE token_prices_30m
    MODIFY SETTING min_bytes_for_wide_part = 262144;

ALTER TABLE token_prices_1h
    MODIFY SETTING min_bytes_for_wide_part = 262144;

ALTER TABLE token_prices_4h
    MODIFY SETTING min_bytes_for_wide_part = 262144;

ALTER TABLE token_prices_1d
    MODIFY SETTING min_bytes_for_wide_part = 262144;

ALTER TABLE token_prices_7d
    MODIFY SETTING min_bytes_for_wide_part = 262144;
