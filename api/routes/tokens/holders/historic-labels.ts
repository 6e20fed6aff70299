import { holderLabelsSeries } from '../../../../shared/datasets/holders.ts'
import { serveSeries } from '../../../series/daily.ts'

export const holderLabelsHistoricRoute = serveSeries(holderLabelsSeries, {
  operation: 'getTokenHolderLabelsHistory',
  path: '/data/tokens/holders/historic-labels',
  summary: 'Supply held by treasuries, token contract and burn addresses over time',
  description:
    'One point per day, newest first: the first snapshot of the day, as in `/data/tokens/holders/historic`. A day without a snapshot is absent. Shares are in percent of the total supply and cover the hundred largest holders, by the labels of addresses in the registry, which has no exchanges. `limit` is in points.',
})
