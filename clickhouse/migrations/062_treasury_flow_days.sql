-- Sums of the transfers of a DAO on a UTC day, without spam, so that a year of transfers need not be read and merged for each answer.
-- After an insert the touched days are computed again from all of their transfers and replace the stored days. `version` is the
-- number of transfers, then the sum of their `collected_at`: both grow with each stored or replaced transfer. The computation that
-- read more therefore stays, in whatever order computations are stored.
CREATE TABLE IF NOT EXISTS treasury_flow_days
(
    dao     UInt64 CODEC(ZSTD(1)),
    day     Date CODEC(Delta, ZSTD(1)),
    sums    Array(Tuple(chain String, contract_address String, kind String, direction String, leg String, symbol String, decimals Nullable(UInt8), base_units UInt256, transfers UInt64, last_at DateTime64(3, 'UTC'))) CODEC(ZSTD(1)),
    version UInt128 CODEC(ZSTD(1))
)
ENGINE = {engine}ReplacingMergeTree(version)
ORDER BY (dao, day)
SETTINGS index_granularity = 256;

ALTER TABLE treasury_flow_days MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

INSERT INTO treasury_flow_days (dao, day, sums, version)
SELECT dao, day,
  arraySort(groupArrayIf(tuple(chain, contract_address, kind, direction, leg, symbol, decimals, base_units, transfers, last_at), kind != 'spam')) AS sums,
  bitShiftLeft(toUInt128(sum(transfers)), 64) + toUInt128(sum(collected)) AS version
FROM
(
  SELECT f.dao AS dao, toDate(f.recorded_at) AS day, toString(f.kind) AS kind, toString(f.direction) AS direction, toString(f.leg) AS leg,
    if(f.kind = 'spam', '', toString(f.chain)) AS chain, if(f.kind = 'spam', '', f.contract_address) AS contract_address,
    argMax(f.symbol, f.recorded_at) AS symbol, max(f.decimals) AS decimals, sum(f.base_units) AS base_units, count() AS transfers,
    max(f.recorded_at) AS last_at, sum(toUnixTimestamp64Milli(f.collected_at)) AS collected
  FROM treasury_flows AS f FINAL
  GROUP BY dao, day, kind, direction, leg, chain, contract_address
)
GROUP BY dao, day;
