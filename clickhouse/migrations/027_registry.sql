-- The registry that is in force, as every process reads it. A version is a whole registry: `version` is the digest of its
-- records, so that storing the same one again, at once or from two machines, changes nothing. `list` is categories, chains,
-- tokens, daos or index, `position` the record's place in it.
CREATE TABLE IF NOT EXISTS registry_records
(
    version  String,
    list     LowCardinality(String),
    position UInt32,
    record   String CODEC(ZSTD(3))
)
ENGINE = {engine}ReplacingMergeTree
ORDER BY (version, list, position);

-- The versions there were, each with the number of its records and when it last came into force. It is written after them.
CREATE TABLE IF NOT EXISTS registry_versions
(
    version   String,
    records   UInt32,
    stored_at DateTime64(3, 'UTC')
)
ENGINE = {engine}ReplacingMergeTree(stored_at)
ORDER BY version;
