import { useAnswer } from '../answers.ts'
import { toText } from '../format.ts'
import { type Answer, type Query, toQuestion } from '../interface.ts'
import { Card, Stat, Stats } from '../parts/card.tsx'
import { RecordTable } from '../parts/record-table.tsx'
import { Shown } from '../parts/shown.tsx'
import { DayValue, TimeValue, Unknown, Value } from '../parts/value.tsx'
import { go, query, withQuery } from '../place.ts'
import { titleOfDataset } from './gaps.tsx'

type Provenance = Answer<'/data/provenance'>
type Values = Provenance['values']

const PAGES: Readonly<Record<string, string>> = { token: 'tokens', dao: 'daos' }

function Entity({ of }: { of: Provenance['entity'] }) {
  if (of === null) return <>all together</>
  const page = PAGES[of.type]
  return <a href={page === undefined ? 'index' : `${page}/${of.id}`}>{of.name}</a>
}

/** A stored value as text: a list by its length, because the link of the card has all of it. */
function toWords(value: Values[string]): string {
  if (Array.isArray(value)) return `${value.length} entries`
  return value === null ? 'not known' : String(value)
}

const toTexts = (values: Values | null) =>
  values === null ? <Unknown why="It was not recorded." /> : <span class="text">{toPairs(values)}</span>

const toPairs = (values: Values) =>
  Object.entries(values)
    .map(([name, value]) => `${name} ${toWords(value)}`)
    .join(', ')

/** How the value came to be, in one sentence. */
function describeOrigin({ provider, answers, computedFrom, more }: Provenance): string {
  const used = answers.filter((answer) => answer.used).length
  const inputs = computedFrom.length + more
  if (inputs > 0) return `Computed from ${inputs} stored values, listed below.`
  if (used > 0) return `Decoded from ${used === 1 ? 'one answer' : `${used} answers`} of ${provider}.`
  if (provider !== null) return `From ${provider}; its answers are not stored.`
  return 'Computed, or stored before answers of providers were.'
}

function ValueCard({ of, question }: { of: Provenance; question: ReturnType<typeof toQuestion> }) {
  return (
    <Card title="Value" question={question} hasTables={false}>
      <p>{describeOrigin(of)}</p>
      <Stats>
        <Stat name="Of">
          <Entity of={of.entity} />
        </Stat>
        <Stat name="Time">
          <TimeValue at={of.observedAt} />
        </Stat>
        <Stat name="Provider">
          {of.provider ?? <Unknown why="The value is computed, or older than the records." />}
        </Stat>
        <Stat name="Stored by the run of">
          <TimeValue at={of.storedAt} why="It was not recorded." />
        </Stat>
      </Stats>
      <RecordTable
        caption="Stored values"
        records={Object.entries(of.values)}
        keyOf={([name]) => name}
        columns={[
          { title: 'Column', cell: ([name]) => name },
          { title: 'Stored', isText: true, cell: ([, value]) => <span class="text">{toWords(value)}</span> },
        ]}
      />
    </Card>
  )
}

function Answers({ of: { answers } }: { of: Provenance }) {
  return (
    <Card title="Answers of providers">
      {answers.length === 0 ? (
        <p class="state empty">No answer of a provider is stored for this value.</p>
      ) : (
        <RecordTable
          caption="Answers of providers"
          records={answers}
          keyOf={(_, index) => index}
          columns={[
            { title: 'Provider', cell: ({ provider }) => provider },
            { title: 'Used', cell: ({ used, reason }) => <span class="text">{used ? 'yes' : `no: ${reason}`}</span> },
            { title: 'Received', cell: ({ receivedAt }) => <TimeValue at={receivedAt} /> },
            { title: 'Request', isText: true, cell: ({ request }) => <code class="curl block">{request}</code> },
            { title: 'Status', isNumber: true, cell: ({ status }) => status ?? <Unknown why="No response came." /> },
            { title: 'Bytes', isNumber: true, cell: ({ bytes }) => toText(bytes, 'count') },
            { title: 'Decoder', cell: ({ decoder }) => decoder },
            { title: 'SHA-256', cell: ({ sha256 }) => sha256 && <code title={sha256}>{sha256.slice(0, 12)}</code> },
          ]}
        />
      )}
    </Card>
  )
}

/** The page of the provenance that a path of the API has. */
const toOwnPage = (request: string) => request.slice('/data/'.length)

function Inputs({ of: { computedFrom, more } }: { of: Provenance }) {
  return (
    <Card title="Computed from">
      <RecordTable
        caption="Inputs of the value"
        records={computedFrom}
        keyOf={(_, index) => index}
        columns={[
          { title: 'Input', cell: ({ request, entity }) => <a href={toOwnPage(request)}>{entity?.name ?? 'ended'}</a> },
          { title: 'Dataset', cell: ({ dataset }) => titleOfDataset(dataset) },
          { title: 'Day', cell: ({ observedAt }) => <DayValue at={observedAt} /> },
          { title: 'Value', isText: true, cell: ({ values }) => toTexts(values) },
        ]}
      />
      {more > 0 && (
        <p class="note">
          <Value of={more} as="count" /> smaller inputs are not listed.
        </p>
      )}
    </Card>
  )
}

function Corrections({ of: { corrections } }: { of: Provenance }) {
  return (
    <Card title="Corrections since">
      {corrections.length === 0 ? (
        <p class="state empty">The value was not corrected.</p>
      ) : (
        <RecordTable
          caption="Corrections of the value"
          records={corrections}
          keyOf={(_, index) => index}
          columns={[
            { title: 'Stored', cell: ({ storedAt }) => <TimeValue at={storedAt} /> },
            { title: 'Before', isText: true, cell: ({ before }) => toTexts(before) },
            { title: 'After', isText: true, cell: ({ after }) => toTexts(after) },
            { title: 'Job', cell: ({ job }) => job },
            { title: 'Reason', isText: true, cell: ({ reason }) => reason ?? <Unknown why="It was not recorded." /> },
          ]}
        />
      )}
    </Card>
  )
}

/** The page without a value in its address. */
const NoValue = () => (
  <>
    <h1>Where from?</h1>
    <p class="state empty">
      No value is selected. Choose a point of a chart, for example of a <a href="tokens">token</a> or of the{' '}
      <a href="index">Index</a>, and then “Where from?”. This page shows the provider of the value, or the inputs of its
      computation, and its corrections.
    </p>
  </>
)

/** Where a stored value comes from: its provider and answers, or its inputs, and its corrections. */
export const ProvenancePage = () => (query.value.has('dataset') ? <OneValue /> : <NoValue />)

function OneValue() {
  const { dataset = '', id = '', at = '', after = '' } = Object.fromEntries(query.value)
  // The service checks the address and answers with what is wrong in it.
  const question = toQuestion('/data/provenance', { dataset, id, at, after } as Query<'/data/provenance'>)
  const found = useAnswer(question)
  return (
    <div class="column">
      <h1>Where from? {titleOfDataset(dataset)}</h1>
      <div class="filters">
        <label>
          Newest value until (UTC)
          <input
            type="datetime-local"
            value={at.slice(0, '2024-03-10T12:02'.length)}
            onChange={({ currentTarget: { value } }) =>
              go(withQuery({ at: value === '' ? undefined : `${value}Z`, after: undefined }))
            }
          />
        </label>
      </div>
      <Shown of={found} what="the origin of the value">
        {(of) => (
          <>
            <ValueCard of={of} question={question} />
            {of.computedFrom.length > 0 ? <Inputs of={of} /> : <Answers of={of} />}
            <Corrections of={of} />
          </>
        )}
      </Shown>
    </div>
  )
}
