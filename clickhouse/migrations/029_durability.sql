-- Rows are on the disk before an insert is answered. Else a power loss would take what the system had not written yet, up to
-- half a minute: of socials, holders, sentiment and the index token no provider has that a second time, and the ledger and
-- the cursors, once they are on the disk, must not speak of rows that are not. Merged parts are safe as well: the parts that
-- they replace stay for eight minutes. `npm run bench -- durability` measures the cost.
ALTER TABLE tokens MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;
ALTER TABLE token_prices MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;
ALTER TABLE token_quotes MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;
ALTER TABLE token_price_rollups MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;
ALTER TABLE protocol_tvl MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;
ALTER TABLE protocol_tvl_latest MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;
ALTER TABLE job_state MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;
ALTER TABLE token_holders MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;
ALTER TABLE token_holders_latest MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;
ALTER TABLE dex_trades MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;
ALTER TABLE dex_trade_days MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;
ALTER TABLE dex_trade_parties MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;
ALTER TABLE dex_data MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;
ALTER TABLE daos MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;
ALTER TABLE dao_links MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;
ALTER TABLE dao_votes MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;
ALTER TABLE dao_cast_votes MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;
ALTER TABLE dao_proposals MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;
ALTER TABLE dao_proposal_details MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;
ALTER TABLE governance_readings MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;
ALTER TABLE governance_sweeps MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;
ALTER TABLE governor_events MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;
ALTER TABLE governor_readings MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;
ALTER TABLE dao_treasuries MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;
ALTER TABLE dao_ratings MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;
ALTER TABLE dao_ratings_latest MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;
ALTER TABLE twitter_counts MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;
ALTER TABLE twitter_counts_latest MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;
ALTER TABLE discord_members MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;
ALTER TABLE discord_members_latest MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;
ALTER TABLE telegram_members MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;
ALTER TABLE twitter_sentiment MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;
ALTER TABLE twitter_sentiment_latest MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;
ALTER TABLE market_caps MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;
ALTER TABLE treasury_values MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;
ALTER TABLE index_points MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;
ALTER TABLE index_token MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;
ALTER TABLE coverage MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;
ALTER TABLE coverage_notes MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;
ALTER TABLE history_changes MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;
ALTER TABLE coverage_wanted MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;
ALTER TABLE computations MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;
ALTER TABLE registry_records MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;
ALTER TABLE registry_versions MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;
