-- The transactions in which proposals were executed, so that the transfers of a proposal are known. Events of earlier versions
-- have no transaction until their governor is read again.
ALTER TABLE governors_in ADD COLUMN IF NOT EXISTS tx String;

ALTER TABLE governor_events ADD COLUMN IF NOT EXISTS tx String CODEC(ZSTD(1));

ALTER TABLE governor_events_mv MODIFY QUERY
SELECT dao, space, proposal, kind, toDateTime(at, 'UTC') AS at, title, choices, starts_at, ends_at, is_estimated, url, collected_at,
  body, executable_at, actions, operations, calls, tx
FROM governors_in
WHERE kind NOT IN ('vote', 'reading', 'timelock');

ALTER TABLE timelock_events ADD COLUMN IF NOT EXISTS tx String CODEC(ZSTD(1));

ALTER TABLE timelock_events_mv MODIFY QUERY
SELECT dao, space, operation, block_number, log_index, step, toDateTime(at, 'UTC') AS at, eta, executable_at, expires_at, collected_at, tx
FROM governors_in
WHERE kind = 'timelock';

-- The transaction of `executed_at`, empty if it is unknown.
ALTER TABLE dao_proposal_details ADD COLUMN IF NOT EXISTS executed_tx String CODEC(ZSTD(1));
