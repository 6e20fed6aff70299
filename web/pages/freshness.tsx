import { useAnswer } from '../answers.ts'
import { READ_HOURLY } from '../declared.ts'
import { readTimes, toLength, toText } from '../format.ts'
import { type Answer, toQuestion } from '../interface.ts'
import { Card } from '../parts/card.tsx'
import { RecordTable } from '../parts/record-table.tsx'
import { Shown } from '../parts/shown.tsx'
import { DayValue, TimeValue, Value } from '../parts/value.tsx'
import { Gaps, titleOfDataset } from './gaps.tsx'

/** Approximate number of datasets, for the outline while loading. */
const DATASETS = 18

/** A dataset below this share is shown as incomplete, however new its newest value is. */
const COMPLETE = 0.95

type Dataset = Answer<'/data/status'>['datasets'][number]

/** Freshness and completeness of a dataset in one word: a dataset with a new value may still be incomplete. */
export const stateOf = ({ state, complete }: Pick<Dataset, 'state' | 'complete'>) =>
  state === 'fresh' && complete < COMPLETE ? 'incomplete' : state

export function DatasetState({ dataset }: { dataset: Pick<Dataset, 'state' | 'complete'> }) {
  const word = stateOf(dataset)
  return <span class={`badge ${word}`}>{word}</span>
}

/** The parts of a note, without those that repeat the failing providers. */
const withoutFailing = (note = '') =>
  note
    .split('; ')
    .filter((part) => !/^\S+: failing since /.test(part))
    .join('; ')

function Failing({ dataset }: { dataset: Dataset }) {
  const { failing, complete } = dataset
  const note = readTimes(withoutFailing(dataset.note))
  const isIncomplete = stateOf(dataset) === 'incomplete'
  return (
    <span class="text short">
      {isIncomplete && (
        <>
          {toText(1 - complete, 'share')} of the expected data is missing:{' '}
          <a href={`freshness?dataset=${dataset.dataset}`}>gaps and reasons</a>{' '}
        </>
      )}
      {failing.map(({ provider, since, reason }) => (
        <span key={provider} class="down">
          {provider} fails since <TimeValue at={since} />: {readTimes(reason)}{' '}
        </span>
      ))}
      {note !== '' && <Note text={note} />}
      {failing.length === 0 && note === '' && !isIncomplete && <small>none</small>}
    </span>
  )
}

/** Notes up to this length are shown as a whole. */
const SHORT_NOTE = 90

/** A note; of a long one the part before its list, and the rest on request. */
function Note({ text }: { text: string }) {
  const end = text.indexOf(':')
  if (text.length <= SHORT_NOTE || end < 0) return <small>{text}</small>
  return (
    <details class="rest">
      <summary>{text.slice(0, end)}</summary>
      <small>{text.slice(end + 1)}</small>
    </details>
  )
}

/** How far apart the records of a dataset are, and how often they are read if that is more often. */
const toCadence = ({ dataset, expectedEvery }: Dataset) =>
  `${toLength(expectedEvery)}${READ_HOURLY.includes(dataset) ? ', read hourly' : ''}`

function Datasets() {
  const question = toQuestion('/data/status', {})
  const status = useAnswer(question)
  return (
    <Card title="Datasets" question={question} hasTables={false}>
      <Shown of={status} what="the datasets" rows={DATASETS}>
        {({ datasets, upstream }) => (
          <>
            <p class="note">{upstream}</p>
            <RecordTable
              caption="Datasets"
              records={datasets}
              keyOf={({ dataset }) => dataset}
              columns={[
                {
                  title: 'Dataset',
                  cell: ({ dataset }) => <a href={`freshness?dataset=${dataset}`}>{titleOfDataset(dataset)}</a>,
                },
                { title: 'State', cell: (dataset) => <DatasetState dataset={dataset} /> },
                {
                  title: 'Complete',
                  isNumber: true,
                  isWide: true,
                  cell: ({ complete }) => <Value of={complete} as="share" />,
                },
                { title: 'Newest', cell: ({ lastUpdated }) => <TimeValue at={lastUpdated} why="No data yet." /> },
                { title: 'Every', cell: (dataset) => toCadence(dataset) },
                { title: 'Rows', isNumber: true, cell: ({ rows }) => <Value of={rows} as="count" /> },
                { title: 'Tokens or DAOs', isNumber: true, cell: ({ entities }) => <Value of={entities} as="count" /> },
                { title: 'Since', cell: ({ earliest }) => <DayValue at={earliest} why="No data yet." /> },
                { title: 'Failures and notes', cell: (dataset) => <Failing dataset={dataset} /> },
              ]}
            />
          </>
        )}
      </Shown>
    </Card>
  )
}

/** Freshness and completeness of all datasets, and their gaps. */
export function Freshness() {
  return (
    <>
      <h1>Data</h1>
      <Datasets />
      <Gaps />
    </>
  )
}
