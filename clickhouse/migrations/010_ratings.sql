-- Ratings as each day's import of the operator's file found them. Every import is kept, so that what left the file can be
-- told from what is still in it.
CREATE TABLE IF NOT EXISTS dao_ratings
(
    dao                UInt64 CODEC(ZSTD(1)),
    observed_at        DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
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
ENGINE = {engine}ReplacingMergeTree
ORDER BY (dao, observed_at);
