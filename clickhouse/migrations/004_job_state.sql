-- What a job must remember from one run to the next, such as the block it has read up to. Written after the rows it
-- speaks of, so that a run that dies between the two reads the same stretch again.
CREATE TABLE IF NOT EXISTS job_state
(
    job        String,
    name       String,
    value      String,
    written_at DateTime64(3, 'UTC')
)
ENGINE = {engine}ReplacingMergeTree(written_at)
ORDER BY (job, name);
