-- What was collected, as data: which buckets of time of which entity are stored, by whom and at which step, and why others
-- are not. A run writes its rows and then says here what it has of whom. Everything that decides what to collect reads
-- this; the queues only know who works on what now.
--
-- A bucket is a cadence of its dataset: its number is the time in seconds divided by the cadence's. A year of an entity is
-- one row for each provider and step, and the numbers in it are a bitmap, which a run of them without gaps hardly fills.
-- Bits are only ever added, so that any report may come twice, late or from two workers at once.
--
-- `stored`: there is a row, which stands for `interval_seconds` from its bucket on; more than a cadence is coarser data.
-- `nothing`: the provider was asked at that step and has nothing there, for sure.
CREATE TABLE IF NOT EXISTS coverage_in
(
    dataset          String,
    entity           UInt64,
    cadence_seconds  UInt32,
    state            Enum8('stored' = 1, 'nothing' = 2),
    provider         String,
    interval_seconds UInt32,
    first            UInt32,
    last             UInt32
)
ENGINE = Null;

CREATE TABLE IF NOT EXISTS coverage
(
    dataset          LowCardinality(String),
    entity           UInt64,
    year             UInt16,
    state            Enum8('stored' = 1, 'nothing' = 2),
    provider         LowCardinality(String),
    interval_seconds UInt32,
    buckets          AggregateFunction(groupBitmap, UInt32)
)
ENGINE = {engine}AggregatingMergeTree
ORDER BY (entity, dataset, year, state, provider, interval_seconds);

-- `first` and `last` are the first and the last bucket of a report; both are of one year.
CREATE MATERIALIZED VIEW IF NOT EXISTS coverage_mv TO coverage AS
SELECT dataset,
       entity,
       toYear(toDateTime(toInt64(first) * cadence_seconds, 'UTC')) AS year,
       state,
       provider,
       interval_seconds,
       bitmapBuild(CAST(range(first, last + 1), 'Array(UInt32)')) AS buckets
FROM coverage_in;

-- Why buckets are not stored, or only at a coarser step: what the last try that was about them came to. A note of the live
-- lane begins with the first slot that an entity missed and stays open until a slot has it again; one of the history lane
-- is about the range that a job asked for. A note explains the buckets of its time that `coverage` does not have, and no
-- others.
CREATE TABLE IF NOT EXISTS coverage_notes
(
    dataset     LowCardinality(String),
    entity      UInt64,
    lane        Enum8('live' = 1, 'history' = 2),
    begins_at   DateTime64(3, 'UTC'),
    ends_at     DateTime64(3, 'UTC'),
    state       Enum8('coarser' = 1, 'failed' = 2, 'unserved' = 3, 'pending' = 4),
    provider    LowCardinality(String),
    reason      String,
    since       DateTime64(3, 'UTC'),
    tries       UInt32,
    next_try_at DateTime64(3, 'UTC'),
    written_at  DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC')
)
ENGINE = {engine}ReplacingMergeTree(written_at)
ORDER BY (entity, dataset, lane, begins_at);

-- What there should be: from when on a dataset is collected, without an end, and the ranges that somebody asked for.
-- Entity 0 is all that the dataset collects for.
CREATE TABLE IF NOT EXISTS coverage_wanted
(
    dataset          LowCardinality(String),
    entity           UInt64,
    begins_at        DateTime64(3, 'UTC'),
    ends_at          DateTime64(3, 'UTC'),
    interval_seconds UInt32,
    asked_at         DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC')
)
ENGINE = {engine}ReplacingMergeTree(asked_at)
ORDER BY (dataset, entity, begins_at, ends_at);

-- Which hours or days of a computed dataset were computed since the rows were stored that they are computed from. Written
-- after those rows, so that a computation that nobody enqueued, or that was lost, is found.
CREATE TABLE IF NOT EXISTS computations
(
    dataset     LowCardinality(String),
    unit_at     DateTime('UTC'),
    stored_at   SimpleAggregateFunction(max, DateTime64(3, 'UTC')),
    computed_at SimpleAggregateFunction(max, DateTime64(3, 'UTC'))
)
ENGINE = {engine}AggregatingMergeTree
ORDER BY (dataset, unit_at);
