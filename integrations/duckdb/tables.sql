-- Copies rows of the views of load.sql into tables, for tools that open a DuckDB file in a session of their own.
-- Days instead of five minutes: the finer prices remain in the publication.
CREATE SCHEMA IF NOT EXISTS bi;
CREATE OR REPLACE TABLE bi.tokens AS FROM tokens;
CREATE OR REPLACE TABLE bi.daos AS FROM daos;
CREATE OR REPLACE TABLE bi.prices AS SELECT * FROM prices WHERE interval = '1d';
CREATE OR REPLACE TABLE bi.treasury AS FROM treasury;
CREATE OR REPLACE TABLE bi.treasury_holdings AS FROM treasury_holdings;
CREATE OR REPLACE TABLE bi.fees AS FROM fees;
CREATE OR REPLACE TABLE bi.proposals AS FROM proposals;
CREATE OR REPLACE TABLE bi.votes AS FROM votes;
CREATE OR REPLACE TABLE bi.market_cap AS FROM market_cap;
CREATE OR REPLACE TABLE bi.treasury_value AS FROM treasury_value;
