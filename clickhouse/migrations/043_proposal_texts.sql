-- The texts of proposals on Snapshot. They are not in dao_proposal_details, because a reading of a proposal replaces all of its
-- details, and most readings have no text: the text is read once, and again after the author edited the proposal. A proposal
-- without a row has an unknown text; an empty text has a row. Texts on governors are in governor_events.
ALTER TABLE governance_in
    ADD COLUMN IF NOT EXISTS body String;

-- `edited_at` is the time of the last edit before the text was read, or of the proposal's creation.
CREATE TABLE IF NOT EXISTS dao_proposal_texts
(
    dao          UInt64,
    space        LowCardinality(String),
    proposal     String CODEC(ZSTD(1)),
    edited_at    DateTime('UTC') CODEC(ZSTD(1)),
    body         String CODEC(ZSTD(3)),
    collected_at DateTime64(3, 'UTC') CODEC(ZSTD(1))
)
ENGINE = {engine}ReplacingMergeTree(collected_at)
ORDER BY (dao, space, proposal);

CREATE MATERIALIZED VIEW IF NOT EXISTS dao_proposal_texts_mv TO dao_proposal_texts AS
SELECT dao, space, proposal, toDateTime(at, 'UTC') AS edited_at, body, collected_at
FROM governance_in
WHERE kind = 'text';

ALTER TABLE dao_proposal_texts MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;
