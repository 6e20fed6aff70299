import { useAnswer } from '../answers.ts'
import { type Answer, toQuestion } from '../interface.ts'
import type { ListColumn } from '../parts/columns.tsx'
import { Listing, listQuery, sortingOf } from '../parts/listing.tsx'
import { Change, TimeValue, Unknown, Value } from '../parts/value.tsx'
import { NAME } from './dao-columns.tsx'

type Kinds = Answer<'/data/daos/treasury/kinds'>[number]
type Amount = 'valueUsd' | 'ownTokenUsd' | 'stablecoinUsd' | 'otherUsd' | 'withoutOwnTokenUsd'

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

/** The kinds of a treasury as one bar. The columns beside it have the numbers. */
function KindsBar({ of }: { of: Pick<Kinds, 'ownTokenUsd' | 'stablecoinUsd' | 'otherUsd'> }) {
  const values = PARTS.map(([, member]) => of[member] ?? 0)
  const total = values.reduce((sum, value) => sum + value, 0)
  if (total <= 0) return <Unknown why={NO_KINDS} />
  const starts = values.map((_, at) => values.slice(0, at).reduce((sum, value) => sum + value, 0))
  const words = PARTS.map(([name], at) => `${name} ${Math.round((100 * (values[at] ?? 0)) / total)} %`).join(', ')
  return (
    <svg class="kinds" viewBox="0 0 100 8" preserveAspectRatio="none" role="img" aria-label={words}>
      <title>{words}</title>
      {PARTS.map(([name], at) => (
        <rect
          key={name}
          class={name.split(' ')[0]}
          x={(100 * (starts[at] ?? 0)) / total}
          width={(100 * (values[at] ?? 0)) / total}
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

/** All treasuries by kind of asset, by default the largest value without the DAO's own token first. */
export function Treasuries() {
  const sorting = sortingOf('-withoutOwnTokenUsd')
  const question = toQuestion('/data/daos/treasury/kinds', { ...listQuery(), sort: sorting.by })
  const records = useAnswer(question)
  return (
    <>
      <h1>Treasuries</h1>
      <ul class="key">
        {PARTS.map(([name]) => (
          <li key={name}>{name}</li>
        ))}
      </ul>
      <Listing
        {...{ title: 'Treasuries by kind of asset', question, records, sorting, columns: COLUMNS, least: LEAST }}
      />
    </>
  )
}
