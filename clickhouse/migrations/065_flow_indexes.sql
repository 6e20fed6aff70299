-- Transfers with an address are few among those of a DAO. A filter on an address that has none would otherwise read all of them.
ALTER TABLE treasury_flows ADD INDEX IF NOT EXISTS by_party [sender, recipient] TYPE bloom_filter(0.01) GRANULARITY 1;
ALTER TABLE treasury_flows MATERIALIZE INDEX by_party;

-- The sums of days find the transfers that recent runs stored. They are at the end of each DAO's range of the sorting key.
ALTER TABLE treasury_flows ADD INDEX IF NOT EXISTS by_collection collected_at TYPE minmax GRANULARITY 1;
ALTER TABLE treasury_flows MATERIALIZE INDEX by_collection;
