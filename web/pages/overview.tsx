import { useAnswer } from '../answers.ts'
import { useStart } from '../clock.ts'
import { type Answer, toQuestion } from '../interface.ts'
import { Card, Stat, Stats } from '../parts/card.tsx'
import { toDrawing } from '../parts/drawing.ts'
import { RecordTable } from '../parts/record-table.tsx'
import { SeriesChart } from '../parts/series-chart.tsx'
import { Shown } from '../parts/shown.tsx'
import { Ago, Change, Unknown, Value } from '../parts/value.tsx'
import { DatasetState } from './freshness.tsx'
import { titleOfDataset } from './gaps.tsx'
import { NewestProposals } from './proposals.tsx'
import { CHANGE_24H, NAME, PRICE } from './token-columns.tsx'

type Points<P extends '/data/aggregated/market-cap' | '/data/aggregated/treasury-value' | '/data/index/historic'> =
  Answer<P>
type Element<T> = T extends readonly (infer E)[] ? E : never
type MarketCap = Element<Points<'/data/aggregated/market-cap'>>
type TreasuryValue = Element<Points<'/data/aggregated/treasury-value'>>
type IndexPoint = Element<Points<'/data/index/historic'>>

/** The last known point. */
function Newest<T>({ points, value }: { points: readonly T[]; value: (point: T) => number | null }) {
  const available = points.filter((point) => value(point) !== null)
  const last = available.at(-1)
  return (
    <span class="large">
      <Value of={last === undefined ? null : value(last)} as="usd" />
    </span>
  )
}

function MarketCaps() {
  const question = toQuestion('/data/aggregated/market-cap', {
    start: useStart('90d', '1d'),
    interval: '1d',
    fill: 'null',
  })
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
            <Newest<MarketCap> points={series.received.data} value={value} />{' '}
            <small>
              of <Value of={last?.marketCapUsd.metadata.tokensIncluded} as="count" /> tokens
            </small>
          </>
        )}
      </p>
    </SeriesChart>
  )
}

function Treasuries() {
  const question = toQuestion('/data/aggregated/treasury-value', {
    start: useStart('90d', '1d'),
    interval: '1d',
    fill: 'null',
  })
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
            <Newest<TreasuryValue> points={series.received.data} value={value} />{' '}
            <small>
              of <Value of={last?.treasuryValueUsd.metadata.daosIncluded} as="count" /> DAOs
            </small>
          </>
        )}
      </p>
    </SeriesChart>
  )
}

/** A few hours without a value at the start of a range are a gap; more mean that history begins later. */
const MOST_LATE_MS = 3 * 3_600_000

/**
 * Change from the start of a range to its last known point, in percent; null if history does not reach back that far.
 */
function toChange(points: readonly IndexPoint[], start: string): number | null {
  const available = points.filter(({ valueUsd }) => valueUsd !== null)
  const [first, last] = [available[0], available.at(-1)]
  if (!first?.valueUsd || last?.valueUsd == null) return null
  const isLate = Date.parse(first.createdAt) - Date.parse(start) > MOST_LATE_MS
  return isLate ? null : (last.valueUsd / first.valueUsd - 1) * 100
}

function IndexValue() {
  const start = useStart('30d', '1h')
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
      isLow
    >
      <p class="lead">
        {series.received !== undefined && (
          <>
            <Newest<IndexPoint> points={series.received.data} value={({ valueUsd }) => valueUsd} />{' '}
            <Change of={toChange(series.received.data, start)} /> <small>30 d</small> <a href="index">Since launch</a>
          </>
        )}
      </p>
    </SeriesChart>
  )
}

function Movers({ title, sort }: { title: string; sort: string }) {
  const filter = ['financialData.marketCap>=1000000']
  const question = toQuestion('/data/tokens', { sort, filter, limit: 5 })
  const tokens = useAnswer(question)
  return (
    <Card title={title} question={question} facts={tokens.received?.facts}>
      <Shown of={tokens} what="tokens" rows={5} isEmpty={(data) => data.length === 0}>
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

function Fresh() {
  const question = toQuestion('/data/status', {})
  const status = useAnswer(question)
  return (
    <Card title="Freshness" question={question} hasTables={false}>
      <Shown of={status} what="freshness">
        {({ datasets }) => (
          <Stats>
            {datasets.map(({ dataset, state, complete, lastUpdated }) => (
              <Stat key={dataset} name={titleOfDataset(dataset)}>
                <DatasetState dataset={{ state, complete }} />{' '}
                <small>
                  {lastUpdated === null ? <Unknown why="No data yet." /> : <Ago at={new Date(lastUpdated)} />}
                </small>
              </Stat>
            ))}
          </Stats>
        )}
      </Shown>
      <p>
        <a href="freshness">All datasets and gaps</a>
      </p>
    </Card>
  )
}

export function Overview() {
  return (
    <>
      <h1>DAOs and their tokens</h1>
      <div class="grid">
        <MarketCaps />
        <Treasuries />
        <IndexValue />
      </div>
      <div class="grid">
        <Movers title="Top gainers, 24 h" sort="-financialData.percentChange24h" />
        <Movers title="Top losers, 24 h" sort="financialData.percentChange24h" />
      </div>
      <NewestProposals />
      <Fresh />
    </>
  )
}
