-- Alerts: the state of rules, the firings, and the messages about them. All of it is here and nothing in Redis, so an emptied
-- Redis neither repeats a message nor loses one.
--
-- The rules that the operator's file defines, for readers without the file: no channels and no secrets. `revision` is a hash
-- of the condition; a changed condition begins anew. `began_at` is the time since which its events count.
CREATE TABLE IF NOT EXISTS alert_rules
(
    rule        String,
    revision    String,
    kind        LowCardinality(String),
    description String,
    state       Enum8('active' = 1, 'paused' = 2, 'removed' = 3),
    began_at    DateTime64(3, 'UTC'),
    written_at  DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC')
)
ENGINE = {engine}ReplacingMergeTree(written_at)
ORDER BY rule;

-- Whether the condition of a rule holds for a subject: a token, a DAO, a dataset. A row is written when that changes.
-- `firing_count` numbers the firings of the subject, and the id of a firing contains the number: a repeated evaluation
-- creates the same id.
CREATE TABLE IF NOT EXISTS alert_states
(
    rule         String,
    revision     String,
    subject      String,
    holds        Bool,
    value        Nullable(Float64),
    firing_count UInt32,
    fired_at     Nullable(DateTime64(3, 'UTC')),
    written_at   DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC')
)
ENGINE = {engine}ReplacingMergeTree(written_at)
ORDER BY (rule, revision, subject);

-- The insert of a firing decides that it happened: states and deliveries are derived from it if a process dies in between.
-- Of two rows of one id the first one stays. `page` and `request` are paths.
CREATE TABLE IF NOT EXISTS alert_firings
(
    rule         String,
    id           String,
    revision     String,
    subject      String,
    kind         LowCardinality(String),
    firing_count UInt32,
    holds        Bool,
    fired_at     DateTime64(3, 'UTC'),
    title        String CODEC(ZSTD(3)),
    text         String CODEC(ZSTD(3)),
    entity_type  LowCardinality(String),
    entity_id    String,
    entity_name  String,
    observed_at  Nullable(DateTime64(3, 'UTC')),
    value        Nullable(Float64),
    before       Nullable(Float64),
    threshold    Nullable(Float64),
    unit         LowCardinality(String),
    page         Nullable(String),
    request      Nullable(String),
    channels     Array(LowCardinality(String)),
    due_at       DateTime64(3, 'UTC'),
    is_digest    Bool,
    version      UInt64 MATERIALIZED 9223372036854775807 - toUnixTimestamp64Milli(fired_at)
)
ENGINE = {engine}ReplacingMergeTree(version)
ORDER BY (rule, id);

-- One row per firing and channel. Firings with one `message` are sent together; the message of a digest is empty until the
-- digest is due. `version` counts the changes of a row, so a repeated first insert changes nothing.
CREATE TABLE IF NOT EXISTS alert_deliveries
(
    rule         String,
    channel      String,
    firing       String,
    message      String,
    due_at       DateTime64(3, 'UTC'),
    state        Enum8('pending' = 1, 'delivered' = 2, 'dead' = 3),
    attempts     UInt32,
    first_try_at Nullable(DateTime64(3, 'UTC')),
    next_try_at  DateTime64(3, 'UTC'),
    reason       String CODEC(ZSTD(3)),
    version      UInt32,
    written_at   DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC')
)
ENGINE = {engine}ReplacingMergeTree(version)
ORDER BY (rule, channel, firing);

ALTER TABLE alert_rules MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;
ALTER TABLE alert_states MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;
ALTER TABLE alert_firings MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;
ALTER TABLE alert_deliveries MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;
