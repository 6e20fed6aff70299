-- The provider of each stored price, and the evidence for it. A table of its own, with the key and the version of `token_prices`,
-- so the series that most answers read stay as small as they are. Prices of earlier versions have no row or an empty provider.
--
-- The view names its columns before the new ones exist: it selected all of them, and its target has no others.
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

-- `agreement`: `single` is the price of one provider near the last one; `confirmed` agrees with another provider; `median` with
-- one of two others; `persisted` was the same for half an hour, `released` for a day or by the operator's command.
-- `deviation` is |ln(price / price of another provider)|, the largest over the agreeing ones.
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
ENGINE = {engine}ReplacingMergeTree(version)
PARTITION BY toYear(observed_at)
ORDER BY (token, observed_at)
SETTINGS index_granularity = 1024;

CREATE MATERIALIZED VIEW IF NOT EXISTS price_sources_mv TO price_sources AS
SELECT token, observed_at, version, provider, agreement, checked_with, deviation
FROM token_quotes_in;

ALTER TABLE price_sources MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;
