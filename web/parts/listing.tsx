import { type AnswerState, useAnswer } from '../answers.ts'
import { type Question, toQuestion, withFields } from '../interface.ts'
import { go, query, withQuery } from '../place.ts'
import { Card } from './card.tsx'
import { ChooseColumns, chosenOf, fieldsOf, type ListColumn } from './columns.tsx'
import { type Held, useHeldOrder } from './held-order.ts'
import { type Column, RecordTable } from './record-table.tsx'
import { Shown } from './shown.tsx'

/** Records per page of a list. */
const ON_A_PAGE = 100

/** The list parameters in the address, in the API's form. */
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

/** A minimum size filter, by a member of the records. */
interface Least {
  readonly label: string
  readonly member: string
  readonly steps: readonly (readonly [size: number, text: string])[]
}

/** The filters of a list: name, category, chain, and optionally a minimum size. All are in the address. */
function Filters({ least }: { least: Least | undefined }) {
  const categories = useAnswer(toQuestion('/data/categories', {})).received?.data ?? []
  const chains = useAnswer(toQuestion('/data/chains', {})).received?.data ?? []
  const toOption = ({ slug, name }: { slug: string; name: string }) => ({ value: slug, text: name })
  return (
    <search class="filters">
      <label>
        Name
        <input
          type="search"
          value={query.value.get('name') ?? ''}
          onInput={({ currentTarget }) =>
            // Typing a letter adds no entry to the browser's history.
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

/** A link to the first page, also if the cursor of an old link is invalid. */
const FirstPage = () =>
  query.value.has('cursor') ? (
    <p class="pages">
      <a href={withQuery({ cursor: undefined })}>First page</a>
    </p>
  ) : null

/** The number of records, and the link to the next page. The browser's back button returns to the previous one. */
function Pages(props: { shown: number; total: number | undefined; next: string | undefined; order: Held<unknown> }) {
  const { shown, total, next, order } = props
  return (
    <p class="pages">
      <span role="status">{total === undefined ? `${shown} shown` : `${shown} of ${total} shown`}</span>
      {next !== undefined && <a href={withQuery({ cursor: next })}>Next page</a>}
      <button type="button" class="plain reorder" data-needed={order.isReordered} onClick={order.renew}>
        Order changed: sort again
      </button>
    </p>
  )
}

function Records<T extends { readonly _id: string }>(props: {
  title: string
  /** Identity of the list: another list has its own order. */
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

/** The order in the address, in the API's form. A click on a heading changes it and returns to the first page. */
export const sortingOf = (usual: string) => ({
  by: query.value.get('sort') ?? usual,
  change: (by: string) => go(withQuery({ sort: by === usual ? undefined : by, cursor: undefined })),
})

/** A list of the API as a table: one page at a time, with the order and filters of the address. */
export function Listing<T extends { readonly _id: string }>(props: {
  title: string
  question: Question
  records: AnswerState<T[]>
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
  // The linked request has only the shown members; the page's request has all, so that another column needs no new
  // answer.
  const opened = withFields(question, fieldsOf(columns))
  return (
    <Card title={title} question={opened} facts={records.received?.facts} controls={controls}>
      <Shown of={records} what="records" isEmpty={(data) => data.length === 0}>
        {(data, { total, next }) => (
          // While the new answer is loading, the previous one is shown in its own order.
          <Records {...{ title, list: records.isBefore ? '' : question.url, data, columns, sorting, total, next }} />
        )}
      </Shown>
      <FirstPage />
    </Card>
  )
}
