-- What happens to queued proposals in timelocks. A proposal has the ids and keys under which a timelock may have its calls.
ALTER TABLE governors_in
    ADD COLUMN IF NOT EXISTS operations Array(String),
    ADD COLUMN IF NOT EXISTS calls Array(String),
    ADD COLUMN IF NOT EXISTS operation String,
    ADD COLUMN IF NOT EXISTS step LowCardinality(String),
    ADD COLUMN IF NOT EXISTS eta Nullable(DateTime('UTC')),
    ADD COLUMN IF NOT EXISTS expires_at Nullable(DateTime('UTC')),
    ADD COLUMN IF NOT EXISTS block_number UInt64,
    ADD COLUMN IF NOT EXISTS log_index UInt32;

ALTER TABLE governor_events
    ADD COLUMN IF NOT EXISTS operations Array(String) CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS calls Array(String) CODEC(ZSTD(1));

ALTER TABLE governor_events_mv MODIFY QUERY
SELECT dao, space, proposal, kind, toDateTime(at, 'UTC') AS at, title, choices, starts_at, ends_at, is_estimated, url, collected_at,
  body, executable_at, actions, operations, calls
FROM governors_in
WHERE kind NOT IN ('vote', 'reading', 'timelock');

-- The steps of each operation, for each governor that uses the timelock. The same log read again replaces itself. `eta` is the
-- time from which a call in Compound's timelock can be executed; it tells proposals with equal calls apart.
CREATE TABLE IF NOT EXISTS timelock_events
(
    dao           UInt64,
    space         LowCardinality(String),
    operation     String CODEC(ZSTD(1)),
    block_number  UInt64 CODEC(ZSTD(1)),
    log_index     UInt32 CODEC(ZSTD(1)),
    step          LowCardinality(String),
    at            DateTime('UTC') CODEC(ZSTD(1)),
    eta           Nullable(DateTime('UTC')) CODEC(ZSTD(1)),
    executable_at Nullable(DateTime('UTC')) CODEC(ZSTD(1)),
    expires_at    Nullable(DateTime('UTC')) CODEC(ZSTD(1)),
    collected_at  DateTime64(3, 'UTC') CODEC(ZSTD(1))
)
ENGINE = {engine}ReplacingMergeTree(collected_at)
ORDER BY (dao, space, operation, block_number, log_index);

CREATE MATERIALIZED VIEW IF NOT EXISTS timelock_events_mv TO timelock_events AS
SELECT dao, space, operation, block_number, log_index, step, toDateTime(at, 'UTC') AS at, eta, executable_at, expires_at, collected_at
FROM governors_in
WHERE kind = 'timelock';

ALTER TABLE timelock_events MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

-- Until when a queued proposal can be executed, NULL if its timelock has no such time.
ALTER TABLE dao_proposal_details
    ADD COLUMN IF NOT EXISTS expires_at Nullable(DateTime('UTC')) CODEC(ZSTD(1));
