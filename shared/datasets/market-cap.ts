import { WHOLE_REGISTRY } from '../registry/entities.ts'
import { dailySumRow } from './daily-sum.ts'
import { defineDataset } from './define-dataset.ts'

/** The market capitalization of all tokens together that were live then, by day. */
export const marketCap = defineDataset({
  name: 'market-cap',
  cadence: '1d',
  table: 'market_caps',
  row: dailySumRow,
  entities: () => [WHOLE_REGISTRY],
  series: { table: 'market_caps', time: 'recorded_at' },
})
