-- Holdings of a treasury that could not be read on a day: their quantity or their value is unknown. With any, `value_usd` is a
-- part of the treasury. Contract and symbol are unknown if the source's element cannot be read at all. Days from before this
-- migration have none; `npm run backfill -- treasury --from <day> --again` collects them again.
ALTER TABLE dao_treasuries ADD COLUMN IF NOT EXISTS
    unread Array(Tuple(chain String, address Nullable(String), contract Nullable(String), symbol String)) CODEC(ZSTD(1));

-- The contracts of omitted spam: a token that a source begins to mark as spam was not spent.
ALTER TABLE dao_treasuries ADD COLUMN IF NOT EXISTS spam Array(Tuple(chain String, contract String)) CODEC(ZSTD(3));
