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
ENGINE = {engine}ReplacingMergeTree(collected_at)
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
ENGINE = {engine}ReplacingMergeTree(version)
ORDER BY dao;

CREATE MATERIALIZED VIEW IF NOT EXISTS dao_ratings_latest_mv TO dao_ratings_latest AS
SELECT dao, observed_at, collected_at, rated_at, overall_rating, fundamental_rating, governance, team, competitive_moat,
       value_proposition, token_economics
FROM dao_ratings;
