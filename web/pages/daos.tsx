import { useAnswer } from '../answers.ts'
import { toQuestion } from '../interface.ts'
import { Choice, chosen } from '../parts/choice.tsx'
import { Late } from '../parts/late.tsx'
import { Listing, listQuery, sortingOf } from '../parts/listing.tsx'
import { ALL, COMMUNITY, RATINGS, TREASURY } from './dao-columns.tsx'

const LEAST = {
  label: 'Treasury',
  member: 'treasuryData.valueUsd',
  steps: [
    [1e6, 'over $1M'],
    [1e7, 'over $10M'],
    [1e8, 'over $100M'],
  ] as const,
}

function Treasuries() {
  const sorting = sortingOf('-treasuryData.valueUsd')
  const question = toQuestion('/data/daos/treasury', { ...listQuery(), sort: sorting.by })
  const records = useAnswer(question)
  const title = 'DAOs with a known treasury'
  return <Listing {...{ title, question, records, sorting, columns: TREASURY, least: LEAST }} />
}

function Communities() {
  const sorting = sortingOf('-twitterData.followers')
  const question = toQuestion('/data/daos/socials', { ...listQuery(), sort: sorting.by })
  const records = useAnswer(question)
  return <Listing {...{ title: 'DAOs with a known community', question, records, sorting, columns: COMMUNITY }} />
}

function Ratings() {
  const sorting = sortingOf('-ratings.overallRating')
  const question = toQuestion('/data/daos/ratings', { ...listQuery(), sort: sorting.by })
  const records = useAnswer(question)
  return <Listing {...{ title: 'DAOs with a rating', question, records, sorting, columns: RATINGS }} />
}

function All() {
  const sorting = sortingOf('name')
  const question = toQuestion('/data/daos', { ...listQuery(), sort: sorting.by })
  const records = useAnswer(question)
  return <Listing {...{ title: 'All DAOs', question, records, sorting, columns: ALL }} />
}

const loadMoney = async () => (await import('./dao-money.tsx')).DaoMoney

const Money = () => (
  <Late what="table" load={loadMoney} loading={<p class="state loading">Loading the table …</p>}>
    {(Table) => <Table />}
  </Late>
)

const ABOUT = ['treasuries', 'fees', 'communities', 'ratings', 'all'] as const

const TABLES = { treasuries: Treasuries, fees: Money, communities: Communities, ratings: Ratings, all: All }
const TEXTS = {
  treasuries: 'Treasuries',
  fees: 'Fees and treasuries',
  communities: 'Communities',
  ratings: 'Ratings',
  all: 'All',
}

/** The DAOs in one of several tables: each table is one list of the API, but for the one that joins two. */
export function Daos() {
  const about = chosen('about', ABOUT, 'treasuries')
  const Table = TABLES[about]
  return (
    <>
      <h1>DAOs</h1>
      <Choice
        name="about"
        label="Content of the table"
        options={ABOUT.map((value) => ({ value, text: TEXTS[value] }))}
        value={about}
        clears={['sort', 'cursor', 'filter', 'columns']}
      />
      <Table key={about} />
    </>
  )
}
