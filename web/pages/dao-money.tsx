import { useMemo } from 'preact/hooks'
import { useAnswer } from '../answers.ts'
import { toCounted } from '../format.ts'
import { type Answer, toQuestion } from '../interface.ts'
import { Card } from '../parts/card.tsx'
import { sortingOf } from '../parts/listing.tsx'
import { type Column, RecordTable } from '../parts/record-table.tsx'
import { Shown } from '../parts/shown.tsx'
import { Value } from '../parts/value.tsx'
import { FEES_AND_TREASURIES } from '../sql/fees-and-treasuries.ts'
import { NAME } from './dao-columns.tsx'

/** The API's limit of both lists, far above the number of DAOs. */
const MOST = 500

type Fees = Answer<'/data/daos/fees'>[number]
type Kinds = Answer<'/data/daos/treasury/kinds'>[number]

/** A DAO with fees, with a treasury, or with both. */
interface Money {
  readonly _id: string
  readonly name: string
  readonly fees30d: number | null
  readonly revenue30d: number | null
  readonly treasury: number | null
  readonly withoutOwnToken: number | null
  /** Fees of 30 days in percent of the treasury. */
  readonly ratio: number | null
}

type Amount = Exclude<keyof Money, '_id' | 'name'>

function toMoney(fees: Fees | undefined, kinds: Kinds | undefined): Money {
  const { _id = '', name = '' } = kinds ?? fees ?? {}
  const { fees30d = null, revenue30d = null } = fees?.feesData ?? {}
  const treasury = kinds?.valueUsd ?? null
  const ratio = fees30d === null || treasury === null || treasury <= 0 ? null : (100 * fees30d) / treasury
  return { _id, name, fees30d, revenue30d, treasury, withoutOwnToken: kinds?.withoutOwnTokenUsd ?? null, ratio }
}

/** All DAOs of the two lists. */
function join(fees: readonly Fees[], kinds: readonly Kinds[]): Money[] {
  const [feesById, kindsById] = [
    new Map(fees.map((one) => [one._id, one])),
    new Map(kinds.map((one) => [one._id, one])),
  ]
  return [...new Set([...feesById.keys(), ...kindsById.keys()])].map((id) =>
    toMoney(feesById.get(id), kindsById.get(id)),
  )
}

/** Sorts by a member, unknown values last, as the lists of the API do. */
function sort(records: readonly Money[], by: string): Money[] {
  const sign = by.startsWith('-') ? -1 : 1
  const member = by.replace(/^-/, '') as Amount | 'name'
  return records.toSorted((one, other) => {
    const [a, b] = [one[member] ?? null, other[member] ?? null]
    if (typeof a === 'number' && typeof b === 'number' && a !== b) return sign * (a - b)
    if ((a === null) !== (b === null)) return a === null ? 1 : -1
    return member === 'name' ? sign * one.name.localeCompare(other.name) : one.name.localeCompare(other.name)
  })
}

const NO_FEES = 'No fees of this DAO are collected, or a day of them is unknown.'
const NO_TREASURY = 'No treasury of this DAO is collected, or only its total is known.'

const toAmount = (title: string, member: Amount, why: string, as: 'usd' | 'percent' = 'usd'): Column<Money> => ({
  ...{ title, member, isNumber: true },
  cell: (record) => <Value of={record[member]} as={as} why={why} />,
})

const COLUMNS: readonly Column<Money>[] = [
  NAME,
  toAmount('Fees, 30 d', 'fees30d', NO_FEES),
  toAmount('Revenue, 30 d', 'revenue30d', NO_FEES),
  toAmount('Treasury', 'treasury', NO_TREASURY),
  toAmount('Without own token', 'withoutOwnToken', NO_TREASURY),
  toAmount('Fees / treasury', 'ratio', 'Fees or treasury are not known.', 'percent'),
]

/** Fees and treasuries of all DAOs in one table, which any column ranks. */
export function DaoMoney() {
  const sorting = sortingOf('-fees30d')
  const feesQuestion = toQuestion('/data/daos/fees', { sort: '-feesData.fees30d', limit: MOST })
  const fees = useAnswer(feesQuestion)
  const kinds = useAnswer(toQuestion('/data/daos/treasury/kinds', { sort: '-valueUsd', limit: MOST }))
  const records = useMemo(
    () => sort(join(fees.received?.data ?? [], kinds.received?.data ?? []), sorting.by),
    [fees.received?.data, kinds.received?.data, sorting.by],
  )
  const title = 'Fees and treasuries'
  return (
    <Card title={title} question={feesQuestion} facts={fees.received?.facts}>
      <Shown of={fees} what="fees">
        {() => (
          <Shown of={kinds} what="treasuries" isEmpty={() => records.length === 0} empty="No fees or treasuries yet.">
            {() => (
              <>
                <RecordTable
                  caption={title}
                  columns={COLUMNS}
                  records={records}
                  keyOf={({ _id }) => _id}
                  sorting={sorting}
                  isSteady
                />
                <p class="note">
                  {toCounted(records.length, 'DAO')}. Fees / treasury: fees of 30 days in percent of the whole treasury.{' '}
                  <a href={`sql?${new URLSearchParams({ q: FEES_AND_TREASURIES.sql })}`}>The same table in SQL</a> can
                  be exported.
                </p>
              </>
            )}
          </Shown>
        )}
      </Shown>
    </Card>
  )
}
