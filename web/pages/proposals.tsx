import { useAnswer, useAnswers } from '../answers.ts'
import { type Answer, toQuestion } from '../interface.ts'
import { Card } from '../parts/card.tsx'
import { type Column, RecordTable } from '../parts/record-table.tsx'
import { Failed, Shown } from '../parts/shown.tsx'
import { Moment, Unknown, Value } from '../parts/value.tsx'

export const NO_SPACE = 'Not known: no space of this DAO is followed.'
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

/** The choice with the highest score. */
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
const ENDS: Column<Proposal> = { title: 'Ends', cell: ({ endsAt }) => <Moment at={endsAt} /> }

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

/** The newest proposals of one DAO. */
export function Proposals({ id }: { id: string }) {
  const question = toQuestion('/data/daos/governance/proposals', { id, limit: MOST })
  const proposals = useAnswer(question)
  return (
    <Card title="Newest proposals" question={question} facts={proposals.given?.facts}>
      <Shown of={proposals} what="proposals" isEmpty={(data) => data.length === 0} empty={NO_SPACE}>
        {(data) => <RecordTable caption="Newest proposals" columns={COLUMNS} records={data} keyOf={({ _id }) => _id} />}
      </Shown>
    </Card>
  )
}

type Summaries = Answer<'/data/daos/governance/summary'>

/** Of each of these DAOs as many as are shown: whichever are the newest of all are among them. */
function Merged({ daos }: { daos: Summaries }) {
  const answers = useAnswers(
    daos.map(({ _id }) => toQuestion('/data/daos/governance/proposals', { id: _id, limit: MOST_OF_ALL })),
  )
  const names = new Map(daos.map(({ _id, name }) => [_id, name]))
  const failed = answers.find(({ failure }) => failure !== undefined)
  if (failed?.failure !== undefined) return <Failed failure={failed.failure} again={failed.again} />
  if (answers.some(({ given }) => given === undefined))
    return (
      <p class="state loading" role="status">
        Loading proposals…
      </p>
    )
  const newest = answers
    .flatMap(({ given }) => given?.data ?? [])
    .sort((a, b) => b.createdAt.localeCompare(a.createdAt))
    .slice(0, MOST_OF_ALL)
  return (
    // A row is a place, as high whatever is in it: another proposal there moves nothing.
    <RecordTable
      caption="Newest proposals"
      records={newest}
      keyOf={(_proposal, place) => place}
      columns={[
        { title: 'Proposal', cell: (proposal) => <Title of={proposal} /> },
        {
          title: 'DAO',
          cell: ({ dao }) => (
            <a key={dao} href={`daos/${dao}`}>
              {names.get(dao)}
            </a>
          ),
        },
        STATE,
        VOTES,
        ENDS,
      ]}
      isSteady
    />
  )
}

/** The newest proposals of all DAOs. */
export function NewestProposals() {
  const question = toQuestion('/data/daos/governance/summary', { sort: '-lastProposalAt', limit: MOST_OF_ALL })
  const daos = useAnswer(question)
  return (
    <Card title="Newest proposals" question={question} facts={daos.given?.facts}>
      <Shown of={daos} what="proposals" isEmpty={(data) => data.length === 0} empty={NO_SPACES} rows={MOST_OF_ALL}>
        {(data) => <Merged daos={data.filter(({ lastProposalAt }) => lastProposalAt !== null)} />}
      </Shown>
    </Card>
  )
}
