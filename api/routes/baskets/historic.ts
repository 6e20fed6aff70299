import { z } from 'zod'
import { tokenPrices } from '../../../shared/datasets/token-prices.ts'
import { numberOrNull, timeValue, uint32 } from '../../../shared/record-values.ts'
import { computeBasket, countValues } from '../../backtest/answer.ts'
import { basketParameters } from '../../backtest/question.ts'
import { SERIES_HEADERS } from '../../http/headers.ts'
import { answerComputed, EVERYTHING } from '../../lists/lists.ts'
import { defineRoute } from '../../route/define-route.ts'
import { nextGridTime, toSeriesHeaders } from '../../series/series.ts'

const point = z
  .strictObject({
    recordedAt: timeValue.describe('The first moment of the day, in UTC.'),
    nav: numberOrNull.describe('Value of the basket at the first prices of the day; null if a held token has none.'),
    return: numberOrNull.describe('Change since the day before, as a fraction; null unless both values are known.'),
    turnover: z.number().describe('Traded part of the basket on this day, one way, as a fraction.'),
    members: uint32.describe('Number of held tokens.'),
  })
  .meta({ id: 'BasketPoint', description: 'Value of a basket on one day.' })

export const basketHistoricRoute = defineRoute({
  operation: 'getBasketHistory',
  path: '/data/baskets/historic',
  tag: 'Baskets',
  summary: 'The value of an own basket of tokens over time',
  description:
    'A back-test: one point per day, oldest first, from the first allocation on. Each rebalance decides with prices and market caps of the day before, and trades at the first prices of its day. Tokens that ended are candidates until then. `X-Series-Missing` counts the days without a value.',
  query: basketParameters,
  record: point,
  datasets: [tokenPrices],
  headers: SERIES_HEADERS,
  estimateValues: ({ registry, query, now }) => countValues(query, registry, now()),
  handle: async (call) => {
    const { test, asOf, isOpen } = await computeBasket(call, call.query)
    const records = test.days.map(({ at, ...day }) => ({
      recordedAt: new Date(at).toISOString(),
      nav: day.nav,
      return: day.return,
      turnover: day.turnover,
      members: day.members,
    }))
    const missing = test.days.filter(({ nav }) => nav === null).length
    return answerComputed(
      call,
      {
        name: 'basket-historic',
        records,
        asOf,
        headers: toSeriesHeaders('1d', records.length - missing, missing),
        ...(isOpen && { expiresAt: nextGridTime(call.now()) }),
      },
      { selection: EVERYTHING, sort: [], filters: [] },
    )
  },
})
