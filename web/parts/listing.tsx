import { type Known, useAnswer } from '../answers.ts'
import { type Question, toQuestion, withFields } from '../interface.ts'
import { go, query, withQuery } from '../place.ts'
import { Card } from './card.tsx'
import { ChooseColumns, chosenOf, fieldsOf, type ListColumn } from './columns.tsx'
import { type Held, useHeldOrder } from './held-order.ts'
import { type Column, RecordTable } from './record-table.tsx'
import { Shown } from './shown.tsx'

/** Records on a page of a list. */
const ON_A_PAGE = 100

/** What the address says of a list: as the interface takes it. */
export function listQuery() {
  const said = query.value
  const filter = said.getAll('filter')
  return {
    limit: ON_A_PAGE,
    ...(said.get('name')?.trim() ? { name: [said.get('name')?.trim() ?? ''] } : {}),
    ...(said.get('category') ? { category: [said.get('category') ?? ''] } : {}),
    ...(said.get('chain') ? { chain: [said.get('chain') ?? ''] } : {}),
    ...(filter.length > 0 ? { filter } : {}),
    ...(said.get('cursor') ? { cursor: said.get('cursor') ?? '' } : {}),
  }
}

function Select(props: { name: string; label: string; options: readonly { value: string; text: string }[] }) {
  const { name, label, options } = props
  return (
    <label>
      {label}
      <select
        value={query.value.get(name) ?? ''}
        onChange={({ currentTarget }) => go(withQuery({ [name]: currentTarget.value, cursor: undefined }))}
      >
        <option value="">all</option>
        {options.map(({ value, text }) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </label>
  )
}

/** The smallest that is shown, by a member of the records. */
interface Least {
  readonly label: string
  readonly member: string
  readonly steps: readonly (readonly [size: number, text: string])[]
}

/** What a list shows: by name, category, chain, and where there is one a least size. All of it is in the address. */
function Filters({ least }: { least: Least | undefined }) {
  const categories = useAnswer(toQuestion('/data/categories', {})).given?.data ?? []
  const chains = useAnswer(toQuestion('/data/chains', {})).given?.data ?? []
  const toOption = ({ slug, name }: { slug: string; name: string }) => ({ value: slug, text: name })
  return (
    <search class="filters">
      <label>
        Name
        <input
          type="search"
          value={query.value.get('name') ?? ''}
          onInput={({ currentTarget }) =>
            // Each letter is no step of its own for the back button.
            go(withQuery({ name: currentTarget.value, cursor: undefined }), { replaces: true })
          }
        />
      </label>
      <Select name="category" label="Category" options={categories.map(toOption)} />
      <Select name="chain" label="Chain" options={chains.map(toOption)} />
      {least !== undefined && (
        <Select
          name="filter"
          label={least.label}
          options={least.steps.map(([size, text]) => ({ value: `${least.member}>=${size}`, text }))}
        />
      )}
    </search>
  )
}

/** The way back from a page of an old link, whether or not there is such a page any more. */
const FirstPage = () =>
  query.value.has('cursor') ? (
    <p class="pages">
      <a href={withQuery({ cursor: undefined })}>First page</a>
    </p>
  ) : null

/** How many there are, and the way to the others. Back is the browser's. */
function Pages(props: { shown: number; total: number | undefined; next: string | undefined; order: Held<unknown> }) {
  const { shown, total, next, order } = props
  return (
    <p class="pages">
      <span role="status">{total === undefined ? `${shown} shown` : `${shown} of ${total} shown`}</span>
      {next !== undefined && <a href={withQuery({ cursor: next })}>Next page</a>}
      <button type="button" class="plain reorder" data-needed={order.isOther} onClick={order.renew}>
        The order has changed: sort again
      </button>
    </p>
  )
}

function Records<T extends { readonly _id: string }>(props: {
  title: string
  /** Names the list: another one has an order of its own. */
  list: string
  data: readonly T[]
  columns: readonly Column<T>[]
  sorting: ReturnType<typeof sortingOf>
  total: number | undefined
  next: string | undefined
}) {
  const { title, list, data, columns, sorting, total, next } = props
  const order = useHeldOrder(list, data)
  return (
    <>
      <RecordTable
        caption={title}
        columns={columns}
        records={order.records}
        keyOf={({ _id }) => _id}
        sorting={sorting}
        isSteady
        place={{ list: withQuery({ cursor: undefined }), page: query.value.get('cursor') ?? '' }}
      />
      <Pages shown={data.length} total={total} next={next} order={order} />
    </>
  )
}

/** The order in the address, as the interface takes it; a click on a heading changes it and begins at the first page. */
export const sortingOf = (usual: string) => ({
  by: query.value.get('sort') ?? usual,
  change: (by: string) => go(withQuery({ sort: by === usual ? undefined : by, cursor: undefined })),
})

/** A list of the interface as a table: one page of it at a time, in the order and with the filters of the address. */
export function Listing<T extends { readonly _id: string }>(props: {
  title: string
  question: Question
  records: Known<T[]>
  columns: readonly ListColumn<T>[]
  sorting: ReturnType<typeof sortingOf>
  least?: Least
}) {
  const { title, question, records, sorting } = props
  const columns = chosenOf(props.columns)
  const controls = (
    <div class="choices">
      <Filters least={props.least} />
      <ChooseColumns all={props.columns} />
    </div>
  )
  // What is opened has what is shown; what is asked has all, so that another column needs no other answer.
  const opened = withFields(question, fieldsOf(columns))
  return (
    <Card title={title} question={opened} facts={records.given?.facts} controls={controls}>
      <Shown of={records} what="records" isEmpty={(data) => data.length === 0}>
        {(data, { total, next }) => (
          // What stays until the answer comes is in the order of the question before.
          <Records {...{ title, list: records.isBefore ? '' : question.url, data, columns, sorting, total, next }} />
        )}
      </Shown>
      <FirstPage />
    </Card>
  )
}
