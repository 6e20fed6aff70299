import { useAnswer } from '../answers.ts'
import { toLength } from '../format.ts'
import { type Answer, toQuestion } from '../interface.ts'
import { Card } from '../parts/card.tsx'
import { RecordTable } from '../parts/record-table.tsx'
import { Shown } from '../parts/shown.tsx'
import { TimeValue, Value } from '../parts/value.tsx'
import { Gaps } from './gaps.tsx'

/** Approximate number of datasets, for the outline while loading. */
const DATASETS = 16

type Dataset = Answer<'/data/status'>['datasets'][number]

function Failing({ dataset: { failing, note } }: { dataset: Dataset }) {
  return (
    <span class="text">
      {failing.map(({ provider, since, reason }) => (
        <span key={provider} class="down">
          {provider} fails since <TimeValue at={since} />: {reason}{' '}
        </span>
      ))}
      {note !== undefined && <small>{note}</small>}
    </span>
  )
}

function Datasets() {
  const question = toQuestion('/data/status', {})
  const status = useAnswer(question)
  return (
    <Card title="Datasets" question={question} hasTables={false}>
      <Shown of={status} what="the datasets" rows={DATASETS}>
        {({ datasets, upstream }) => (
          <>
            <p>{upstream}</p>
            <RecordTable
              caption="Datasets"
              records={datasets}
              keyOf={({ dataset }) => dataset}
              columns={[
                { title: 'Dataset', cell: ({ dataset }) => <a href={`freshness?dataset=${dataset}`}>{dataset}</a> },
                { title: 'State', cell: ({ state }) => <span class={`badge ${state}`}>{state}</span> },
                {
                  title: 'Newest',
                  cell: ({ lastUpdated }) => <TimeValue at={lastUpdated} why="Nothing is stored yet." />,
                },
                { title: 'Every', cell: ({ expectedEvery }) => toLength(expectedEvery) },
                { title: 'Complete', isNumber: true, cell: ({ complete }) => <Value of={complete} as="share" /> },
                { title: 'Rows', isNumber: true, cell: ({ rows }) => <Value of={rows} as="count" /> },
                { title: 'Of', isNumber: true, cell: ({ entities }) => <Value of={entities} as="count" /> },
                { title: 'Since', cell: ({ earliest }) => <TimeValue at={earliest} why="Nothing is stored yet." /> },
                { title: 'Trouble', cell: (dataset) => <Failing dataset={dataset} /> },
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
