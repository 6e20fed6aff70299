-- What a treasury's total is made of, in the row of the total itself, so that neither is ever of another moment than the
-- other: each asset on each chain at each address. A chain is the registry's slug, or a word of the source's own where it
-- tells none; address and contract are null where the source does not tell them. Rows from before, and those of a source
-- that only tells totals, have no holdings. `spam_count` says how many tokens were left out as spam; null is unknown.
ALTER TABLE dao_treasuries ADD COLUMN IF NOT EXISTS
    holdings Array(Tuple(chain String, address Nullable(String), contract Nullable(String), symbol String, quantity Float64,
        value_usd Nullable(Float64), price_source Nullable(String), kind String)) CODEC(ZSTD(3));

ALTER TABLE dao_treasuries ADD COLUMN IF NOT EXISTS spam_count Nullable(UInt32) CODEC(ZSTD(1));
