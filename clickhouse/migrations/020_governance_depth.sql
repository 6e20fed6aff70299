-- What is known of each proposal and of each vote beside that it was made.
ALTER TABLE governance_in
    ADD COLUMN IF NOT EXISTS choice String,
    ADD COLUMN IF NOT EXISTS voting_power Nullable(Float64),
    ADD COLUMN IF NOT EXISTS title String,
    ADD COLUMN IF NOT EXISTS voting_type LowCardinality(String),
    ADD COLUMN IF NOT EXISTS choices Array(String),
    ADD COLUMN IF NOT EXISTS scores Array(Float64),
    ADD COLUMN IF NOT EXISTS scores_total Nullable(Float64),
    ADD COLUMN IF NOT EXISTS votes Nullable(UInt64),
    ADD COLUMN IF NOT EXISTS quorum Nullable(Float64),
    ADD COLUMN IF NOT EXISTS starts_at Nullable(DateTime('UTC')),
    ADD COLUMN IF NOT EXISTS ends_at Nullable(DateTime('UTC')),
    ADD COLUMN IF NOT EXISTS url Nullable(String),
    ADD COLUMN IF NOT EXISTS collected_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC');

-- Of a vote that was stored when powers were not collected it is unknown, until every vote is read once more.
ALTER TABLE dao_votes
    ADD COLUMN IF NOT EXISTS voting_power Nullable(Float64) CODEC(ZSTD(1));

ALTER TABLE dao_votes_mv MODIFY QUERY
SELECT dao, space, address AS voter, proposal, toDateTime(at, 'UTC') AS created_at, voting_power
FROM governance_in
WHERE kind = 'vote';

-- The same votes in order of time, of which a page is read without the others. The choice is JSON as the source gave it: a
-- number, a list or an object, by the type of voting; empty where it was not collected. dao_votes keeps the last vote of a
-- voter on a proposal; here the ones before it stay, marked.
CREATE TABLE IF NOT EXISTS dao_cast_votes
(
    dao          UInt64 CODEC(ZSTD(1)),
    created_at   DateTime('UTC') CODEC(Delta, ZSTD(1)),
    proposal     LowCardinality(String),
    voter        String CODEC(ZSTD(3)),
    space        LowCardinality(String),
    choice       String CODEC(ZSTD(1)),
    voting_power Nullable(Float64) CODEC(ZSTD(1)),
    is_replaced  Bool DEFAULT false CODEC(ZSTD(1)),
    collected_at DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1))
)
ENGINE = {engine}ReplacingMergeTree(collected_at)
ORDER BY (dao, created_at, proposal, voter, space);

CREATE MATERIALIZED VIEW IF NOT EXISTS dao_cast_votes_mv TO dao_cast_votes AS
SELECT dao, toDateTime(at, 'UTC') AS created_at, proposal, address AS voter, space, choice, voting_power, collected_at
FROM governance_in
WHERE kind = 'vote';

INSERT INTO dao_cast_votes (dao, created_at, proposal, voter, space, collected_at)
SELECT dao, created_at, proposal, voter, space, toDateTime64(0, 3, 'UTC') FROM dao_votes FINAL;

-- The public id (contract section 3), by which the votes on a proposal are asked for.
ALTER TABLE dao_proposals
    ADD COLUMN IF NOT EXISTS id String DEFAULT substring(lower(hex(SHA256(concat('proposal', '\x1f', toString(dao), '\x1f', proposal)))), 1, 24) CODEC(ZSTD(1));

-- What a source said of a proposal when it was last read. Who made a proposal and when never changes and stands in
-- dao_proposals; all of this may: titles are edited, scores grow, and a proposal is taken back.
CREATE TABLE IF NOT EXISTS dao_proposal_details
(
    dao          UInt64,
    space        LowCardinality(String),
    proposal     String CODEC(ZSTD(1)),
    title        String CODEC(ZSTD(3)),
    voting_type  LowCardinality(String),
    choices      Array(String) CODEC(ZSTD(3)),
    scores       Array(Float64) CODEC(ZSTD(1)),
    scores_total Nullable(Float64) CODEC(ZSTD(1)),
    votes        Nullable(UInt64) CODEC(ZSTD(1)),
    quorum       Nullable(Float64) CODEC(ZSTD(1)),
    starts_at    Nullable(DateTime('UTC')) CODEC(ZSTD(1)),
    ends_at      Nullable(DateTime('UTC')) CODEC(ZSTD(1)),
    url          Nullable(String) CODEC(ZSTD(3)),
    is_deleted   Bool DEFAULT false,
    collected_at DateTime64(3, 'UTC') CODEC(ZSTD(1))
)
ENGINE = {engine}ReplacingMergeTree(collected_at)
ORDER BY (dao, space, proposal);

CREATE MATERIALIZED VIEW IF NOT EXISTS dao_proposal_details_mv TO dao_proposal_details AS
SELECT dao, space, proposal, title, voting_type, choices, scores, scores_total, votes, quorum, starts_at, ends_at, url, collected_at
FROM governance_in
WHERE kind = 'proposal';

-- When the last reading began that saw every proposal of a space. What was not seen since is no more.
CREATE TABLE IF NOT EXISTS governance_sweeps
(
    dao      UInt64,
    space    String,
    swept_at DateTime64(3, 'UTC')
)
ENGINE = {engine}ReplacingMergeTree(swept_at)
ORDER BY (dao, space);

CREATE MATERIALIZED VIEW IF NOT EXISTS governance_sweeps_mv TO governance_sweeps AS
SELECT dao, space, at AS swept_at
FROM governance_in
WHERE kind = 'sweep';
