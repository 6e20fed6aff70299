-- Votes on contracts beside those on Snapshot. They stand in the tables of votes and proposals, told apart by their space,
-- which is the contract's account id (eip155:1:0x...) and no name of a Snapshot space. A contract tells what happens to a
-- proposal one event at a time; what is known of it is put together of these.
CREATE TABLE IF NOT EXISTS governors_in
(
    dao          UInt64,
    space        String,
    kind         LowCardinality(String),
    proposal     String,
    address      String,
    at           DateTime64(3, 'UTC'),
    choice       String,
    voting_power Nullable(Float64),
    title        String,
    choices      Array(String),
    starts_at    Nullable(DateTime('UTC')),
    ends_at      Nullable(DateTime('UTC')),
    is_estimated Bool,
    url          Nullable(String),
    collected_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC')
)
ENGINE = Null;

-- From there on a vote goes the way of every vote.
CREATE MATERIALIZED VIEW IF NOT EXISTS governors_votes_mv TO governance_in AS
SELECT dao, space, kind, proposal, address, at, choice, voting_power, collected_at
FROM governors_in
WHERE kind = 'vote';

CREATE MATERIALIZED VIEW IF NOT EXISTS governors_proposals_mv TO dao_proposals AS
SELECT dao, space, proposal, address AS author, toDateTime(at, 'UTC') AS created_at
FROM governors_in
WHERE kind = 'proposal';

-- What happens to a proposal at most once: that it was made ('proposal'), canceled, queued or executed; and its times, which
-- are estimates while the chain has not reached the blocks that it counts to. The same event read again replaces itself.
CREATE TABLE IF NOT EXISTS governor_events
(
    dao          UInt64,
    space        LowCardinality(String),
    proposal     String CODEC(ZSTD(1)),
    kind         LowCardinality(String),
    at           DateTime('UTC') CODEC(ZSTD(1)),
    title        String CODEC(ZSTD(3)),
    choices      Array(String) CODEC(ZSTD(3)),
    starts_at    Nullable(DateTime('UTC')) CODEC(ZSTD(1)),
    ends_at      Nullable(DateTime('UTC')) CODEC(ZSTD(1)),
    is_estimated Bool CODEC(ZSTD(1)),
    url          Nullable(String) CODEC(ZSTD(3)),
    collected_at DateTime64(3, 'UTC') CODEC(ZSTD(1))
)
ENGINE = {engine}ReplacingMergeTree(collected_at)
ORDER BY (dao, space, proposal, kind);

CREATE MATERIALIZED VIEW IF NOT EXISTS governor_events_mv TO governor_events AS
SELECT dao, space, proposal, kind, toDateTime(at, 'UTC') AS at, title, choices, starts_at, ends_at, is_estimated, url, collected_at
FROM governors_in
WHERE kind NOT IN ('vote', 'reading');

-- When a contract was last read to its newest final block. Before the first time its votes are incomplete and not told.
CREATE TABLE IF NOT EXISTS governor_readings
(
    dao     UInt64,
    space   String,
    read_at DateTime64(3, 'UTC')
)
ENGINE = {engine}ReplacingMergeTree(read_at)
ORDER BY (dao, space);

CREATE MATERIALIZED VIEW IF NOT EXISTS governor_readings_mv TO governor_readings AS
SELECT dao, space, at AS read_at
FROM governors_in
WHERE kind = 'reading';

-- What became of a proposal on its chain, empty where nothing did or its source tells nothing of it.
ALTER TABLE dao_proposal_details
    ADD COLUMN IF NOT EXISTS outcome LowCardinality(String),
    ADD COLUMN IF NOT EXISTS is_estimated Bool DEFAULT false;
