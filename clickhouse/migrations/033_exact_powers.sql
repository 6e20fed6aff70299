-- Voting powers on governors, to the last digit. A Float64 holds 53 bits of a power, which may have 256. The power is an integer
-- in base units of the voting token, NULL if it was not collected; `choice_powers` has its part for each choice, in the order of
-- the proposal's choices. `decimals` are those of the governor when the vote was read. A vote with `is_whole` replaces the
-- voter's earlier votes on the proposal.
ALTER TABLE governors_in
    ADD COLUMN IF NOT EXISTS power_exact Nullable(UInt256),
    ADD COLUMN IF NOT EXISTS choice_powers Array(UInt256),
    ADD COLUMN IF NOT EXISTS decimals UInt8,
    ADD COLUMN IF NOT EXISTS is_whole Bool DEFAULT false;

ALTER TABLE governance_in
    ADD COLUMN IF NOT EXISTS power_exact Nullable(UInt256),
    ADD COLUMN IF NOT EXISTS choice_powers Array(UInt256),
    ADD COLUMN IF NOT EXISTS decimals UInt8,
    ADD COLUMN IF NOT EXISTS is_whole Bool DEFAULT false;

ALTER TABLE dao_cast_votes
    ADD COLUMN IF NOT EXISTS power_exact Nullable(UInt256) CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS choice_powers Array(UInt256) CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS decimals UInt8 CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS is_whole Bool DEFAULT false;

ALTER TABLE dao_proposal_details
    ADD COLUMN IF NOT EXISTS scores_exact Array(UInt256) CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS total_exact Nullable(UInt256) CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS decimals UInt8 CODEC(ZSTD(1));

ALTER TABLE dao_cast_votes_mv MODIFY QUERY
SELECT dao, toDateTime(at, 'UTC') AS created_at, proposal, address AS voter, space, choice, voting_power, collected_at,
  power_exact, choice_powers, decimals, is_whole
FROM governance_in
WHERE kind = 'vote';

ALTER TABLE governors_votes_mv MODIFY QUERY
SELECT dao, space, kind, proposal, address, at, choice, voting_power, collected_at, power_exact, choice_powers, decimals, is_whole
FROM governors_in
WHERE kind = 'vote';
