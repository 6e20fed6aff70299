import { useAnswer } from '../answers.ts'
import { toQuestion } from '../interface.ts'
import { Listing, listQuery, sortingOf } from '../parts/listing.tsx'
import { COLUMNS } from './token-columns.tsx'

const LEAST = {
  label: 'Market cap',
  member: 'financialData.marketCap',
  steps: [
    [1e6, 'over $1M'],
    [1e7, 'over $10M'],
    [1e8, 'over $100M'],
    [1e9, 'over $1B'],
  ] as const,
}

export function Tokens() {
  const sorting = sortingOf('-financialData.marketCap')
  const question = toQuestion('/data/tokens', { ...listQuery(), sort: sorting.by })
  const records = useAnswer(question)
  return (
    <>
      <h1>Tokens</h1>
      <Listing {...{ title: 'All tokens', question, records, sorting, columns: COLUMNS, least: LEAST }} />
    </>
  )
}
