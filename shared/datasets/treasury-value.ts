import { ENTIRE_REGISTRY } from '../registry/entities.ts'
import { dailySumRow, defineSums } from './daily-sum.ts'
import { type DayMembers, isMember, withinDays } from './day-members.ts'
import { defineDataset } from './define-dataset.ts'
import { daoTreasury, IS_WHOLE } from './treasury.ts'

/** The total value of the treasuries of the DAOs that were live on each day. */
export const treasuryValue = defineDataset({
  name: 'treasury-value',
  title: 'Total treasury value',
  cadence: '1d',
  table: 'treasury_values',
  row: dailySumRow,
  entities: () => [ENTIRE_REGISTRY],
  needsDaos: true,
  computedFrom: [daoTreasury],
  hasHistory: true,
  series: { table: 'treasury_values', time: 'recorded_at' },
})

/**
 * The first treasury of the day of each DAO that counts on it. A value of 0 means that none of its holdings has a
 * price, so it counts as unknown. So does a treasury of which holdings could not be read. Sources count different assets, so the source is part of `member`: values of
 * different sources are not compared.
 */
export const toTreasuryValues: DayMembers = (backMs) => `
  SELECT toStartOfDay(observed_at, 'UTC') AS day, tuple(dao, argMin(source, observed_at)) AS member, argMin(value_usd, observed_at) AS usd
  FROM dao_treasuries FINAL
  WHERE ${withinDays('observed_at', backMs)} AND value_usd > 0 AND ${IS_WHOLE} AND ${isMember('dao', 'observed_at', 'daos')}
  GROUP BY dao, day`

export const treasuryValueSeries = defineSums(treasuryValue, {
  sum: { name: 'treasuryValueUsd', series: 'TreasuryValuePoint', of: 'Sum of the treasuries of all DAOs together' },
  count: { name: 'daosIncluded', noun: 'DAOs' },
  members: toTreasuryValues,
  all: ({ daos }) => daos,
})
