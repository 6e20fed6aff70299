-- The market cap of all members of the registry together, one row a UTC day, computed from the stored series. Of two
-- computations of a day the one that began later has seen more and wins, whichever is stored last. A day that has lost its
-- last member is withdrawn, and comes back should it have one again.
CREATE TABLE IF NOT EXISTS market_caps
(
    recorded_at  DateTime64(3, 'UTC'),
    value_usd    Float64,
    member_count UInt32,
    computed_at  DateTime64(3, 'UTC'),
    withdrawn    UInt8
)
ENGINE = {engine}ReplacingMergeTree(computed_at, withdrawn)
ORDER BY recorded_at;
