-- The quorum of a proposal on a governor, as its contract states it: an integer in base units of the voting token, NULL while it
-- is unknown. `quorum_counts` are the votes that count towards it: `for`, `for+abstain`, `all` or `larger+abstain`, empty if unknown.
-- A live quorum changes until the vote ends.
ALTER TABLE governors_in
    ADD COLUMN IF NOT EXISTS quorum_exact Nullable(UInt256),
    ADD COLUMN IF NOT EXISTS quorum_counts LowCardinality(String),
    ADD COLUMN IF NOT EXISTS is_quorum_live Bool;

ALTER TABLE governor_events
    ADD COLUMN IF NOT EXISTS quorum_exact Nullable(UInt256) CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS quorum_counts LowCardinality(String) CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS is_quorum_live Bool CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS decimals UInt8 CODEC(ZSTD(1));

ALTER TABLE governor_events_mv MODIFY QUERY
SELECT dao, space, proposal, kind, toDateTime(at, 'UTC') AS at, title, choices, starts_at, ends_at, is_estimated, url, collected_at,
  body, executable_at, actions, operations, calls, quorum_exact, quorum_counts, is_quorum_live, decimals
FROM governors_in
WHERE kind NOT IN ('vote', 'reading', 'timelock');

ALTER TABLE dao_proposal_details
    ADD COLUMN IF NOT EXISTS quorum_exact Nullable(UInt256) CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS quorum_counts LowCardinality(String) CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS is_quorum_live Bool CODEC(ZSTD(1));
