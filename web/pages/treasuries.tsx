import { useMemo } from 'preact/hooks'
import { useAnswer } from '../answers.ts'
import { toText } from '../format.ts'
import { type Answer, toQuestion } from '../interface.ts'
import { Card } from '../parts/card.tsx'
import { Choice, chosen } from '../parts/choice.tsx'
import type { ListColumn } from '../parts/columns.tsx'
import { Late } from '../parts/late.tsx'
import { Listing, listQuery, sortingOf } from '../parts/listing.tsx'
import { Shown } from '../parts/shown.tsx'
import type { Cell } from '../parts/treemap.tsx'
import { Change, TimeValue, Unknown, Value } from '../parts/value.tsx'
import { NAME } from './dao-columns.tsx'

type Kinds = Answer<'/data/daos/treasury/kinds'>[number]
type Amount = 'valueUsd' | 'ownTokenUsd' | 'stablecoinUsd' | 'otherUsd' | 'withoutOwnTokenUsd'

const NONE = 'No treasury of a DAO is collected.'
const NO_KINDS = 'Only the total of this treasury is known, or none of these assets has a price.'

const toAmount = (title: string, id: Amount): ListColumn<Kinds> => ({
  id,
  title,
  member: id,
  isNumber: true,
  cell: (record) => <Value of={record[id]} as="usd" why={NO_KINDS} />,
})
const toChange = (
  title: string,
  id: 'percentChange30d' | 'withoutOwnTokenPercentChange30d',
  name: string,
): ListColumn<Kinds> => ({
  id,
  title,
  name,
  member: id,
  isNumber: true,
  cell: (record) => <Change of={record[id]} />,
})

const PARTS = [
  ['own token', 'ownTokenUsd'],
  ['stablecoins', 'stablecoinUsd'],
  ['other', 'otherUsd'],
] as const

type Parts = { readonly [member in (typeof PARTS)[number][1]]: number | null }

/** The share of each kind as a fraction of 1, in the order of `PARTS`; undefined if no kind has a known value. */
function sharesOf(of: Parts): readonly number[] | undefined {
  const values = PARTS.map(([, member]) => of[member] ?? 0)
  const total = values.reduce((sum, value) => sum + value, 0)
  return total > 0 ? values.map((value) => value / total) : undefined
}

/** The kinds of a treasury as one bar. The columns beside it have the numbers. */
function KindsBar({ of }: { of: Parts }) {
  const shares = sharesOf(of)
  if (shares === undefined) return <Unknown why={NO_KINDS} />
  const starts = shares.map((_, at) => shares.slice(0, at).reduce((sum, share) => sum + share, 0))
  const words = PARTS.map(([name], at) => `${name} ${Math.round(100 * (shares[at] ?? 0))} %`).join(', ')
  return (
    <svg class="kinds" viewBox="0 0 100 8" preserveAspectRatio="none" role="img" aria-label={words}>
      <title>{words}</title>
      {PARTS.map(([name], at) => (
        <rect
          key={name}
          class={name.split(' ')[0]}
          x={100 * (starts[at] ?? 0)}
          width={100 * (shares[at] ?? 0)}
          height="8"
        />
      ))}
    </svg>
  )
}

const COLUMNS: readonly ListColumn<Kinds>[] = [
  NAME,
  toAmount('Without own token', 'withoutOwnTokenUsd'),
  toChange('30 d', 'withoutOwnTokenPercentChange30d', 'Change without own token, 30 d'),
  toAmount('Total', 'valueUsd'),
  toChange('Total, 30 d', 'percentChange30d', 'Change of the total, 30 d'),
  toAmount('Own token', 'ownTokenUsd'),
  toAmount('Stablecoins', 'stablecoinUsd'),
  toAmount('Other', 'otherUsd'),
  {
    id: 'parts',
    title: 'By kind',
    name: 'Bar of the kinds',
    of: ['ownTokenUsd', 'stablecoinUsd', 'otherUsd'],
    cell: (record) => <KindsBar of={record} />,
  },
  {
    id: 'assets',
    title: 'Assets',
    member: 'assets',
    isNumber: true,
    isExtra: true,
    cell: ({ assets }) => <Value of={assets} as="count" />,
  },
  {
    id: 'updated',
    title: 'Updated',
    of: ['lastUpdated'],
    isExtra: true,
    cell: ({ lastUpdated }) => <TimeValue at={lastUpdated} />,
  },
]

const LEAST = {
  label: 'Without own token',
  member: 'withoutOwnTokenUsd',
  steps: [
    [1e6, 'over $1M'],
    [1e7, 'over $10M'],
    [1e8, 'over $100M'],
  ] as const,
}

const AREAS = ['total', 'rest'] as const
type Area = (typeof AREAS)[number]

/** The area is the total, or the total without the own token. */
const toCell = (record: Kinds, area: Area): Cell => ({
  key: record._id,
  name: record.name,
  to: `daos/${record._id}?tab=treasury`,
  value: area === 'total' ? record.valueUsd : record.withoutOwnTokenUsd,
  shares: sharesOf(area === 'total' ? record : { ...record, ownTokenUsd: 0 }),
})

/** The API's limit of treasuries. */
const MOST = 500
const loadTreemap = async () => (await import('../parts/treemap.tsx')).Treemap
const Space = () => <div class="treemap-space" />

function Drawn({ records, area }: { records: readonly Kinds[]; area: Area }) {
  const cells = useMemo(() => records.map((record) => toCell(record, area)), [records, area])
  const unknown = cells.filter(({ value }) => value === null).length
  return (
    <>
      <Late what="chart" load={loadTreemap} loading={<Space />}>
        {(Treemap) => <Treemap name="Treasuries by value" cells={cells} as="usd" parts={PARTS.map(([name]) => name)} />}
      </Late>
      <p class="note">
        The area of a treasury is its value in US dollars.{' '}
        {unknown > 0 && `DAOs without known kinds, which have no area: ${toText(unknown, 'count')}. `}
        The table below has all numbers.
      </p>
    </>
  )
}

/** All treasuries as one chart, independent of the filters and pages of the table. */
function TreasuryMap() {
  const area = chosen('area', AREAS, 'total')
  const question = toQuestion('/data/daos/treasury/kinds', { sort: '-valueUsd', limit: MOST })
  const records = useAnswer(question)
  const controls = (
    <Choice
      name="area"
      label="Area"
      value={area}
      options={[
        { value: 'total', text: 'Total' },
        { value: 'rest', text: 'Without own token' },
      ]}
    />
  )
  return (
    <Card title="Treasuries by value" question={question} facts={records.received?.facts} controls={controls}>
      <Shown of={records} what="treasuries" isEmpty={(data) => data.length === 0} empty={NONE} outline={<Space />}>
        {(data) => <Drawn records={data} area={area} />}
      </Shown>
    </Card>
  )
}

/** All treasuries by kind of asset: as a chart, and as a table with the largest value without the own token first. */
export function Treasuries() {
  const sorting = sortingOf('-withoutOwnTokenUsd')
  const question = toQuestion('/data/daos/treasury/kinds', { ...listQuery(), sort: sorting.by })
  const records = useAnswer(question)
  return (
    <>
      <h1>Treasuries</h1>
      <TreasuryMap />
      <Listing
        {...{ title: 'Treasuries by kind of asset', question, records, sorting, columns: COLUMNS, least: LEAST }}
      />
    </>
  )
}
