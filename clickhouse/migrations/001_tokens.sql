-- The registry's tokens as ClickHouse sees them, so that it can filter, order and write token records by itself.
-- The files in shared/registry are the truth; every migration run brings this table in step with them. A token that
-- left the files stays with live = false, because series refer to it.
CREATE TABLE IF NOT EXISTS tokens
(
    key              UInt64,
    id               String,
    symbol           String,
    name             String,
    contract_address String,
    decimals         UInt8,
    dao_id           String,
    dao_key          UInt64,
    cmc_id           Nullable(String),
    chain_id         String,
    live             Bool,
    live_price       Bool,
    changed_at       DateTime64(3, 'UTC')
)
ENGINE = {engine}ReplacingMergeTree(changed_at)
ORDER BY key;
