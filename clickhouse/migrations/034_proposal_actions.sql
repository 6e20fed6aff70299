-- What a proposal on a governor does when it is executed, its text, and when it was queued, executed or canceled. The actions
-- are one value, because an author may replace them by fewer. Calldata that no known function decodes has no function.
ALTER TABLE governors_in
    ADD COLUMN IF NOT EXISTS body String,
    ADD COLUMN IF NOT EXISTS executable_at Nullable(DateTime('UTC')),
    ADD COLUMN IF NOT EXISTS actions Array(Tuple(target String, value_wei UInt256, function Nullable(String), signature Nullable(String),
        arguments Array(Tuple(name Nullable(String), type String, value String)), calldata String));

ALTER TABLE governor_events
    ADD COLUMN IF NOT EXISTS body String CODEC(ZSTD(3)),
    ADD COLUMN IF NOT EXISTS executable_at Nullable(DateTime('UTC')) CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS actions Array(Tuple(target String, value_wei UInt256, function Nullable(String), signature Nullable(String),
        arguments Array(Tuple(name Nullable(String), type String, value String)), calldata String)) CODEC(ZSTD(3));

ALTER TABLE governor_events_mv MODIFY QUERY
SELECT dao, space, proposal, kind, toDateTime(at, 'UTC') AS at, title, choices, starts_at, ends_at, is_estimated, url, collected_at,
  body, executable_at, actions
FROM governors_in
WHERE kind NOT IN ('vote', 'reading');

ALTER TABLE dao_proposal_details
    ADD COLUMN IF NOT EXISTS body Nullable(String) CODEC(ZSTD(3)),
    ADD COLUMN IF NOT EXISTS queued_at Nullable(DateTime('UTC')) CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS executable_at Nullable(DateTime('UTC')) CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS executed_at Nullable(DateTime('UTC')) CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS canceled_at Nullable(DateTime('UTC')) CODEC(ZSTD(1));
