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
