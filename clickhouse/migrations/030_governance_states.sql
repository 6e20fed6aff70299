-- What Snapshot says of a proposal beside its scores: whether they are final (`pending`, `final` or `invalid`, empty where it
-- says nothing), and whether it flagged the proposal as spam or a scam.
ALTER TABLE governance_in
    ADD COLUMN IF NOT EXISTS scores_state LowCardinality(String),
    ADD COLUMN IF NOT EXISTS is_flagged Bool DEFAULT false;

ALTER TABLE dao_proposal_details
    ADD COLUMN IF NOT EXISTS scores_state LowCardinality(String),
    ADD COLUMN IF NOT EXISTS is_flagged Bool DEFAULT false;

ALTER TABLE dao_proposal_details_mv MODIFY QUERY
SELECT dao, space, proposal, title, voting_type, choices, scores, scores_total, votes, quorum, starts_at, ends_at, url, collected_at,
  scores_state, is_flagged
FROM governance_in
WHERE kind = 'proposal';
