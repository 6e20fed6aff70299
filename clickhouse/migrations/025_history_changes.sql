-- Which of the past was changed, when and by which job: whoever keeps a copy of a series learns what to read again. A row is
-- a range of one entity that a job of the history lane stored anew, be it for the first time. Entity 0 is all of a dataset
-- together. The same work done again is the same row with its latest time.
CREATE TABLE IF NOT EXISTS history_changes
(
    dataset    LowCardinality(String),
    entity     UInt64,
    job        LowCardinality(String),
    begins_at  DateTime64(3, 'UTC'),
    ends_at    DateTime64(3, 'UTC'),
    changed_at DateTime64(3, 'UTC')
)
ENGINE = {engine}ReplacingMergeTree(changed_at)
ORDER BY (entity, dataset, job, begins_at, ends_at);
