-- The provider of each stored row. Rows of earlier versions have an empty text: their provider is not known. Tables of the newest
-- rows do not have it, because no answer about the newest rows names it.
ALTER TABLE token_holders ADD COLUMN IF NOT EXISTS provider LowCardinality(String) CODEC(ZSTD(1));
ALTER TABLE twitter_counts ADD COLUMN IF NOT EXISTS provider LowCardinality(String) CODEC(ZSTD(1));
ALTER TABLE discord_members ADD COLUMN IF NOT EXISTS provider LowCardinality(String) CODEC(ZSTD(1));
ALTER TABLE telegram_members ADD COLUMN IF NOT EXISTS provider LowCardinality(String) CODEC(ZSTD(1));
ALTER TABLE twitter_sentiment ADD COLUMN IF NOT EXISTS provider LowCardinality(String) CODEC(ZSTD(1));
