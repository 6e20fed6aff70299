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
ENGINE = {engine}ReplacingMergeTree(collected_at)
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
ENGINE = {engine}ReplacingMergeTree(version)
ORDER BY dao;

CREATE MATERIALIZED VIEW IF NOT EXISTS twitter_sentiment_latest_mv TO twitter_sentiment_latest AS
SELECT dao, observed_at, collected_at, positive_posts, neutral_posts, negative_posts
FROM twitter_sentiment;
