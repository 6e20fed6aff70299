import { useAnswer } from '../answers.ts'
import { useStart } from '../clock.ts'
import { toCounted } from '../format.ts'
import { type Answer, toQuestion } from '../interface.ts'
import { Card } from '../parts/card.tsx'
import { toDrawing } from '../parts/drawing.ts'
import { RecordTable } from '../parts/record-table.tsx'
import { SeriesChart } from '../parts/series-chart.tsx'
import { Shown } from '../parts/shown.tsx'
import { Change, Value } from '../parts/value.tsx'
import { DatasetState, stateOf } from './freshness.tsx'
import { titleOfDataset } from './gaps.tsx'
import { useIndexNow } from './index-now.ts'
import { EndingSoon, NewestProposals } from './proposals.tsx'
import { CHANGE_24H, NAME, PRICE } from './token-columns.tsx'

type Points<P extends '/data/aggregated/market-cap' | '/data/aggregated/treasury-value' | '/data/index/historic'> =
  Answer<P>
type Element<T> = T extends readonly (infer E)[] ? E : never
type MarketCap = Element<Points<'/data/aggregated/market-cap'>>
type TreasuryValue = Element<Points<'/data/aggregated/treasury-value'>>
type IndexPoint = Element<Points<'/data/index/historic'>>

/** Data that begins this much later than its range has no change over the range; the first hours may be a gap. */
const MOST_LATE_MS = 36 * 3_600_000

/** The last known value, and its change since the start of the range; unknown if history does not reach back that far. */
function Newest<T>(props: {
  points: readonly T[]
  at: (point: T) => string
  value: (point: T) => number | null
  range: string
  start: string
}) {
  const { points, at, value, range, start } = props
  const first = points.find((point) => value(point) !== null)
  const last = points.findLast((point) => value(point) !== null)
  const [from, to] = [first, last].map((point) => (point === undefined ? null : value(point)))
  const isLate = first === undefined || Date.parse(at(first)) - Date.parse(start) > MOST_LATE_MS
  return (
    <>
      <span class="large">
        <Value of={to} as="usd" />
      </span>{' '}
      <small>{range}</small> <Change of={isLate || !from || to == null ? null : (to / from - 1) * 100} />
    </>
  )
}

function MarketCaps() {
  const start = useStart('90d', '1d')
  const question = toQuestion('/data/aggregated/market-cap', { start, interval: '1d', fill: 'null' })
  const series = useAnswer(question)
  const value = ({ marketCapUsd }: MarketCap) => marketCapUsd.value
  const last: MarketCap | undefined = series.received?.data.findLast((point) => value(point) !== null)
  return (
    <SeriesChart
      title="Market cap of DAO tokens"
      name="Market cap of DAO tokens, 90 days"
      question={question}
      series={series}
      toDrawing={(points) =>
        toDrawing<MarketCap>(points, { as: 'usd', at: ({ recordedAt }) => recordedAt, lines: [['market cap', value]] })
      }
      isLow
    >
      <p class="lead">
        {series.received !== undefined && (
          <>
            <Newest<MarketCap>
              points={series.received.data}
              at={({ recordedAt }) => recordedAt}
              {...{ value, start, range: '90 d' }}
            />{' '}
            <small>
              · <Value of={last?.marketCapUsd.metadata.tokensIncluded} as="count" /> tokens
            </small>
          </>
        )}
      </p>
    </SeriesChart>
  )
}

function Treasuries() {
  const start = useStart('90d', '1d')
  const question = toQuestion('/data/aggregated/treasury-value', { start, interval: '1d', fill: 'null' })
  const series = useAnswer(question)
  const value = ({ treasuryValueUsd }: TreasuryValue) => treasuryValueUsd.value
  const last: TreasuryValue | undefined = series.received?.data.findLast((point) => value(point) !== null)
  return (
    <SeriesChart
      title="Treasuries"
      name="Treasuries of all DAOs, 90 days"
      question={question}
      series={series}
      toDrawing={(points) =>
        toDrawing<TreasuryValue>(points, {
          as: 'usd',
          at: ({ recordedAt }) => recordedAt,
          lines: [['treasuries', value]],
        })
      }
      isLow
    >
      <p class="lead">
        {series.received !== undefined && (
          <>
            <Newest<TreasuryValue>
              points={series.received.data}
              at={({ recordedAt }) => recordedAt}
              {...{ value, start, range: '90 d' }}
            />{' '}
            <small>
              · <Value of={last?.treasuryValueUsd.metadata.daosIncluded} as="count" /> DAOs
            </small>
          </>
        )}
      </p>
    </SeriesChart>
  )
}

function IndexValue() {
  const start = useStart('30d', '1h')
  const newest = useIndexNow()
  const question = toQuestion('/data/index/historic', { start, interval: '1h', order: 'asc', fill: 'null' })
  const series = useAnswer(question)
  return (
    <SeriesChart
      title="Index"
      name="The Index, 30 days"
      question={question}
      series={series}
      toDrawing={(points) =>
        toDrawing<IndexPoint>(points, {
          as: 'usd',
          at: ({ createdAt }) => createdAt,
          lines: [['value', ({ valueUsd }) => valueUsd]],
        })
      }
      newest={{ at: newest.at, values: [newest.valueUsd] }}
      facts={newest.facts}
      isLow
    >
      <p class="lead">
        {series.received !== undefined && (newest.facts !== undefined || newest.failure !== undefined) && (
          <>
            <Newest<IndexPoint>
              points={[...series.received.data, ...(newest.point === undefined ? [] : [newest.point])]}
              at={({ createdAt }) => createdAt}
              value={({ valueUsd }) => valueUsd}
              {...{ start, range: '30 d' }}
            />{' '}
            <a href="index">Since launch</a>
          </>
        )}
      </p>
    </SeriesChart>
  )
}

/** The tokens of at least a million dollars that moved most in one direction. */
function Movers({ title, isGain }: { title: string; isGain: boolean }) {
  const sort = `${isGain ? '-' : ''}financialData.percentChange24h`
  const filter = ['financialData.marketCap>=1000000', `financialData.percentChange24h${isGain ? '>' : '<'}0`]
  const question = toQuestion('/data/tokens', { sort, filter, limit: 5 })
  const tokens = useAnswer(question)
  return (
    <Card title={title} question={question} facts={tokens.received?.facts}>
      <Shown
        of={tokens}
        what="tokens"
        rows={5}
        isEmpty={(data) => data.length === 0}
        empty={isGain ? 'No token rose.' : 'No token fell.'}
      >
        {(data) => (
          // Rows are keyed by position: another token changes the row's content, but not the layout.
          <RecordTable
            caption={title}
            records={data}
            keyOf={(_token, place) => place}
            columns={[NAME, PRICE, CHANGE_24H]}
            isSteady
          />
        )}
      </Shown>
    </Card>
  )
}

/** How many datasets are fresh and complete, and which are not. */
function Fresh() {
  const question = toQuestion('/data/status', {})
  const status = useAnswer(question)
  return (
    <Card title="Freshness" question={question} hasTables={false}>
      <Shown of={status} what="freshness" rows={1}>
        {({ datasets }) => {
          const notable = datasets.filter((dataset) => stateOf(dataset) !== 'fresh')
          return (
            <p class="links">
              <span>
                {datasets.length - notable.length} of {toCounted(datasets.length, 'dataset')} fresh and complete
              </span>
              {notable.map((dataset) => (
                <a key={dataset.dataset} href={`freshness?dataset=${dataset.dataset}`}>
                  {titleOfDataset(dataset.dataset)} <DatasetState dataset={dataset} />
                </a>
              ))}
              <a href="freshness">All datasets and gaps</a>
            </p>
          )
        }}
      </Shown>
    </Card>
  )
}

export function Overview() {
  return (
    <>
      <h1>DAOs and their tokens</h1>
      <div class="grid three">
        <MarketCaps />
        <Treasuries />
        <IndexValue />
      </div>
      <div class="grid three">
        <Movers title="Top gainers, 24 h" isGain />
        <Movers title="Top losers, 24 h" isGain={false} />
        <EndingSoon />
      </div>
      <NewestProposals />
      <Fresh />
    </>
  )
}
