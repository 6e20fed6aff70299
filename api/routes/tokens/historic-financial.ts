import { z } from 'zod'
import { documentedPoint } from '../../../shared/datasets/price-points.ts'
import { tokenPrices } from '../../../shared/datasets/token-prices.ts'
import { countBuckets, HISTORY_START, INTERVALS } from '../../../shared/intervals.ts'
import { idValue } from '../../../shared/record-values.ts'
import type { Token } from '../../../shared/registry/entities.ts'
import { type Answer, toUsualRecord } from '../../formats/formats.ts'
import { COARSE_HEADERS, SERIES_HEADERS } from '../../http/headers.ts'
import { include, optionalPage, time } from '../../parameters/kinds.ts'
import { hasSource, priceRow, sourcedRow } from '../../prices/points.ts'
import { answerPriceSeries, answerPricesInForm } from '../../prices/series.ts'
import { answerPriceTable } from '../../prices/table.ts'
import { defineRoute } from '../../route/define-route.ts'
import { tokenKind } from '../../route/entities.ts'
import { toPoints } from '../../series/filled.ts'
import { checkChosen, checkRange, chosenParameters, isPlain, startAfter, toSeriesRange } from '../../series/series.ts'
import { isWritten } from '../../series/series-answer.ts'
import { readTablePlace } from '../../series/table.ts'

const MAX_POINTS = 1_000_000

const series = z
  .strictObject({
    name: z.string().describe('Name of the token.'),
    id: idValue.describe('Id of the token.'),
    data: toPoints({ record: documentedPoint, time: 'timestamp' }),
  })
  .meta({ id: 'TokenPriceHistory', description: 'Price, volume, market cap and supplies of one token over time.' })

export const historicFinancialRoute = defineRoute({
  operation: 'getTokenPriceHistory',
  path: '/data/tokens/historic-financial',
  tag: 'Tokens',
  summary: 'Price, volume, market cap and supplies of one token over time',
  description:
    'One point per bucket that has an observation, oldest first, on the UTC grid (7d on Mondays). A point is the first observation of its bucket: `timestamp` is the start of the bucket, `quote.USD.timestamp` the time of the observation. `X-Series-Missing` counts the due buckets without a point, up to the last point if `limit` cuts the series, and `X-Series-Coarse` the points whose source had only a coarser step. CSV, NDJSON, Parquet and Arrow accept several tokens: token after token in the order of their ids; `limit` counts the rows of all tokens.',
  one: tokenKind,
  severalInTables: true,
  query: {
    ...chosenParameters(INTERVALS),
    start: time(`First moment, inclusive, not before ${HISTORY_START}.`, '2024-01-01', { earliest: HISTORY_START }),
    end: time('Last moment, exclusive; default: now.', '2024-01-08T00:00:00Z').optional(),
    include: include(['source'], 'With `source`, the provider of each observation.'),
    ...optionalPage('points', { max: MAX_POINTS }),
  },
  record: priceRow,
  recordWith: { record: sourcedRow, members: { source: 'include=source' }, shapes: [] },
  response: series,
  datasets: [tokenPrices],
  headers: { ...SERIES_HEADERS, ...COARSE_HEADERS },
  handle: (call) => answerPrices(call),
})

type PriceCall = Parameters<typeof answerPricesInForm>[0] & {
  readonly found: Token
  readonly query: Parameters<typeof answerPricesInForm>[1]
}

const answerPrices = (call: PriceCall): Promise<Answer> =>
  answerUsual({ ...call, representation: toUsualRecord(call.representation, priceRow) })

async function answerUsual(call: PriceCall): Promise<Answer> {
  const { query, found: token, now, representation } = call
  checkRange(query)
  checkChosen(query, INTERVALS)
  const { interval, limit } = query
  if (interval === undefined || !isPlain(query, 'asc', interval)) return answerPricesInForm(call, query)
  const range = toSeriesRange({ ...query, interval }, now())
  const most = Math.min(limit ?? Number.POSITIVE_INFINITY, countBuckets(range.from, range.to, interval))
  if (hasSource(representation) && representation.format === 'json') return answerPricesInForm(call, query)
  if (call.entities.length > 1 || isWritten(representation, most) || hasSource(representation))
    return answerPriceTable(call, { ...query, interval })
  const after = representation.after === '' ? undefined : readTablePlace(representation.after, [token.key], range)
  const start = after === undefined ? query.start : startAfter(after.at, interval)
  const rest = toSeriesRange({ ...query, interval, start }, now())
  return answerPriceSeries(call, { token, interval, range: rest, limit })
}
