-- Transfers into and out of the treasuries of DAOs. The key is what every source reports of a transfer: chain, transaction, asset,
-- sender, recipient and quantity. `occurrence` numbers equal transfers of a transaction from 0 on, because an explorer's list has
-- neither log indexes nor, for all rows, trace positions. So the same transfer from two sources is one row, and the one that was
-- collected later stays. A transfer between the treasuries of two DAOs is a row of each.
--
-- `contract_address` is empty for the native coin. `base_units` is the exact quantity; `decimals` is NULL if the contract has none.
-- `wallet` is the DAO's address, of an internal transfer the paying one; `counterparty` is the other address. `leg`, `category`,
-- `counterparty_label` and `swap_group` are empty if a transfer has none.
CREATE TABLE IF NOT EXISTS treasury_flows
(
    dao                UInt64 CODEC(ZSTD(1)),
    recorded_at        DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    chain              LowCardinality(String),
    transaction_hash   String CODEC(ZSTD(1)),
    contract_address   String CODEC(ZSTD(1)),
    sender             String CODEC(ZSTD(1)),
    recipient          String CODEC(ZSTD(1)),
    base_units         UInt256 CODEC(ZSTD(1)),
    occurrence         UInt32 CODEC(ZSTD(1)),
    block_number       UInt64 CODEC(Delta, ZSTD(1)),
    symbol             String CODEC(ZSTD(1)),
    decimals           Nullable(UInt8) CODEC(ZSTD(1)),
    wallet             String CODEC(ZSTD(1)),
    counterparty       String CODEC(ZSTD(1)),
    counterparty_label String CODEC(ZSTD(1)),
    direction          Enum8('in' = 1, 'out' = 2, 'internal' = 3, 'swap' = 4) CODEC(ZSTD(1)),
    leg                LowCardinality(String),
    kind               Enum8('spam' = 1, 'internal' = 2, 'swap' = 3, 'investment' = 4, 'mint' = 5, 'burn' = 6, 'income' = 7, 'spending' = 8) CODEC(ZSTD(1)),
    rule               LowCardinality(String),
    category           LowCardinality(String),
    swap_group         String CODEC(ZSTD(1)),
    provider           LowCardinality(String),
    collected_at       DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC') CODEC(Delta, ZSTD(1))
)
ENGINE = {engine}ReplacingMergeTree(collected_at)
ORDER BY (dao, recorded_at, chain, transaction_hash, contract_address, sender, recipient, base_units, occurrence)
SETTINGS index_granularity = 1024;

ALTER TABLE treasury_flows MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

-- The price of an asset on a day in the holdings of each DAO: coins and stablecoins are not tokens of the registry, so they have no
-- series of prices. `contract_address` is empty for the native coin. A treasury that is collected again replaces its prices.
CREATE TABLE IF NOT EXISTS holding_prices
(
    dao              UInt64 CODEC(ZSTD(1)),
    contract_address String CODEC(ZSTD(1)),
    chain            LowCardinality(String),
    day              Date CODEC(Delta, ZSTD(1)),
    price_usd        Float64 CODEC(ZSTD(1)),
    collected_at     DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1))
)
ENGINE = {engine}ReplacingMergeTree(collected_at)
ORDER BY (dao, contract_address, chain, day)
SETTINGS index_granularity = 1024;

ALTER TABLE holding_prices MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS holding_prices_mv TO holding_prices AS
SELECT if(holding.contract = '0xeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee', '', assumeNotNull(holding.contract)) AS contract_address,
  holding.chain AS chain, toDate(observed_at, 'UTC') AS day, dao,
  sum(assumeNotNull(holding.value_usd)) / sum(holding.quantity) AS price_usd, collected_at
FROM (SELECT dao, arrayJoin(holdings) AS holding, observed_at, collected_at FROM dao_treasuries)
WHERE isNotNull(holding.contract) AND holding.value_usd > 0 AND holding.quantity > 0
GROUP BY contract_address, chain, day, dao, collected_at;

INSERT INTO holding_prices (contract_address, chain, day, dao, price_usd, collected_at)
SELECT if(holding.contract = '0xeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee', '', assumeNotNull(holding.contract)) AS contract_address,
  holding.chain AS chain, toDate(observed_at, 'UTC') AS day, dao, sum(assumeNotNull(holding.value_usd)) / sum(holding.quantity), collected_at
FROM (SELECT dao, arrayJoin(holdings) AS holding, observed_at, collected_at FROM dao_treasuries FINAL)
WHERE isNotNull(holding.contract) AND holding.value_usd > 0 AND holding.quantity > 0
GROUP BY contract_address, chain, day, dao, collected_at;
