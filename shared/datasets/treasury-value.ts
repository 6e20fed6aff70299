import { WHOLE_REGISTRY } from '../registry/entities.ts'
import { dailySumRow } from './daily-sum.ts'
import { defineDataset } from './define-dataset.ts'

/** The treasuries by day of all DAOs together that were live then. */
export const treasuryValue = defineDataset({
  name: 'treasury-value',
  cadence: '1d',
  table: 'treasury_values',
  row: dailySumRow,
  entities: () => [WHOLE_REGISTRY],
  series: { table: 'treasury_values', time: 'recorded_at' },
})
