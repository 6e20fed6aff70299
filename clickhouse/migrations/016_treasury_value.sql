-- The value of the treasuries of all members of the registry together, kept as `market_caps` is.
CREATE TABLE IF NOT EXISTS treasury_values
(
    recorded_at  DateTime64(3, 'UTC'),
    value_usd    Float64,
    member_count UInt32,
    computed_at  DateTime64(3, 'UTC'),
    withdrawn    UInt8
)
ENGINE = {engine}ReplacingMergeTree(computed_at, withdrawn)
ORDER BY recorded_at;
