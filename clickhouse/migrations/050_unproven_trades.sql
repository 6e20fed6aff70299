-- Versions before this one recorded hours of trades as covered that no job had read. Stored coverage does not tell which:
-- `npm run coverage -- recount dex-trades --repair` removes the hours that no trade proves, once.
INSERT INTO job_state (job, name, value, written_at)
SELECT DISTINCT 'recount', dataset, 'unproven', now64(3)
FROM coverage
WHERE dataset = 'dex-trades' AND state = 'stored';
