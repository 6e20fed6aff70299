-- The mood of posts about DAOs, a row per DAO and day. Numbers of posts are stored, not shares: shares are rounded so
-- that they sum to one, which is the reader's business. The lexicon's name tells which points may be compared.
CREATE TABLE IF NOT EXISTS twitter_sentiment
(
    dao            UInt64 CODEC(ZSTD(1)),
    observed_at    DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    positive_posts UInt32 CODEC(ZSTD(1)),
    neutral_posts  UInt32 CODEC(ZSTD(1)),
    negative_posts UInt32 CODEC(ZSTD(1)),
    lexicon        LowCardinality(String)
)
ENGINE = {engine}ReplacingMergeTree
ORDER BY (dao, observed_at)
SETTINGS index_granularity = 1024;
