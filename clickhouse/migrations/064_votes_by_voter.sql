-- The votes of `dao_cast_votes` in the order of their voters. The record of one voter reads a few of its granules; in the order of
-- time it would read the votes of all voters. A vote that is marked as replaced replaces its row here, too.
CREATE TABLE IF NOT EXISTS dao_votes_by_voter
(
    dao          UInt64 CODEC(ZSTD(1)),
    voter        String CODEC(ZSTD(3)),
    created_at   DateTime('UTC') CODEC(Delta, ZSTD(1)),
    proposal     LowCardinality(String),
    space        LowCardinality(String),
    choice       String CODEC(ZSTD(1)),
    voting_power Nullable(Float64) CODEC(ZSTD(1)),
    is_replaced  Bool CODEC(ZSTD(1)),
    collected_at DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1))
)
ENGINE = {engine}ReplacingMergeTree(collected_at)
ORDER BY (dao, voter, created_at, proposal, space)
SETTINGS index_granularity = 1024;

ALTER TABLE dao_votes_by_voter MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS dao_votes_by_voter_mv TO dao_votes_by_voter AS
SELECT dao, voter, created_at, proposal, space, choice, voting_power, is_replaced, collected_at
FROM dao_cast_votes;

INSERT INTO dao_votes_by_voter (dao, voter, created_at, proposal, space, choice, voting_power, is_replaced, collected_at)
SELECT dao, voter, created_at, proposal, space, choice, voting_power, is_replaced, collected_at FROM dao_cast_votes;
