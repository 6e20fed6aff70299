-- The state of the rule that decides which prices are stored. A row is the state of a token after a slot, written only if the slot
-- changed it. A slot reads the newest row before it, so a repeated slot decides the same again.
--
-- `exclusions`: the providers whose prices of the token are not stored, since when, in how many slots they have agreed again, and
-- the unchanged price of a frozen one. `difference_at`: the audit whose difference the next slot must confirm. `gaps`: the usual
-- ln(price / price of the first provider) of the others.
CREATE TABLE IF NOT EXISTS price_checks
(
    token         UInt64,
    slot          DateTime64(3, 'UTC'),
    exclusions    Array(Tuple(provider String, since DateTime64(3, 'UTC'), recovered UInt8, frozen_at Nullable(Float64))),
    difference_at Nullable(DateTime64(3, 'UTC')),
    gaps          Map(String, Float64),
    written_at    DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC')
)
ENGINE = {engine}ReplacingMergeTree(written_at)
ORDER BY (token, slot);

-- Prices that were not stored. `suspect`: no other provider has confirmed it yet. `released`: it is stored at its own time.
-- `taking_out` and `taken_out`: it was stored, and two other providers have differed from it since. `is_withheld`: the slot has no price at all.
-- `quote` is the row as JSON, as it is inserted at its release. `decided_slot` is the slot that changed the state, so a repeated
-- slot reads the state before itself.
CREATE TABLE IF NOT EXISTS suspect_prices
(
    token        UInt64,
    slot         DateTime64(3, 'UTC'),
    provider     LowCardinality(String),
    observed_at  DateTime64(3, 'UTC'),
    price        Float64,
    others       Array(Tuple(provider String, price Float64, observed_at DateTime64(3, 'UTC'))),
    last_price   Nullable(Float64),
    last_at      Nullable(DateTime64(3, 'UTC')),
    reason       String CODEC(ZSTD(3)),
    is_withheld  Bool,
    state        Enum8('suspect' = 1, 'released' = 2, 'taking_out' = 3, 'taken_out' = 4),
    quote        String CODEC(ZSTD(3)),
    decided_slot DateTime64(3, 'UTC'),
    written_at   DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC')
)
ENGINE = {engine}ReplacingMergeTree(written_at)
ORDER BY (token, slot, provider);

ALTER TABLE price_checks MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;
ALTER TABLE suspect_prices MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;
