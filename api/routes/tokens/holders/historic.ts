import { holdersSeries } from '../../../../shared/datasets/holders.ts'
import { serveSeries } from '../../../series/daily.ts'

export const holdersHistoricRoute = serveSeries(holdersSeries, {
  operation: 'getTokenHoldersHistory',
  path: '/data/tokens/holders/historic',
  summary: 'Number of holders of a token, and the holdings of the largest ones, over time',
  description:
    'One point per day, newest first: the first snapshot of the day. A day without a snapshot is absent. Shares are in percent of the total supply. `limit` is in points.',
})
