/** Fees, treasury and their ratio of each DAO, as the table of DAOs has them. */
export const FEES_AND_TREASURIES = {
  title: 'Fees and treasury of each DAO',
  sql: `WITH money AS (
  SELECT dao_id, dao_name, value_usd
  FROM treasury
  QUALIFY row_number() OVER (PARTITION BY dao_id ORDER BY day DESC) = 1
), earned AS (
  SELECT dao_id, dao_name, sum(fees_usd) AS fees_30d_usd
  FROM fees
  WHERE day > (SELECT max(day) FROM fees) - 30
  GROUP BY ALL
  HAVING count(fees_usd) = 30
)
SELECT coalesce(money.dao_name, earned.dao_name) AS dao, fees_30d_usd, value_usd AS treasury_usd,
  round(100 * fees_30d_usd / nullif(value_usd, 0), 2) AS fees_percent_of_treasury
FROM money FULL JOIN earned USING (dao_id)
ORDER BY fees_30d_usd DESC NULLS LAST`,
} as const
