import { useRef } from 'preact/hooks'
import { useAnswer, useAnswers } from '../answers.ts'
import { type Answer, toQuestion } from '../interface.ts'
import { Card } from '../parts/card.tsx'
import { type Column, RecordTable } from '../parts/record-table.tsx'
import { Failed, Shown } from '../parts/shown.tsx'
import { TimeValue, Unknown, Value } from '../parts/value.tsx'

const NONE = 'No proposals yet.'
const NO_SPACES = 'Not known: no DAO’s proposals were read yet.'
const MOST = 10
const MOST_OF_ALL = 5

type Proposal = Answer<'/data/daos/governance/proposals'>[number]

const isWeb = (url: string | null): url is string => url !== null && /^https?:\/\//.test(url)

function Title({ of: { title, url } }: { of: Proposal }) {
  if (title === '') return <Unknown why="Its title was not collected." />
  if (!isWeb(url)) return title
  return (
    <a key={url} href={url} target="_blank" rel="noreferrer nofollow">
      {title}
    </a>
  )
}

function toLeading({ choices, scores }: Proposal): string | undefined {
  const most = Math.max(...scores)
  return most > 0 ? choices[scores.indexOf(most)] : undefined
}

const STATE: Column<Proposal> = {
  title: 'State',
  cell: ({ state }) => state ?? <Unknown why="The source has not told it." />,
}
const VOTES: Column<Proposal> = {
  title: 'Votes',
  isNumber: true,
  cell: ({ votes }) => <Value of={votes} as="count" />,
}
const ENDS: Column<Proposal> = { title: 'Ends', cell: ({ endsAt }) => <TimeValue at={endsAt} /> }

const COLUMNS: readonly Column<Proposal>[] = [
  {
    title: 'Proposal',
    cell: (proposal) => (
      <span class="text">
        <Title of={proposal} />
      </span>
    ),
  },
  STATE,
  { title: 'Leading', cell: (proposal) => toLeading(proposal) ?? <Unknown why="Nothing has a score yet." /> },
  VOTES,
  { title: 'Score', isNumber: true, cell: ({ scoresTotal }) => <Value of={scoresTotal} as="amount" /> },
  ENDS,
]

export function Proposals({ id }: { id: string }) {
  const question = toQuestion('/data/daos/governance/proposals', { id, limit: MOST })
  const proposals = useAnswer(question)
  return (
    <Card title="Newest proposals" question={question} facts={proposals.received?.facts}>
      <Shown of={proposals} what="proposals" isEmpty={(data) => data.length === 0} empty={NONE}>
        {(data) => <RecordTable caption="Newest proposals" columns={COLUMNS} records={data} keyOf={({ _id }) => _id} />}
      </Shown>
    </Card>
  )
}

type Summaries = Answer<'/data/daos/governance/summary'>
/** A proposal with the name of its DAO. */
type Named = Proposal & { readonly name: string | undefined }

/** Requests as many proposals per DAO as are shown in total, so that the newest of all are included. */
function Merged({ daos }: { daos: Summaries }) {
  const answers = useAnswers(
    daos.map(({ _id }) => toQuestion('/data/daos/governance/proposals', { id: _id, limit: MOST_OF_ALL })),
  )
  const newest = useRef<readonly Named[]>([])
  const isWaiting = answers.some(({ received, failure }) => received === undefined && failure === undefined)
  // While the answer of an added DAO is loading, the newest of all are unknown.
  if (!isWaiting)
    newest.current = answers
      .flatMap(({ received }, at) => (received?.data ?? []).map((proposal) => ({ ...proposal, name: daos[at]?.name })))
      .sort((a, b) => b.createdAt.localeCompare(a.createdAt))
      .slice(0, MOST_OF_ALL)
  const failed = answers.flatMap((answer, at) =>
    answer.failure === undefined ? [] : [{ ...answer, of: daos[at]?.name }],
  )
  const failure = failed[0]?.failure
  const retry = () => {
    for (const one of failed) one.retry()
  }
  return (
    <>
      {failure !== undefined && <Failed failure={failure} retry={retry} of={failed.map(({ of }) => of).join(', ')} />}
      <Rows of={newest.current} isWaiting={isWaiting} isComplete={failure === undefined} />
    </>
  )
}

function Rows({ of, isWaiting, isComplete }: { of: readonly Named[]; isWaiting: boolean; isComplete: boolean }) {
  if (of.length === 0 && isWaiting)
    return (
      <p class="state loading" role="status">
        Loading proposals…
      </p>
    )
  if (of.length === 0) return isComplete ? <p class="state empty">{NONE}</p> : null
  return (
    <div class="shown" aria-busy={isWaiting}>
      {/* Rows are keyed by position and have a fixed height: another proposal moves nothing. */}
      <RecordTable<Named>
        caption="Newest proposals"
        records={of}
        keyOf={(_proposal, place) => place}
        columns={[
          { title: 'Proposal', cell: (proposal) => <Title of={proposal} /> },
          {
            title: 'DAO',
            cell: ({ dao, name }) => (
              <a key={dao} href={`daos/${dao}`}>
                {name}
              </a>
            ),
          },
          STATE,
          VOTES,
          ENDS,
        ]}
        isSteady
      />
    </div>
  )
}

export function NewestProposals() {
  const question = toQuestion('/data/daos/governance/summary', { sort: '-lastProposalAt', limit: MOST_OF_ALL })
  const daos = useAnswer(question)
  return (
    <Card title="Newest proposals" question={question} facts={daos.received?.facts}>
      <Shown of={daos} what="proposals" isEmpty={(data) => data.length === 0} empty={NO_SPACES} rows={MOST_OF_ALL}>
        {(data) => <Merged daos={data.filter(({ lastProposalAt }) => lastProposalAt !== null)} />}
      </Shown>
    </Card>
  )
}
