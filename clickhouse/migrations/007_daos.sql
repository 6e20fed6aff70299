-- The registry's DAOs as the API's records. The files in shared/registry are the truth; every migration run brings this
-- table in step with them. A DAO that left the files stays with live = false, because series refer to it. `links` holds
-- what providers know of the links that the files leave empty, by the name of the column they stand in for.
-- `changes` counts how often the record changed since it was first stored. Of two writers that make the same change at
-- once the earlier one counts, whichever is stored last: a newer version is one with more changes, then an older time.
CREATE TABLE IF NOT EXISTS daos
(
    key                UInt64,
    id                 String,
    slug               String,
    name               String,
    image              Nullable(String),
    category_ids       Array(String),
    mission            String,
    website            Nullable(String),
    twitter            Nullable(String),
    discord            Nullable(String),
    telegram           Nullable(String),
    whitepaper         Nullable(String),
    tokenomics         Nullable(String),
    chain_ids          Array(String),
    token_key          Nullable(UInt64),
    live               Bool,
    twitter_id         Nullable(String),
    verified           Bool,
    description        String,
    is_otc             Bool,
    snapshot_name      Nullable(String),
    treasury_addresses Array(String),
    links              Map(String, String),
    created_at         DateTime64(3, 'UTC'),
    updated_at         DateTime64(3, 'UTC'),
    changes            UInt32,
    version            UInt64 DEFAULT bitShiftLeft(toUInt64(changes), 42) + (4398046511103 - toUnixTimestamp64Milli(updated_at))
)
ENGINE = {engine}ReplacingMergeTree(version)
ORDER BY key;

-- What a source says a DAO's link or logo is: the newest word of each source about each field. A source's silence about
-- a field does not take its earlier word back; of two words of one slot the one that was collected later stays.
CREATE TABLE IF NOT EXISTS dao_links
(
    dao          UInt64,
    field        LowCardinality(String),
    source       LowCardinality(String),
    value        String,
    observed_at  DateTime64(3, 'UTC'),
    collected_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC'),
    version      UInt128 MATERIALIZED bitShiftLeft(toUInt128(toUnixTimestamp64Milli(observed_at)), 64) + toUnixTimestamp64Milli(collected_at)
)
ENGINE = {engine}ReplacingMergeTree(version)
ORDER BY (dao, field, source);
