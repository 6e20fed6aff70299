-- Until 2026-11-22 a job remembered its failing providers under the name 'failing providers since', each with its time and
-- no reason. This copies them into the present form. `written_at` stays, so that whatever a job has remembered since counts.
INSERT INTO job_state (job, name, value, written_at)
SELECT job,
       'failing providers',
       toJSONString(mapApply((provider, since) -> (provider, map('since', since, 'reason', 'noted by an earlier version, without a reason')),
                             JSONExtract(value, 'Map(String, String)'))),
       written_at
FROM job_state FINAL
WHERE name = 'failing providers since';
