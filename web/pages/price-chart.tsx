import { useMemo } from 'preact/hooks'
import { useAnswer } from '../answers.ts'
import { now, useStart } from '../clock.ts'
import { type Answer, toQuestion } from '../interface.ts'
import { Choice, chosen } from '../parts/choice.tsx'
import { type ChartEvent, type Newest, toDrawing } from '../parts/drawing.ts'
import type { Embedding } from '../parts/open-as.tsx'
import { SeriesChart } from '../parts/series-chart.tsx'
import { isEmbed } from '../place.ts'
import { fits, INTERVALS, type Interval, RANGES, type Range, USUAL } from '../ranges.ts'
import { useDataMarks } from './gaps.tsx'
import { useVoteEnds } from './proposals.tsx'

const METRICS = ['price', 'candles', 'market-cap', 'volume'] as const
type Metric = (typeof METRICS)[number]
const TEXTS: Record<Metric, string> = {
  price: 'Price',
  candles: 'Candles',
  'market-cap': 'Market cap',
  volume: 'Volume',
}

type Quotes = Answer<'/data/tokens/historic-financial'>
type Candles = Answer<'/data/tokens/historic-ohlc'>
/** Points with or without `fill`: a value at each time, or null if there is none. */
type Quote = Quotes['data'][number]
type Candle = Candles['data'][number]

const LINES: Record<Exclude<Metric, 'candles'>, (quote: Quote) => number | null> = {
  price: ({ quote }) => quote.USD.price,
  'market-cap': ({ quote }) => quote.USD.market_cap,
  volume: ({ quote }) => quote.USD.volume_24h,
}

const ofQuotes = (metric: Exclude<Metric, 'candles'>) => (answer: Quotes) =>
  toDrawing<Quote>(answer.data, {
    as: 'usd',
    at: ({ timestamp }) => timestamp,
    lines: [[TEXTS[metric], LINES[metric]]],
  })

const ofCandles = (answer: Candles) =>
  toDrawing<Candle>(answer.data, {
    kind: 'candles',
    as: 'usd',
    at: ({ timestamp }) => timestamp,
    lines: [
      ['open', ({ open }) => open],
      ['high', ({ high }) => high],
      ['low', ({ low }) => low],
      ['close', ({ close }) => close],
    ],
  })

interface ChartQuery {
  readonly id: string
  readonly start: string
  readonly fill: 'null'
}

function QuoteChart(props: ChartProps & { metric: Exclude<Metric, 'candles'>; interval: Interval }) {
  const { query, range, metric, interval, ...rest } = props
  const question = toQuestion('/data/tokens/historic-financial', { ...query, interval }, range)
  return <SeriesChart {...rest} question={question} series={useAnswer(question)} toDrawing={ofQuotes(metric)} />
}

function CandleChart(props: ChartProps & { interval: Exclude<Interval, '5m'> }) {
  const { query, range, interval, ...rest } = props
  const question = toQuestion('/data/tokens/historic-ohlc', { ...query, interval }, range)
  return <SeriesChart {...rest} question={question} series={useAnswer(question)} toDrawing={ofCandles} />
}

interface ChartProps {
  readonly query: ChartQuery
  readonly range: Range
  readonly title: string
  readonly name: string
  readonly events: readonly ChartEvent[]
  readonly embedding: Embedding
  readonly controls: preact.ComponentChildren
  readonly isLow: boolean
  readonly newest: Newest | undefined
}

/** The range and interval in the address; the default interval if the given one does not fit the range. */
export function useRange(usual: Range) {
  const range = chosen('range', RANGES, usual)
  const chosenInterval = chosen('interval', INTERVALS, USUAL[range])
  // The fitting intervals do not change for weeks, so the current time is not tracked.
  const isOff = (value: Interval) => !fits(range, value, now.peek())
  const interval = isOff(chosenInterval) ? USUAL[range] : chosenInterval
  return { range, interval, isOff, start: useStart(range, interval) }
}

export const RangeChoice = ({ range }: { range: Range }) => (
  <Choice
    name="range"
    label="Range"
    options={RANGES.map((value) => ({ value, text: value }))}
    value={range}
    clears={['interval']}
  />
)

type Now = Answer<'/data/tokens'>[number]['financialData']

const NEWEST: Record<Exclude<Metric, 'candles'>, (now: Now) => number | null> = {
  price: ({ price }) => price,
  'market-cap': ({ marketCap }) => marketCap,
  volume: ({ volume24h }) => volume24h,
}

/** The prices of a token: metric, range and interval are in the address. A line ends with the newest value. */
export function PriceChart(props: {
  id: string
  name: string
  dao: string | undefined
  newest: Now | undefined
  isLow?: boolean
}) {
  const { id, name, dao, newest, isLow = false } = props
  const { range, interval, isOff, start } = useRange('30d')
  const metric = chosen('metric', METRICS, 'price')
  const ofCandle = interval === '5m' ? '30m' : interval
  const shown = metric === 'candles' ? ofCandle : interval
  const controls = (
    <div class="choices">
      <Choice
        name="metric"
        label="What is drawn"
        options={METRICS.map((value) => ({ value, text: TEXTS[value] }))}
        value={metric}
      />
      <RangeChoice range={range} />
      <Choice
        name="interval"
        label="Interval"
        options={INTERVALS.map((value) => ({
          value,
          text: value,
          isOff: isOff(value) || (metric === 'candles' && value === '5m'),
        }))}
        value={shown}
      />
    </div>
  )
  const query = { id, start, fill: 'null' } as const
  const [votes, marks] = [useVoteEnds(dao), useDataMarks('prices', isEmbed ? undefined : id, { start, range })]
  const events = useMemo(() => [...votes, ...marks], [votes, marks])
  const chart = {
    title: isEmbed ? `${name}: ${TEXTS[metric]}` : TEXTS[metric],
    embedding: { path: `tokens/${id}`, query: { metric, range, interval: shown }, image: `charts/24h/${id}.svg` },
    name: `${name}: ${TEXTS[metric]}, ${range} by ${shown}`,
    controls,
    query,
    range,
    events,
    isLow,
  }
  if (metric === 'candles') return <CandleChart {...chart} newest={undefined} interval={ofCandle} />
  const end = newest && { at: newest.lastUpdated, values: [NEWEST[metric](newest)] }
  return <QuoteChart {...chart} newest={end} metric={metric} interval={interval} />
}
