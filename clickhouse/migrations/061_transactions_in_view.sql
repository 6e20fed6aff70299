-- Migration 060 replaced the view without the transactions that 059 had added to it.
ALTER TABLE governor_events_mv MODIFY QUERY
SELECT dao, space, proposal, kind, toDateTime(at, 'UTC') AS at, title, choices, starts_at, ends_at, is_estimated, url, collected_at,
  body, executable_at, actions, operations, calls, tx, quorum_exact, quorum_counts, is_quorum_live, decimals
FROM governors_in
WHERE kind NOT IN ('vote', 'reading', 'timelock');
