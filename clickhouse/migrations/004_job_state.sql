-- What a job must remember from one run to the next, such as the block it has read up to. Written after the rows it
-- speaks of, so that a run that dies between the two reads the same range again. Where a job has read up to is kept for
-- as long as the job may come back. What is of use only while it is young goes after a month: how far a table was rebuilt,
-- and when each dataset was last committed.
CREATE TABLE IF NOT EXISTS job_state
(
    job        String,
    name       String,
    value      String,
    written_at DateTime64(3, 'UTC')
)
ENGINE = {engine}ReplacingMergeTree(written_at)
ORDER BY (job, name)
TTL toDateTime(written_at) + INTERVAL 30 DAY DELETE WHERE job IN ('rebuild', 'commits');
