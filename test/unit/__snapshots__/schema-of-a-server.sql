CREATE TABLE IF NOT EXISTS migrations
(
    name       String,
    checksum   String,
    applied_at DateTime64(3, 'UTC')
)
ENGINE = ReplacingMergeTree(applied_at)
ORDER BY name;

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
ENGINE = ReplacingMergeTree(changed_at)
ORDER BY key;

-- of two that know as much, the later one.
CREATE TABLE IF NOT EXISTS token_quotes_in
(
    token                    UInt64,
    observed_at              DateTime64(3, 'UTC'),
    is_latest                Bool,
    price                    Float64,
    volume_24h               Nullable(Float64),
    market_cap               Nullable(Float64),
    total_supply             Nullable(Float64),
    circulating_supply       Nullable(Float64),
    max_supply               Nullable(Float64),
    fully_diluted_market_cap Nullable(Float64),
    volume_change_24h        Nullable(Float64),
    percent_change_1h        Nullable(Float64),
    percent_change_24h       Nullable(Float64),
    percent_change_7d        Nullable(Float64),
    percent_change_30d       Nullable(Float64),
    percent_change_60d       Nullable(Float64),
    percent_change_90d       Nullable(Float64),
    tvl                      Nullable(Float64)
)
ENGINE = Null;

-- The raw series: every observation under its own time. It is the 5-minute tier as well: about one observation arrives
-- per cadence, so a 5-minute table would repeat this one row for row and cost more than the five coarser tiers together.
CREATE TABLE IF NOT EXISTS token_prices
(
    token              UInt64 CODEC(ZSTD(1)),
    observed_at        DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    price              Float64 CODEC(FPC(12), ZSTD(1)),
    volume_24h         Nullable(Float64) CODEC(FPC(12), ZSTD(1)),
    market_cap         Nullable(Float64) CODEC(FPC(12), ZSTD(1)),
    total_supply       Nullable(Float64) CODEC(FPC(12), ZSTD(1)),
    circulating_supply Nullable(Float64) CODEC(FPC(12), ZSTD(1)),
    known_count        UInt8 CODEC(ZSTD(1))
)
ENGINE = ReplacingMergeTree(known_count)
PARTITION BY toYear(observed_at)
ORDER BY (token, observed_at)
SETTINGS index_granularity = 1024;

CREATE MATERIALIZED VIEW IF NOT EXISTS token_prices_mv TO token_prices AS
SELECT token, observed_at, price, volume_24h, market_cap, total_supply, circulating_supply,
       toUInt8((volume_24h IS NOT NULL) + (market_cap IS NOT NULL) + (total_supply IS NOT NULL) + (circulating_supply IS NOT NULL)) AS known_count
FROM token_quotes_in;

-- The newest quote of each token with everything a latest quote says. Historical quotes lack most of it and stay out.
CREATE TABLE IF NOT EXISTS token_quotes
(
    token                    UInt64,
    observed_at              DateTime64(3, 'UTC'),
    price                    Float64,
    volume_24h               Nullable(Float64),
    market_cap               Nullable(Float64),
    total_supply             Nullable(Float64),
    circulating_supply       Nullable(Float64),
    max_supply               Nullable(Float64),
    fully_diluted_market_cap Nullable(Float64),
    volume_change_24h        Nullable(Float64),
    percent_change_1h        Nullable(Float64),
    percent_change_24h       Nullable(Float64),
    percent_change_7d        Nullable(Float64),
    percent_change_30d       Nullable(Float64),
    percent_change_60d       Nullable(Float64),
    percent_change_90d       Nullable(Float64),
    tvl                      Nullable(Float64)
)
ENGINE = ReplacingMergeTree(observed_at)
ORDER BY token;

CREATE MATERIALIZED VIEW IF NOT EXISTS token_quotes_mv TO token_quotes AS
SELECT * EXCEPT is_latest
FROM token_quotes_in
WHERE is_latest;

-- The roll-ups keep the first observation of each bucket. The largest `rank` stays: how long before the bucket's end the
-- observation was made, in milliseconds, times 8, plus how many of its four other values are known.
CREATE TABLE IF NOT EXISTS token_prices_30m
(
    token              UInt64 CODEC(ZSTD(1)),
    bucket_at          DateTime('UTC') CODEC(DoubleDelta, ZSTD(1)),
    rank               UInt64 CODEC(T64, ZSTD(1)),
    price              Float64 CODEC(FPC(12), ZSTD(1)),
    volume_24h         Nullable(Float64) CODEC(FPC(12), ZSTD(1)),
    market_cap         Nullable(Float64) CODEC(FPC(12), ZSTD(1)),
    total_supply       Nullable(Float64) CODEC(FPC(12), ZSTD(1)),
    circulating_supply Nullable(Float64) CODEC(FPC(12), ZSTD(1)),
    observed_at        DateTime64(3, 'UTC') ALIAS fromUnixTimestamp64Milli(toInt64(toUnixTimestamp(bucket_at)) * 1000 + 1800000 - intDiv(rank, 8), 'UTC')
)
ENGINE = ReplacingMergeTree(rank)
PARTITION BY toYear(bucket_at)
ORDER BY (token, bucket_at)
SETTINGS index_granularity = 1024;

CREATE MATERIALIZED VIEW IF NOT EXISTS token_prices_30m_mv TO token_prices_30m AS
SELECT token,
       bucket_at,
       toUInt64(toInt64(toUnixTimestamp(bucket_at)) * 1000 + 1800000 - toUnixTimestamp64Milli(first_at)) * 8 + first_quote.6 AS rank,
       first_quote.1 AS price,
       first_quote.2 AS volume_24h,
       first_quote.3 AS market_cap,
       first_quote.4 AS total_supply,
       first_quote.5 AS circulating_supply
FROM
(
    SELECT token,
           toStartOfInterval(observed_at, INTERVAL 30 MINUTE, 'UTC') AS bucket_at,
           min(observed_at) AS first_at,
           argMin((price, volume_24h, market_cap, total_supply, circulating_supply, known_count), (observed_at, -known_count)) AS first_quote
    FROM
    (
        SELECT *, toInt16((volume_24h IS NOT NULL) + (market_cap IS NOT NULL) + (total_supply IS NOT NULL) + (circulating_supply IS NOT NULL)) AS known_count
        FROM token_quotes_in
    )
    GROUP BY token, bucket_at
);

CREATE TABLE IF NOT EXISTS token_prices_1h
(
    token              UInt64 CODEC(ZSTD(1)),
    bucket_at          DateTime('UTC') CODEC(DoubleDelta, ZSTD(1)),
    rank               UInt64 CODEC(T64, ZSTD(1)),
    price              Float64 CODEC(FPC(12), ZSTD(1)),
    volume_24h         Nullable(Float64) CODEC(FPC(12), ZSTD(1)),
    market_cap         Nullable(Float64) CODEC(FPC(12), ZSTD(1)),
    total_supply       Nullable(Float64) CODEC(FPC(12), ZSTD(1)),
    circulating_supply Nullable(Float64) CODEC(FPC(12), ZSTD(1)),
    observed_at        DateTime64(3, 'UTC') ALIAS fromUnixTimestamp64Milli(toInt64(toUnixTimestamp(bucket_at)) * 1000 + 3600000 - intDiv(rank, 8), 'UTC')
)
ENGINE = ReplacingMergeTree(rank)
PARTITION BY toYear(bucket_at)
ORDER BY (token, bucket_at)
SETTINGS index_granularity = 1024;

CREATE MATERIALIZED VIEW IF NOT EXISTS token_prices_1h_mv TO token_prices_1h AS
SELECT token,
       bucket_at,
       toUInt64(toInt64(toUnixTimestamp(bucket_at)) * 1000 + 3600000 - toUnixTimestamp64Milli(first_at)) * 8 + first_quote.6 AS rank,
       first_quote.1 AS price,
       first_quote.2 AS volume_24h,
       first_quote.3 AS market_cap,
       first_quote.4 AS total_supply,
       first_quote.5 AS circulating_supply
FROM
(
    SELECT token,
           toStartOfInterval(observed_at, INTERVAL 60 MINUTE, 'UTC') AS bucket_at,
           min(observed_at) AS first_at,
           argMin((price, volume_24h, market_cap, total_supply, circulating_supply, known_count), (observed_at, -known_count)) AS first_quote
    FROM
    (
        SELECT *, toInt16((volume_24h IS NOT NULL) + (market_cap IS NOT NULL) + (total_supply IS NOT NULL) + (circulating_supply IS NOT NULL)) AS known_count
        FROM token_quotes_in
    )
    GROUP BY token, bucket_at
);

CREATE TABLE IF NOT EXISTS token_prices_4h
(
    token              UInt64 CODEC(ZSTD(1)),
    bucket_at          DateTime('UTC') CODEC(DoubleDelta, ZSTD(1)),
    rank               UInt64 CODEC(T64, ZSTD(1)),
    price              Float64 CODEC(FPC(12), ZSTD(1)),
    volume_24h         Nullable(Float64) CODEC(FPC(12), ZSTD(1)),
    market_cap         Nullable(Float64) CODEC(FPC(12), ZSTD(1)),
    total_supply       Nullable(Float64) CODEC(FPC(12), ZSTD(1)),
    circulating_supply Nullable(Float64) CODEC(FPC(12), ZSTD(1)),
    observed_at        DateTime64(3, 'UTC') ALIAS fromUnixTimestamp64Milli(toInt64(toUnixTimestamp(bucket_at)) * 1000 + 14400000 - intDiv(rank, 8), 'UTC')
)
ENGINE = ReplacingMergeTree(rank)
ORDER BY (token, bucket_at)
SETTINGS index_granularity = 1024;

CREATE MATERIALIZED VIEW IF NOT EXISTS token_prices_4h_mv TO token_prices_4h AS
SELECT token,
       bucket_at,
       toUInt64(toInt64(toUnixTimestamp(bucket_at)) * 1000 + 14400000 - toUnixTimestamp64Milli(first_at)) * 8 + first_quote.6 AS rank,
       first_quote.1 AS price,
       first_quote.2 AS volume_24h,
       first_quote.3 AS market_cap,
       first_quote.4 AS total_supply,
       first_quote.5 AS circulating_supply
FROM
(
    SELECT token,
           toStartOfInterval(observed_at, INTERVAL 240 MINUTE, 'UTC') AS bucket_at,
           min(observed_at) AS first_at,
           argMin((price, volume_24h, market_cap, total_supply, circulating_supply, known_count), (observed_at, -known_count)) AS first_quote
    FROM
    (
        SELECT *, toInt16((volume_24h IS NOT NULL) + (market_cap IS NOT NULL) + (total_supply IS NOT NULL) + (circulating_supply IS NOT NULL)) AS known_count
        FROM token_quotes_in
    )
    GROUP BY token, bucket_at
);

CREATE TABLE IF NOT EXISTS token_prices_1d
(
    token              UInt64 CODEC(ZSTD(1)),
    bucket_at          DateTime('UTC') CODEC(DoubleDelta, ZSTD(1)),
    rank               UInt64 CODEC(T64, ZSTD(1)),
    price              Float64 CODEC(FPC(12), ZSTD(1)),
    volume_24h         Nullable(Float64) CODEC(FPC(12), ZSTD(1)),
    market_cap         Nullable(Float64) CODEC(FPC(12), ZSTD(1)),
    total_supply       Nullable(Float64) CODEC(FPC(12), ZSTD(1)),
    circulating_supply Nullable(Float64) CODEC(FPC(12), ZSTD(1)),
    observed_at        DateTime64(3, 'UTC') ALIAS fromUnixTimestamp64Milli(toInt64(toUnixTimestamp(bucket_at)) * 1000 + 86400000 - intDiv(rank, 8), 'UTC')
)
ENGINE = ReplacingMergeTree(rank)
ORDER BY (token, bucket_at)
SETTINGS index_granularity = 1024;

CREATE MATERIALIZED VIEW IF NOT EXISTS token_prices_1d_mv TO token_prices_1d AS
SELECT token,
       bucket_at,
       toUInt64(toInt64(toUnixTimestamp(bucket_at)) * 1000 + 86400000 - toUnixTimestamp64Milli(first_at)) * 8 + first_quote.6 AS rank,
       first_quote.1 AS price,
       first_quote.2 AS volume_24h,
       first_quote.3 AS market_cap,
       first_quote.4 AS total_supply,
       first_quote.5 AS circulating_supply
FROM
(
    SELECT token,
           toStartOfDay(observed_at, 'UTC') AS bucket_at,
           min(observed_at) AS first_at,
           argMin((price, volume_24h, market_cap, total_supply, circulating_supply, known_count), (observed_at, -known_count)) AS first_quote
    FROM
    (
        SELECT *, toInt16((volume_24h IS NOT NULL) + (market_cap IS NOT NULL) + (total_supply IS NOT NULL) + (circulating_supply IS NOT NULL)) AS known_count
        FROM token_quotes_in
    )
    GROUP BY token, bucket_at
);

CREATE TABLE IF NOT EXISTS token_prices_7d
(
    token              UInt64 CODEC(ZSTD(1)),
    bucket_at          DateTime('UTC') CODEC(DoubleDelta, ZSTD(1)),
    rank               UInt64 CODEC(T64, ZSTD(1)),
    price              Float64 CODEC(FPC(12), ZSTD(1)),
    volume_24h         Nullable(Float64) CODEC(FPC(12), ZSTD(1)),
    market_cap         Nullable(Float64) CODEC(FPC(12), ZSTD(1)),
    total_supply       Nullable(Float64) CODEC(FPC(12), ZSTD(1)),
    circulating_supply Nullable(Float64) CODEC(FPC(12), ZSTD(1)),
    observed_at        DateTime64(3, 'UTC') ALIAS fromUnixTimestamp64Milli(toInt64(toUnixTimestamp(bucket_at)) * 1000 + 604800000 - intDiv(rank, 8), 'UTC')
)
ENGINE = ReplacingMergeTree(rank)
ORDER BY (token, bucket_at)
SETTINGS index_granularity = 1024;

CREATE MATERIALIZED VIEW IF NOT EXISTS token_prices_7d_mv TO token_prices_7d AS
SELECT token,
       bucket_at,
       toUInt64(toInt64(toUnixTimestamp(bucket_at)) * 1000 + 604800000 - toUnixTimestamp64Milli(first_at)) * 8 + first_quote.6 AS rank,
       first_quote.1 AS price,
       first_quote.2 AS volume_24h,
       first_quote.3 AS market_cap,
       first_quote.4 AS total_supply,
       first_quote.5 AS circulating_supply
FROM
(
    SELECT token,
           toDateTime(toStartOfInterval(observed_at, INTERVAL 1 WEEK, 'UTC'), 'UTC') AS bucket_at,
           min(observed_at) AS first_at,
           argMin((price, volume_24h, market_cap, total_supply, circulating_supply, known_count), (observed_at, -known_count)) AS first_quote
    FROM
    (
        SELECT *, toInt16((volume_24h IS NOT NULL) + (market_cap IS NOT NULL) + (total_supply IS NOT NULL) + (circulating_supply IS NOT NULL)) AS known_count
        FROM token_quotes_in
    )
    GROUP BY token, bucket_at
);

-- Total value locked per DAO, in USD, as the sum over its protocols at one time.
CREATE TABLE IF NOT EXISTS protocol_tvl
(
    dao         UInt64 CODEC(ZSTD(1)),
    observed_at DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    tvl_usd     Float64 CODEC(FPC(12), ZSTD(1))
)
ENGINE = ReplacingMergeTree
ORDER BY (dao, observed_at);

-- What a job must remember from one run to the next, such as the block it has read up to. Written after the rows it
-- speaks of, so that a run that dies between the two reads the same stretch again.
CREATE TABLE IF NOT EXISTS job_state
(
    job        String,
    name       String,
    value      String,
    written_at DateTime64(3, 'UTC')
)
ENGINE = ReplacingMergeTree(written_at)
ORDER BY (job, name);

-- Who holds a token. Every snapshot is kept under its slot, so an insert may be repeated and the same slot collected
-- again replaces itself. Of one snapshot to the next most holders are the same: sorted by token they lie side by side,
-- and a compressor with a window that spans both stores little more than the differences.
CREATE TABLE IF NOT EXISTS token_holders
(
    token         UInt64 CODEC(ZSTD(1)),
    observed_at   DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    total_holders UInt64 CODEC(Delta, ZSTD(1)),
    top100_share  Float64 CODEC(ZSTD(1)),
    holders       Array(Tuple(address String, amount Float64, amount_usd Nullable(Float64), share Float64)) CODEC(ZSTD(3))
)
ENGINE = ReplacingMergeTree
PARTITION BY toYear(observed_at)
ORDER BY (token, observed_at)
SETTINGS index_granularity = 256;

-- The newest snapshot of each token, so that serving it reads a row per token however long the history grows.
CREATE TABLE IF NOT EXISTS token_holders_latest
(
    token         UInt64 CODEC(ZSTD(1)),
    observed_at   DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    total_holders UInt64 CODEC(ZSTD(1)),
    top100_share  Float64 CODEC(ZSTD(1)),
    holders       Array(Tuple(address String, amount Float64, amount_usd Nullable(Float64), share Float64)) CODEC(ZSTD(1))
)
ENGINE = ReplacingMergeTree(observed_at)
ORDER BY token;

CREATE MATERIALIZED VIEW IF NOT EXISTS token_holders_latest_mv TO token_holders_latest AS
SELECT token, observed_at, total_holders, top100_share, holders
FROM token_holders;

-- Trades on decentralized exchanges, seen from the trader. The natural key is the log of one swap; a swap between two
-- tokens of the registry is a trade of each. Hashes and addresses are kept as the text that is served: packed as
-- FixedString a row takes 71 bytes instead of 75, which does not pay for a second table and its view.
CREATE TABLE IF NOT EXISTS dex_trades
(
    token            UInt64 CODEC(ZSTD(1)),
    traded_at        DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    transaction_hash String CODEC(ZSTD(1)),
    log_index        UInt32 CODEC(ZSTD(1)),
    chain            LowCardinality(String),
    block_number     UInt64 CODEC(Delta, ZSTD(1)),
    pool             String CODEC(ZSTD(1)),
    exchange         LowCardinality(String),
    taker            String CODEC(ZSTD(1)),
    side             Enum8('BUY' = 1, 'SELL' = 2),
    amount           Float64 CODEC(ZSTD(1)),
    amount_usd       Nullable(Float64) CODEC(ZSTD(1)),
    price            Nullable(Float64) CODEC(ZSTD(1))
)
ENGINE = ReplacingMergeTree
PARTITION BY toYear(traded_at)
ORDER BY (token, traded_at, transaction_hash, log_index)
SETTINGS index_granularity = 1024;

-- One row per token: all that is told of its trades, computed after every insert. Trades are never taken away, so the
-- computation that saw more of them is the later one, whenever it is stored; among equals the later end of the windows
-- wins. After trades were deleted by hand, delete the token's row here too.
CREATE TABLE IF NOT EXISTS dex_data
(
    token         UInt64,
    total_trades  UInt64,
    makers        UInt64,
    takers        UInt64,
    dexs          UInt64,
    inflow_24h    Float64,
    inflow_7d     Float64,
    inflow_30d    Float64,
    inflow_max    Float64,
    outflow_24h   Float64,
    outflow_7d    Float64,
    outflow_30d   Float64,
    outflow_max   Float64,
    price         Nullable(Float64),
    last_trade_at DateTime64(3, 'UTC'),
    as_of         DateTime64(3, 'UTC'),
    version       UInt64 MATERIALIZED total_trades * 4294967296 + toUnixTimestamp(as_of)
)
ENGINE = ReplacingMergeTree(version)
ORDER BY token;

-- The registry's DAOs as the API's records. The files in shared/registry are the truth; every migration run brings this
-- table in step with them. A DAO that left the files stays with live = false, because series refer to it. `links` holds
-- what providers know of the links that the files leave empty, by the name of the column they stand in for.
-- `changes` counts how often the record changed since it was first stored. Of two writers that make the same change at
-- once the earlier one counts, whichever is stored last: a newer version is one with more changes, then an older time.
CREATE TABLE IF NOT EXISTS daos
(
    key                UInt64,
    id                 String,
    slug               String,
    name               String,
    image              Nullable(String),
    category_ids       Array(String),
    mission            String,
    website            Nullable(String),
    twitter            Nullable(String),
    discord            Nullable(String),
    telegram           Nullable(String),
    whitepaper         Nullable(String),
    tokenomics         Nullable(String),
    chain_ids          Array(String),
    token_key          Nullable(UInt64),
    live               Bool,
    twitter_id         Nullable(String),
    verified           Bool,
    description        String,
    is_otc             Bool,
    snapshot_name      Nullable(String),
    treasury_addresses Array(String),
    links              Map(String, String),
    created_at         DateTime64(3, 'UTC'),
    updated_at         DateTime64(3, 'UTC'),
    changes            UInt32,
    version            UInt64 DEFAULT bitShiftLeft(toUInt64(changes), 42) + (4398046511103 - toUnixTimestamp64Milli(updated_at))
)
ENGINE = ReplacingMergeTree(version)
ORDER BY key;

-- What a source says a DAO's link or logo is: the newest word of each source about each field. A source's silence about
-- a field does not take its earlier word back.
CREATE TABLE IF NOT EXISTS dao_links
(
    dao         UInt64,
    field       LowCardinality(String),
    source      LowCardinality(String),
    value       String,
    observed_at DateTime64(3, 'UTC')
)
ENGINE = ReplacingMergeTree(observed_at)
ORDER BY (dao, field, source);

-- How DAOs vote. Jobs insert once, into a table that stores nothing; its views put votes, proposals and readings where
-- they belong. Every target replaces by its natural key, so an insert may be repeated or sent again after a view failed.
CREATE TABLE IF NOT EXISTS governance_in
(
    dao      UInt64,
    space    String,
    kind     LowCardinality(String),
    proposal String,
    address  String,
    at       DateTime64(3, 'UTC')
)
ENGINE = Null;

-- A voter has one vote on a proposal: voting again replaces it, under another id at the source, so that the voter and
-- the proposal are the key. Sorted by voter, the distinct voters of a DAO come out in order, without a table in memory.
CREATE TABLE IF NOT EXISTS dao_votes
(
    dao        UInt64 CODEC(ZSTD(1)),
    space      LowCardinality(String),
    voter      String CODEC(ZSTD(3)),
    proposal   LowCardinality(String),
    created_at DateTime('UTC') CODEC(Delta, ZSTD(1))
)
ENGINE = ReplacingMergeTree(created_at)
ORDER BY (dao, space, voter, proposal);

CREATE MATERIALIZED VIEW IF NOT EXISTS dao_votes_mv TO dao_votes AS
SELECT dao, space, address AS voter, proposal, toDateTime(at, 'UTC') AS created_at
FROM governance_in
WHERE kind = 'vote';

CREATE TABLE IF NOT EXISTS dao_proposals
(
    dao        UInt64 CODEC(ZSTD(1)),
    space      LowCardinality(String),
    proposal   String CODEC(ZSTD(1)),
    author     String CODEC(ZSTD(1)),
    created_at DateTime('UTC') CODEC(ZSTD(1))
)
ENGINE = ReplacingMergeTree(created_at)
ORDER BY (dao, space, proposal);

CREATE MATERIALIZED VIEW IF NOT EXISTS dao_proposals_mv TO dao_proposals AS
SELECT dao, space, proposal, address AS author, toDateTime(at, 'UTC') AS created_at
FROM governance_in
WHERE kind = 'proposal';

-- When a space was last read to its end. Before the first time its votes are incomplete and no counts are told.
CREATE TABLE IF NOT EXISTS governance_readings
(
    dao     UInt64,
    space   String,
    read_at DateTime64(3, 'UTC')
)
ENGINE = ReplacingMergeTree(read_at)
ORDER BY (dao, space);

CREATE MATERIALIZED VIEW IF NOT EXISTS governance_readings_mv TO governance_readings AS
SELECT dao, space, at AS read_at
FROM governance_in
WHERE kind = 'reading';

-- What a DAO's treasury holds, a row per DAO and day, so that changes are against the same series and a day collected
-- again replaces itself. From one day to the next most of the list is the same: sorted by DAO the lists lie side by side.
CREATE TABLE IF NOT EXISTS dao_treasuries
(
    dao         UInt64 CODEC(ZSTD(1)),
    observed_at DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    value_usd   Float64 CODEC(FPC(12), ZSTD(1)),
    tokens      Array(Tuple(symbol String, quantity Float64, value_usd Nullable(Float64))) CODEC(ZSTD(3)),
    source      LowCardinality(String)
)
ENGINE = ReplacingMergeTree
ORDER BY (dao, observed_at)
SETTINGS index_granularity = 256;

-- Ratings as each day's import of the operator's file found them. Every import is kept, so that what left the file can be
-- told from what is still in it.
CREATE TABLE IF NOT EXISTS dao_ratings
(
    dao                UInt64 CODEC(ZSTD(1)),
    observed_at        DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    rated_at           DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    overall_rating     Float64 CODEC(ZSTD(1)),
    fundamental_rating Float64 CODEC(ZSTD(1)),
    governance         Float64 CODEC(ZSTD(1)),
    team               Float64 CODEC(ZSTD(1)),
    competitive_moat   Float64 CODEC(ZSTD(1)),
    value_proposition  Float64 CODEC(ZSTD(1)),
    token_economics    Float64 CODEC(ZSTD(1)),
    source             LowCardinality(String),
    report_url         Nullable(String) CODEC(ZSTD(1))
)
ENGINE = ReplacingMergeTree
ORDER BY (dao, observed_at);

-- What DAOs' accounts and communities count, a row per DAO and day. The three networks are stored apart: each comes from
-- a provider of its own, at its own time, and may fail without the others. The time is the start of the day that a count
-- was taken on, so that taking it again replaces the row and a series has one point a day.
CREATE TABLE IF NOT EXISTS twitter_counts
(
    dao         UInt64 CODEC(ZSTD(1)),
    observed_at DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    followers   Nullable(UInt64) CODEC(Delta, ZSTD(1)),
    following   Nullable(UInt64) CODEC(Delta, ZSTD(1)),
    tweets      Nullable(UInt64) CODEC(Delta, ZSTD(1))
)
ENGINE = ReplacingMergeTree
ORDER BY (dao, observed_at)
SETTINGS index_granularity = 1024;

CREATE TABLE IF NOT EXISTS discord_members
(
    dao            UInt64 CODEC(ZSTD(1)),
    observed_at    DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    active_members Nullable(UInt64) CODEC(Delta, ZSTD(1)),
    total_members  Nullable(UInt64) CODEC(Delta, ZSTD(1))
)
ENGINE = ReplacingMergeTree
ORDER BY (dao, observed_at)
SETTINGS index_granularity = 1024;

CREATE TABLE IF NOT EXISTS telegram_members
(
    dao            UInt64 CODEC(ZSTD(1)),
    observed_at    DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    active_members Nullable(UInt64) CODEC(Delta, ZSTD(1)),
    total_members  Nullable(UInt64) CODEC(Delta, ZSTD(1))
)
ENGINE = ReplacingMergeTree
ORDER BY (dao, observed_at)
SETTINGS index_granularity = 1024;

-- The mood of posts about DAOs, a row per DAO and day. Numbers of posts are stored, not shares: shares are rounded so
-- that they sum to one, which is the reader's business. The lexicon's name tells which points may be compared.
CREATE TABLE IF NOT EXISTS twitter_sentiment
(
    dao            UInt64 CODEC(ZSTD(1)),
    observed_at    DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    positive_posts UInt32 CODEC(ZSTD(1)),
    neutral_posts  UInt32 CODEC(ZSTD(1)),
    negative_posts UInt32 CODEC(ZSTD(1)),
    lexicon        LowCardinality(String)
)
ENGINE = ReplacingMergeTree
ORDER BY (dao, observed_at)
SETTINGS index_granularity = 1024;

-- Sums over all members of the registry, one row a UTC day, computed from the stored series. Of two computations of a day
-- the one that began later has seen more and wins, whichever is stored last. A day that has lost its last member is
-- withdrawn, and comes back should it have one again.
CREATE TABLE IF NOT EXISTS market_caps
(
    recorded_at  DateTime64(3, 'UTC'),
    value_usd    Float64,
    member_count UInt32,
    computed_at  DateTime64(3, 'UTC'),
    withdrawn    UInt8
)
ENGINE = ReplacingMergeTree(computed_at, withdrawn)
ORDER BY recorded_at;

CREATE TABLE IF NOT EXISTS treasury_values
(
    recorded_at  DateTime64(3, 'UTC'),
    value_usd    Float64,
    member_count UInt32,
    computed_at  DateTime64(3, 'UTC'),
    withdrawn    UInt8
)
ENGINE = ReplacingMergeTree(computed_at, withdrawn)
ORDER BY recorded_at;

-- The index: what its basket is worth in each 5-minute slot, computed from the stored prices; `observed_at` is the time of
-- the newest of them. A computation inserts only what differs from what is stored, so that repeating it changes nothing.
-- `computed_at` is the time before prices were read: of two computations at once the one that saw more wins, whichever is
-- stored first. `is_retracted` takes back a point that no longer follows from the prices and the compositions: FINAL
-- leaves it out.
CREATE TABLE IF NOT EXISTS index_points
(
    index_key    UInt64 CODEC(ZSTD(1)),
    created_at   DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    observed_at  DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    value_usd    Float64 CODEC(FPC(12), ZSTD(1)),
    composition  LowCardinality(String),
    is_retracted UInt8 CODEC(ZSTD(1)),
    computed_at  DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1))
)
ENGINE = ReplacingMergeTree(computed_at, is_retracted)
PARTITION BY toYear(created_at)
ORDER BY (index_key, created_at)
SETTINGS index_granularity = 1024;

-- The Index Token as its chain told of it at one block. `value` (ether) and `total_supply` (tokens) are exact decimals
-- with up to 18 places, which no number type of JSON holds.
CREATE TABLE IF NOT EXISTS index_token
(
    index_key    UInt64 CODEC(ZSTD(1)),
    created_at   DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    block_number UInt64 CODEC(Delta, ZSTD(1)),
    value        String CODEC(ZSTD(1)),
    total_supply String CODEC(ZSTD(1)),
    value_usd    Float64 CODEC(ZSTD(1)),
    eth_usd      Float64 CODEC(ZSTD(1)),
    eth_source   LowCardinality(String)
)
ENGINE = ReplacingMergeTree
ORDER BY (index_key, created_at)
SETTINGS index_granularity = 1024;

-- Prices, volumes and market caps as integers, which pack into a third to two thirds of the bytes and come back bit by bit.
--
-- A price or volume with few decimals, as exchanges quote it, is stored as its digits and the place of the decimal point:
-- bitNot(digits * 8 + place), where `place` counts in a list of powers of ten. A number is stored so only if dividing the
-- digits by the power gives the very same Float64. Any other is stored as the bits of its Float64. Neither can be taken
-- for the other: codes of digits lie between -2^52 and 0, where bits would mean values that are no numbers. Integers, unlike
-- Float64, can be packed by T64: against FPC that made prices of full precision 8 % smaller and recorded ones of an
-- exchange, with few decimals, 65 %.
--
-- A market cap is in what providers send the product of price and circulating supply, to the last bit. Stored is how far
-- its bits are from the product's: next to nothing then, and its own bits where the supply is not known.
--
-- The columns of old are computed from these, so that nobody who reads sees a difference. Every step may be repeated, and
-- reads and inserts go on meanwhile: first new rows bring codes, of which the columns of old take their values; then rows
-- that were there before get codes, as bits; then the columns of old give up their bytes, unless a row is found without a
-- code, of an insert that was under way when its view changed: the file fails then and is done again. A query over them may not call
-- something else `price`: a cluster's nodes are sent the expression under that name.
--
-- Roll-ups have so few rows that their parts stayed compact, a block of each column every 1024 rows. As wide parts from
-- 256 kB on they take 12 % less.
ALTER TABLE token_quotes_in
    ADD COLUMN IF NOT EXISTS price_place UInt8 MATERIALIZED arrayFirstIndex(
        power -> price > 0 AND price * power < 5e14 AND round(price * power) / power = price,
        [1e0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12]),
    ADD COLUMN IF NOT EXISTS volume_24h_place UInt8 MATERIALIZED arrayFirstIndex(
        power -> assumeNotNull(volume_24h) > 0 AND assumeNotNull(volume_24h) * power < 5e14 AND round(assumeNotNull(volume_24h) * power) / power = assumeNotNull(volume_24h),
        [1e0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12]),
    ADD COLUMN IF NOT EXISTS price_code Int64 MATERIALIZED if(price_place = 0,
        reinterpretAsInt64(price),
        bitNot(toInt64(round(price * [1e0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12][price_place])) * 8 + price_place)),
    ADD COLUMN IF NOT EXISTS volume_24h_code Nullable(Int64) MATERIALIZED if(volume_24h IS NULL, NULL, if(volume_24h_place = 0,
        reinterpretAsInt64(assumeNotNull(volume_24h)),
        bitNot(toInt64(round(assumeNotNull(volume_24h) * [1e0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12][volume_24h_place])) * 8 + volume_24h_place))),
    ADD COLUMN IF NOT EXISTS market_cap_code Nullable(Int64) MATERIALIZED if(market_cap IS NULL, NULL, reinterpretAsInt64(assumeNotNull(market_cap)) - reinterpretAsInt64(price * ifNull(circulating_supply, 0)));

ALTER TABLE token_prices
    ADD COLUMN IF NOT EXISTS price_code Int64 CODEC(Delta, T64('bit'), ZSTD(1)),
    ADD COLUMN IF NOT EXISTS volume_24h_code Nullable(Int64) CODEC(Delta, T64('bit'), ZSTD(1)),
    ADD COLUMN IF NOT EXISTS market_cap_code Nullable(Int64) CODEC(Delta, T64('bit'), ZSTD(1)),
    MODIFY COLUMN price Float64 DEFAULT if(price_code < 0 AND price_code > -4503599627370496,
        bitShiftRight(bitNot(price_code), 3) / [1e0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12][bitAnd(bitNot(price_code), 7)],
        reinterpretAsFloat64(price_code)),
    MODIFY COLUMN volume_24h Nullable(Float64) DEFAULT if(volume_24h_code IS NULL, NULL, if(assumeNotNull(volume_24h_code) < 0 AND assumeNotNull(volume_24h_code) > -4503599627370496,
        bitShiftRight(bitNot(assumeNotNull(volume_24h_code)), 3) / [1e0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12][bitAnd(bitNot(assumeNotNull(volume_24h_code)), 7)],
        reinterpretAsFloat64(assumeNotNull(volume_24h_code)))),
    MODIFY COLUMN market_cap Nullable(Float64) DEFAULT if(market_cap_code IS NULL, NULL,
        reinterpretAsFloat64(assumeNotNull(market_cap_code) + reinterpretAsInt64(price * ifNull(circulating_supply, 0))));

ALTER TABLE token_prices_mv MODIFY QUERY
SELECT token, observed_at, price_code, volume_24h_code, market_cap_code, total_supply, circulating_supply,
       toUInt8((volume_24h_code IS NOT NULL) + (market_cap_code IS NOT NULL) + (total_supply IS NOT NULL) + (circulating_supply IS NOT NULL)) AS known_count
FROM token_quotes_in;

ALTER TABLE token_prices_30m
    ADD COLUMN IF NOT EXISTS price_code Int64 CODEC(Delta, T64('bit'), ZSTD(1)),
    ADD COLUMN IF NOT EXISTS volume_24h_code Nullable(Int64) CODEC(Delta, T64('bit'), ZSTD(1)),
    ADD COLUMN IF NOT EXISTS market_cap_code Nullable(Int64) CODEC(Delta, T64('bit'), ZSTD(1)),
    MODIFY COLUMN price Float64 DEFAULT if(price_code < 0 AND price_code > -4503599627370496,
        bitShiftRight(bitNot(price_code), 3) / [1e0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12][bitAnd(bitNot(price_code), 7)],
        reinterpretAsFloat64(price_code)),
    MODIFY COLUMN volume_24h Nullable(Float64) DEFAULT if(volume_24h_code IS NULL, NULL, if(assumeNotNull(volume_24h_code) < 0 AND assumeNotNull(volume_24h_code) > -4503599627370496,
        bitShiftRight(bitNot(assumeNotNull(volume_24h_code)), 3) / [1e0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12][bitAnd(bitNot(assumeNotNull(volume_24h_code)), 7)],
        reinterpretAsFloat64(assumeNotNull(volume_24h_code)))),
    MODIFY COLUMN market_cap Nullable(Float64) DEFAULT if(market_cap_code IS NULL, NULL,
        reinterpretAsFloat64(assumeNotNull(market_cap_code) + reinterpretAsInt64(price * ifNull(circulating_supply, 0))));

ALTER TABLE token_prices_30m_mv MODIFY QUERY
SELECT token,
       bucket_at,
       toUInt64(toInt64(toUnixTimestamp(bucket_at)) * 1000 + 1800000 - toUnixTimestamp64Milli(first_at)) * 8 + first_quote.6 AS rank,
       first_quote.1 AS price_code,
       first_quote.2 AS volume_24h_code,
       first_quote.3 AS market_cap_code,
       first_quote.4 AS total_supply,
       first_quote.5 AS circulating_supply
FROM
(
    SELECT token,
           toStartOfInterval(observed_at, INTERVAL 30 MINUTE, 'UTC') AS bucket_at,
           min(observed_at) AS first_at,
           argMin((price_code, volume_24h_code, market_cap_code, total_supply, circulating_supply, known_count), (observed_at, -known_count)) AS first_quote
    FROM
    (
        SELECT token, observed_at, price_code, volume_24h_code, market_cap_code, total_supply, circulating_supply,
               toInt16((volume_24h_code IS NOT NULL) + (market_cap_code IS NOT NULL) + (total_supply IS NOT NULL) + (circulating_supply IS NOT NULL)) AS known_count
        FROM token_quotes_in
    )
    GROUP BY token, bucket_at
);

ALTER TABLE token_prices_1h
    ADD COLUMN IF NOT EXISTS price_code Int64 CODEC(Delta, T64('bit'), ZSTD(1)),
    ADD COLUMN IF NOT EXISTS volume_24h_code Nullable(Int64) CODEC(Delta, T64('bit'), ZSTD(1)),
    ADD COLUMN IF NOT EXISTS market_cap_code Nullable(Int64) CODEC(Delta, T64('bit'), ZSTD(1)),
    MODIFY COLUMN price Float64 DEFAULT if(price_code < 0 AND price_code > -4503599627370496,
        bitShiftRight(bitNot(price_code), 3) / [1e0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12][bitAnd(bitNot(price_code), 7)],
        reinterpretAsFloat64(price_code)),
    MODIFY COLUMN volume_24h Nullable(Float64) DEFAULT if(volume_24h_code IS NULL, NULL, if(assumeNotNull(volume_24h_code) < 0 AND assumeNotNull(volume_24h_code) > -4503599627370496,
        bitShiftRight(bitNot(assumeNotNull(volume_24h_code)), 3) / [1e0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12][bitAnd(bitNot(assumeNotNull(volume_24h_code)), 7)],
        reinterpretAsFloat64(assumeNotNull(volume_24h_code)))),
    MODIFY COLUMN market_cap Nullable(Float64) DEFAULT if(market_cap_code IS NULL, NULL,
        reinterpretAsFloat64(assumeNotNull(market_cap_code) + reinterpretAsInt64(price * ifNull(circulating_supply, 0))));

ALTER TABLE token_prices_1h_mv MODIFY QUERY
SELECT token,
       bucket_at,
       toUInt64(toInt64(toUnixTimestamp(bucket_at)) * 1000 + 3600000 - toUnixTimestamp64Milli(first_at)) * 8 + first_quote.6 AS rank,
       first_quote.1 AS price_code,
       first_quote.2 AS volume_24h_code,
       first_quote.3 AS market_cap_code,
       first_quote.4 AS total_supply,
       first_quote.5 AS circulating_supply
FROM
(
    SELECT token,
           toStartOfInterval(observed_at, INTERVAL 60 MINUTE, 'UTC') AS bucket_at,
           min(observed_at) AS first_at,
           argMin((price_code, volume_24h_code, market_cap_code, total_supply, circulating_supply, known_count), (observed_at, -known_count)) AS first_quote
    FROM
    (
        SELECT token, observed_at, price_code, volume_24h_code, market_cap_code, total_supply, circulating_supply,
               toInt16((volume_24h_code IS NOT NULL) + (market_cap_code IS NOT NULL) + (total_supply IS NOT NULL) + (circulating_supply IS NOT NULL)) AS known_count
        FROM token_quotes_in
    )
    GROUP BY token, bucket_at
);

ALTER TABLE token_prices_4h
    ADD COLUMN IF NOT EXISTS price_code Int64 CODEC(Delta, T64('bit'), ZSTD(1)),
    ADD COLUMN IF NOT EXISTS volume_24h_code Nullable(Int64) CODEC(Delta, T64('bit'), ZSTD(1)),
    ADD COLUMN IF NOT EXISTS market_cap_code Nullable(Int64) CODEC(Delta, T64('bit'), ZSTD(1)),
    MODIFY COLUMN price Float64 DEFAULT if(price_code < 0 AND price_code > -4503599627370496,
        bitShiftRight(bitNot(price_code), 3) / [1e0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12][bitAnd(bitNot(price_code), 7)],
        reinterpretAsFloat64(price_code)),
    MODIFY COLUMN volume_24h Nullable(Float64) DEFAULT if(volume_24h_code IS NULL, NULL, if(assumeNotNull(volume_24h_code) < 0 AND assumeNotNull(volume_24h_code) > -4503599627370496,
        bitShiftRight(bitNot(assumeNotNull(volume_24h_code)), 3) / [1e0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12][bitAnd(bitNot(assumeNotNull(volume_24h_code)), 7)],
        reinterpretAsFloat64(assumeNotNull(volume_24h_code)))),
    MODIFY COLUMN market_cap Nullable(Float64) DEFAULT if(market_cap_code IS NULL, NULL,
        reinterpretAsFloat64(assumeNotNull(market_cap_code) + reinterpretAsInt64(price * ifNull(circulating_supply, 0))));

ALTER TABLE token_prices_4h_mv MODIFY QUERY
SELECT token,
       bucket_at,
       toUInt64(toInt64(toUnixTimestamp(bucket_at)) * 1000 + 14400000 - toUnixTimestamp64Milli(first_at)) * 8 + first_quote.6 AS rank,
       first_quote.1 AS price_code,
       first_quote.2 AS volume_24h_code,
       first_quote.3 AS market_cap_code,
       first_quote.4 AS total_supply,
       first_quote.5 AS circulating_supply
FROM
(
    SELECT token,
           toStartOfInterval(observed_at, INTERVAL 240 MINUTE, 'UTC') AS bucket_at,
           min(observed_at) AS first_at,
           argMin((price_code, volume_24h_code, market_cap_code, total_supply, circulating_supply, known_count), (observed_at, -known_count)) AS first_quote
    FROM
    (
        SELECT token, observed_at, price_code, volume_24h_code, market_cap_code, total_supply, circulating_supply,
               toInt16((volume_24h_code IS NOT NULL) + (market_cap_code IS NOT NULL) + (total_supply IS NOT NULL) + (circulating_supply IS NOT NULL)) AS known_count
        FROM token_quotes_in
    )
    GROUP BY token, bucket_at
);

ALTER TABLE token_prices_1d
    ADD COLUMN IF NOT EXISTS price_code Int64 CODEC(Delta, T64('bit'), ZSTD(1)),
    ADD COLUMN IF NOT EXISTS volume_24h_code Nullable(Int64) CODEC(Delta, T64('bit'), ZSTD(1)),
    ADD COLUMN IF NOT EXISTS market_cap_code Nullable(Int64) CODEC(Delta, T64('bit'), ZSTD(1)),
    MODIFY COLUMN price Float64 DEFAULT if(price_code < 0 AND price_code > -4503599627370496,
        bitShiftRight(bitNot(price_code), 3) / [1e0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12][bitAnd(bitNot(price_code), 7)],
        reinterpretAsFloat64(price_code)),
    MODIFY COLUMN volume_24h Nullable(Float64) DEFAULT if(volume_24h_code IS NULL, NULL, if(assumeNotNull(volume_24h_code) < 0 AND assumeNotNull(volume_24h_code) > -4503599627370496,
        bitShiftRight(bitNot(assumeNotNull(volume_24h_code)), 3) / [1e0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12][bitAnd(bitNot(assumeNotNull(volume_24h_code)), 7)],
        reinterpretAsFloat64(assumeNotNull(volume_24h_code)))),
    MODIFY COLUMN market_cap Nullable(Float64) DEFAULT if(market_cap_code IS NULL, NULL,
        reinterpretAsFloat64(assumeNotNull(market_cap_code) + reinterpretAsInt64(price * ifNull(circulating_supply, 0))));

ALTER TABLE token_prices_1d_mv MODIFY QUERY
SELECT token,
       bucket_at,
       toUInt64(toInt64(toUnixTimestamp(bucket_at)) * 1000 + 86400000 - toUnixTimestamp64Milli(first_at)) * 8 + first_quote.6 AS rank,
       first_quote.1 AS price_code,
       first_quote.2 AS volume_24h_code,
       first_quote.3 AS market_cap_code,
       first_quote.4 AS total_supply,
       first_quote.5 AS circulating_supply
FROM
(
    SELECT token,
           toStartOfDay(observed_at, 'UTC') AS bucket_at,
           min(observed_at) AS first_at,
           argMin((price_code, volume_24h_code, market_cap_code, total_supply, circulating_supply, known_count), (observed_at, -known_count)) AS first_quote
    FROM
    (
        SELECT token, observed_at, price_code, volume_24h_code, market_cap_code, total_supply, circulating_supply,
               toInt16((volume_24h_code IS NOT NULL) + (market_cap_code IS NOT NULL) + (total_supply IS NOT NULL) + (circulating_supply IS NOT NULL)) AS known_count
        FROM token_quotes_in
    )
    GROUP BY token, bucket_at
);

ALTER TABLE token_prices_7d
    ADD COLUMN IF NOT EXISTS price_code Int64 CODEC(Delta, T64('bit'), ZSTD(1)),
    ADD COLUMN IF NOT EXISTS volume_24h_code Nullable(Int64) CODEC(Delta, T64('bit'), ZSTD(1)),
    ADD COLUMN IF NOT EXISTS market_cap_code Nullable(Int64) CODEC(Delta, T64('bit'), ZSTD(1)),
    MODIFY COLUMN price Float64 DEFAULT if(price_code < 0 AND price_code > -4503599627370496,
        bitShiftRight(bitNot(price_code), 3) / [1e0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12][bitAnd(bitNot(price_code), 7)],
        reinterpretAsFloat64(price_code)),
    MODIFY COLUMN volume_24h Nullable(Float64) DEFAULT if(volume_24h_code IS NULL, NULL, if(assumeNotNull(volume_24h_code) < 0 AND assumeNotNull(volume_24h_code) > -4503599627370496,
        bitShiftRight(bitNot(assumeNotNull(volume_24h_code)), 3) / [1e0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12][bitAnd(bitNot(assumeNotNull(volume_24h_code)), 7)],
        reinterpretAsFloat64(assumeNotNull(volume_24h_code)))),
    MODIFY COLUMN market_cap Nullable(Float64) DEFAULT if(market_cap_code IS NULL, NULL,
        reinterpretAsFloat64(assumeNotNull(market_cap_code) + reinterpretAsInt64(price * ifNull(circulating_supply, 0))));

ALTER TABLE token_prices_7d_mv MODIFY QUERY
SELECT token,
       bucket_at,
       toUInt64(toInt64(toUnixTimestamp(bucket_at)) * 1000 + 604800000 - toUnixTimestamp64Milli(first_at)) * 8 + first_quote.6 AS rank,
       first_quote.1 AS price_code,
       first_quote.2 AS volume_24h_code,
       first_quote.3 AS market_cap_code,
       first_quote.4 AS total_supply,
       first_quote.5 AS circulating_supply
FROM
(
    SELECT token,
           toDateTime(toStartOfInterval(observed_at, INTERVAL 1 WEEK, 'UTC'), 'UTC') AS bucket_at,
           min(observed_at) AS first_at,
           argMin((price_code, volume_24h_code, market_cap_code, total_supply, circulating_supply, known_count), (observed_at, -known_count)) AS first_quote
    FROM
    (
        SELECT token, observed_at, price_code, volume_24h_code, market_cap_code, total_supply, circulating_supply,
               toInt16((volume_24h_code IS NOT NULL) + (market_cap_code IS NOT NULL) + (total_supply IS NOT NULL) + (circulating_supply IS NOT NULL)) AS known_count
        FROM token_quotes_in
    )
    GROUP BY token, bucket_at
);

ALTER TABLE token_prices
    UPDATE price_code = reinterpretAsInt64(price),
           volume_24h_code = if(volume_24h IS NULL, NULL, reinterpretAsInt64(assumeNotNull(volume_24h))),
           market_cap_code = if(market_cap IS NULL, NULL, reinterpretAsInt64(assumeNotNull(market_cap)) - reinterpretAsInt64(price * ifNull(circulating_supply, 0)))
    WHERE price_code = 0
    SETTINGS mutations_sync = 2;

INSERT INTO token_prices (token, observed_at)
SELECT token, observed_at FROM token_prices WHERE price_code = 0 AND throwIf(price_code = 0, 'rows came without codes meanwhile: migrate again') = 0;

ALTER TABLE token_prices
    DROP COLUMN IF EXISTS market_cap,
    DROP COLUMN IF EXISTS volume_24h,
    DROP COLUMN IF EXISTS price,
    ADD COLUMN price Float64 ALIAS if(price_code < 0 AND price_code > -4503599627370496,
        bitShiftRight(bitNot(price_code), 3) / [1e0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12][bitAnd(bitNot(price_code), 7)],
        reinterpretAsFloat64(price_code)),
    ADD COLUMN volume_24h Nullable(Float64) ALIAS if(volume_24h_code IS NULL, NULL, if(assumeNotNull(volume_24h_code) < 0 AND assumeNotNull(volume_24h_code) > -4503599627370496,
        bitShiftRight(bitNot(assumeNotNull(volume_24h_code)), 3) / [1e0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12][bitAnd(bitNot(assumeNotNull(volume_24h_code)), 7)],
        reinterpretAsFloat64(assumeNotNull(volume_24h_code)))),
    ADD COLUMN market_cap Nullable(Float64) ALIAS if(market_cap_code IS NULL, NULL,
        reinterpretAsFloat64(assumeNotNull(market_cap_code) + reinterpretAsInt64(price * ifNull(circulating_supply, 0))));

ALTER TABLE token_prices_30m
    UPDATE price_code = reinterpretAsInt64(price),
           volume_24h_code = if(volume_24h IS NULL, NULL, reinterpretAsInt64(assumeNotNull(volume_24h))),
           market_cap_code = if(market_cap IS NULL, NULL, reinterpretAsInt64(assumeNotNull(market_cap)) - reinterpretAsInt64(price * ifNull(circulating_supply, 0)))
    WHERE price_code = 0
    SETTINGS mutations_sync = 2;

INSERT INTO token_prices_30m (token, bucket_at)
SELECT token, bucket_at FROM token_prices_30m WHERE price_code = 0 AND throwIf(price_code = 0, 'rows came without codes meanwhile: migrate again') = 0;

ALTER TABLE token_prices_30m
    DROP COLUMN IF EXISTS market_cap,
    DROP COLUMN IF EXISTS volume_24h,
    DROP COLUMN IF EXISTS price,
    ADD COLUMN price Float64 ALIAS if(price_code < 0 AND price_code > -4503599627370496,
        bitShiftRight(bitNot(price_code), 3) / [1e0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12][bitAnd(bitNot(price_code), 7)],
        reinterpretAsFloat64(price_code)),
    ADD COLUMN volume_24h Nullable(Float64) ALIAS if(volume_24h_code IS NULL, NULL, if(assumeNotNull(volume_24h_code) < 0 AND assumeNotNull(volume_24h_code) > -4503599627370496,
        bitShiftRight(bitNot(assumeNotNull(volume_24h_code)), 3) / [1e0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12][bitAnd(bitNot(assumeNotNull(volume_24h_code)), 7)],
        reinterpretAsFloat64(assumeNotNull(volume_24h_code)))),
    ADD COLUMN market_cap Nullable(Float64) ALIAS if(market_cap_code IS NULL, NULL,
        reinterpretAsFloat64(assumeNotNull(market_cap_code) + reinterpretAsInt64(price * ifNull(circulating_supply, 0))));

ALTER TABLE token_prices_1h
    UPDATE price_code = reinterpretAsInt64(price),
           volume_24h_code = if(volume_24h IS NULL, NULL, reinterpretAsInt64(assumeNotNull(volume_24h))),
           market_cap_code = if(market_cap IS NULL, NULL, reinterpretAsInt64(assumeNotNull(market_cap)) - reinterpretAsInt64(price * ifNull(circulating_supply, 0)))
    WHERE price_code = 0
    SETTINGS mutations_sync = 2;

INSERT INTO token_prices_1h (token, bucket_at)
SELECT token, bucket_at FROM token_prices_1h WHERE price_code = 0 AND throwIf(price_code = 0, 'rows came without codes meanwhile: migrate again') = 0;

ALTER TABLE token_prices_1h
    DROP COLUMN IF EXISTS market_cap,
    DROP COLUMN IF EXISTS volume_24h,
    DROP COLUMN IF EXISTS price,
    ADD COLUMN price Float64 ALIAS if(price_code < 0 AND price_code > -4503599627370496,
        bitShiftRight(bitNot(price_code), 3) / [1e0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12][bitAnd(bitNot(price_code), 7)],
        reinterpretAsFloat64(price_code)),
    ADD COLUMN volume_24h Nullable(Float64) ALIAS if(volume_24h_code IS NULL, NULL, if(assumeNotNull(volume_24h_code) < 0 AND assumeNotNull(volume_24h_code) > -4503599627370496,
        bitShiftRight(bitNot(assumeNotNull(volume_24h_code)), 3) / [1e0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12][bitAnd(bitNot(assumeNotNull(volume_24h_code)), 7)],
        reinterpretAsFloat64(assumeNotNull(volume_24h_code)))),
    ADD COLUMN market_cap Nullable(Float64) ALIAS if(market_cap_code IS NULL, NULL,
        reinterpretAsFloat64(assumeNotNull(market_cap_code) + reinterpretAsInt64(price * ifNull(circulating_supply, 0))));

ALTER TABLE token_prices_4h
    UPDATE price_code = reinterpretAsInt64(price),
           volume_24h_code = if(volume_24h IS NULL, NULL, reinterpretAsInt64(assumeNotNull(volume_24h))),
           market_cap_code = if(market_cap IS NULL, NULL, reinterpretAsInt64(assumeNotNull(market_cap)) - reinterpretAsInt64(price * ifNull(circulating_supply, 0)))
    WHERE price_code = 0
    SETTINGS mutations_sync = 2;

INSERT INTO token_prices_4h (token, bucket_at)
SELECT token, bucket_at FROM token_prices_4h WHERE price_code = 0 AND throwIf(price_code = 0, 'rows came without codes meanwhile: migrate again') = 0;

ALTER TABLE token_prices_4h
    DROP COLUMN IF EXISTS market_cap,
    DROP COLUMN IF EXISTS volume_24h,
    DROP COLUMN IF EXISTS price,
    ADD COLUMN price Float64 ALIAS if(price_code < 0 AND price_code > -4503599627370496,
        bitShiftRight(bitNot(price_code), 3) / [1e0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12][bitAnd(bitNot(price_code), 7)],
        reinterpretAsFloat64(price_code)),
    ADD COLUMN volume_24h Nullable(Float64) ALIAS if(volume_24h_code IS NULL, NULL, if(assumeNotNull(volume_24h_code) < 0 AND assumeNotNull(volume_24h_code) > -4503599627370496,
        bitShiftRight(bitNot(assumeNotNull(volume_24h_code)), 3) / [1e0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12][bitAnd(bitNot(assumeNotNull(volume_24h_code)), 7)],
        reinterpretAsFloat64(assumeNotNull(volume_24h_code)))),
    ADD COLUMN market_cap Nullable(Float64) ALIAS if(market_cap_code IS NULL, NULL,
        reinterpretAsFloat64(assumeNotNull(market_cap_code) + reinterpretAsInt64(price * ifNull(circulating_supply, 0))));

ALTER TABLE token_prices_1d
    UPDATE price_code = reinterpretAsInt64(price),
           volume_24h_code = if(volume_24h IS NULL, NULL, reinterpretAsInt64(assumeNotNull(volume_24h))),
           market_cap_code = if(market_cap IS NULL, NULL, reinterpretAsInt64(assumeNotNull(market_cap)) - reinterpretAsInt64(price * ifNull(circulating_supply, 0)))
    WHERE price_code = 0
    SETTINGS mutations_sync = 2;

INSERT INTO token_prices_1d (token, bucket_at)
SELECT token, bucket_at FROM token_prices_1d WHERE price_code = 0 AND throwIf(price_code = 0, 'rows came without codes meanwhile: migrate again') = 0;

ALTER TABLE token_prices_1d
    DROP COLUMN IF EXISTS market_cap,
    DROP COLUMN IF EXISTS volume_24h,
    DROP COLUMN IF EXISTS price,
    ADD COLUMN price Float64 ALIAS if(price_code < 0 AND price_code > -4503599627370496,
        bitShiftRight(bitNot(price_code), 3) / [1e0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12][bitAnd(bitNot(price_code), 7)],
        reinterpretAsFloat64(price_code)),
    ADD COLUMN volume_24h Nullable(Float64) ALIAS if(volume_24h_code IS NULL, NULL, if(assumeNotNull(volume_24h_code) < 0 AND assumeNotNull(volume_24h_code) > -4503599627370496,
        bitShiftRight(bitNot(assumeNotNull(volume_24h_code)), 3) / [1e0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12][bitAnd(bitNot(assumeNotNull(volume_24h_code)), 7)],
        reinterpretAsFloat64(assumeNotNull(volume_24h_code)))),
    ADD COLUMN market_cap Nullable(Float64) ALIAS if(market_cap_code IS NULL, NULL,
        reinterpretAsFloat64(assumeNotNull(market_cap_code) + reinterpretAsInt64(price * ifNull(circulating_supply, 0))));

ALTER TABLE token_prices_7d
    UPDATE price_code = reinterpretAsInt64(price),
           volume_24h_code = if(volume_24h IS NULL, NULL, reinterpretAsInt64(assumeNotNull(volume_24h))),
           market_cap_code = if(market_cap IS NULL, NULL, reinterpretAsInt64(assumeNotNull(market_cap)) - reinterpretAsInt64(price * ifNull(circulating_supply, 0)))
    WHERE price_code = 0
    SETTINGS mutations_sync = 2;

INSERT INTO token_prices_7d (token, bucket_at)
SELECT token, bucket_at FROM token_prices_7d WHERE price_code = 0 AND throwIf(price_code = 0, 'rows came without codes meanwhile: migrate again') = 0;

ALTER TABLE token_prices_7d
    DROP COLUMN IF EXISTS market_cap,
    DROP COLUMN IF EXISTS volume_24h,
    DROP COLUMN IF EXISTS price,
    ADD COLUMN price Float64 ALIAS if(price_code < 0 AND price_code > -4503599627370496,
        bitShiftRight(bitNot(price_code), 3) / [1e0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12][bitAnd(bitNot(price_code), 7)],
        reinterpretAsFloat64(price_code)),
    ADD COLUMN volume_24h Nullable(Float64) ALIAS if(volume_24h_code IS NULL, NULL, if(assumeNotNull(volume_24h_code) < 0 AND assumeNotNull(volume_24h_code) > -4503599627370496,
        bitShiftRight(bitNot(assumeNotNull(volume_24h_code)), 3) / [1e0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12][bitAnd(bitNot(assumeNotNull(volume_24h_code)), 7)],
        reinterpretAsFloat64(assumeNotNull(volume_24h_code)))),
    ADD COLUMN market_cap Nullable(Float64) ALIAS if(market_cap_code IS NULL, NULL,
        reinterpretAsFloat64(assumeNotNull(market_cap_code) + reinterpretAsInt64(price * ifNull(circulating_supply, 0))));

ALTER TABLE token_prices_30m
    MODIFY SETTING min_bytes_for_wide_part = 262144;

ALTER TABLE token_prices_1h
    MODIFY SETTING min_bytes_for_wide_part = 262144;

ALTER TABLE token_prices_4h
    MODIFY SETTING min_bytes_for_wide_part = 262144;

ALTER TABLE token_prices_1d
    MODIFY SETTING min_bytes_for_wide_part = 262144;

ALTER TABLE token_prices_7d
    MODIFY SETTING min_bytes_for_wide_part = 262144;
