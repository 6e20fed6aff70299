-- How DAOs vote. Jobs insert once, into a table that stores nothing; its views put votes, proposals and readings where
-- they belong. Every target replaces by its natural key, so an insert may be repeated or sent again after a view failed.
CREATE TABLE IF NOT EXISTS governance_in
(
    dao      UInt64,
    space    String,
    kind     LowCardinality(String),
    proposal String,
    address  String,
    at       DateTime64(3, 'UTC')
)
ENGINE = Null;

-- A voter has one vote on a proposal: voting again replaces it, under another id at the source, so that the voter and
-- the proposal are the key. Sorted by voter, the distinct voters of a DAO come out in order, without a table in memory.
CREATE TABLE IF NOT EXISTS dao_votes
(
    dao        UInt64 CODEC(ZSTD(1)),
    space      LowCardinality(String),
    voter      String CODEC(ZSTD(3)),
    proposal   LowCardinality(String),
    created_at DateTime('UTC') CODEC(Delta, ZSTD(1))
)
ENGINE = {engine}ReplacingMergeTree(created_at)
ORDER BY (dao, space, voter, proposal);

CREATE MATERIALIZED VIEW IF NOT EXISTS dao_votes_mv TO dao_votes AS
SELECT dao, space, address AS voter, proposal, toDateTime(at, 'UTC') AS created_at
FROM governance_in
WHERE kind = 'vote';

CREATE TABLE IF NOT EXISTS dao_proposals
(
    dao        UInt64 CODEC(ZSTD(1)),
    space      LowCardinality(String),
    proposal   String CODEC(ZSTD(1)),
    author     String CODEC(ZSTD(1)),
    created_at DateTime('UTC') CODEC(ZSTD(1))
)
ENGINE = {engine}ReplacingMergeTree(created_at)
ORDER BY (dao, space, proposal);

CREATE MATERIALIZED VIEW IF NOT EXISTS dao_proposals_mv TO dao_proposals AS
SELECT dao, space, proposal, address AS author, toDateTime(at, 'UTC') AS created_at
FROM governance_in
WHERE kind = 'proposal';

-- When a space was last read to its end. Before the first time its votes are incomplete and no counts are told.
CREATE TABLE IF NOT EXISTS governance_readings
(
    dao     UInt64,
    space   String,
    read_at DateTime64(3, 'UTC')
)
ENGINE = {engine}ReplacingMergeTree(read_at)
ORDER BY (dao, space);

CREATE MATERIALIZED VIEW IF NOT EXISTS governance_readings_mv TO governance_readings AS
SELECT dao, space, at AS read_at
FROM governance_in
WHERE kind = 'reading';
