import { useMemo, useRef } from 'preact/hooks'
import { useAnswer, useAnswers } from '../answers.ts'
import { now } from '../clock.ts'
import { type Answer, toQuestion } from '../interface.ts'
import { Card } from '../parts/card.tsx'
import type { ChartEvent } from '../parts/drawing.ts'
import { type Column, RecordTable } from '../parts/record-table.tsx'
import { Failed, Shown } from '../parts/shown.tsx'
import { DayValue, TimeValue, Unknown, Until, Value } from '../parts/value.tsx'

const NONE = 'No proposals yet.'
const NO_SPACES = 'No proposals of any DAO were read yet.'
const MOST = 10
const MOST_OF_ALL = 5

export type Proposal = Answer<'/data/daos/governance/proposals'>[number]

/** Only web addresses become links: the provider's text may be anything. */
export const isWeb = (url: string | null): url is string => url !== null && /^https?:\/\//.test(url)

const Title = ({ of: { _id, dao, title } }: { of: Proposal }) => (
  <a key={_id} href={`daos/${dao}/proposals/${_id}`}>
    {title || 'Proposal without a title'}
  </a>
)

/** The state of a proposal, and its outcome on the chain if there is one. */
export function State({ of }: { of: Proposal }) {
  const outcome = 'outcome' in of && typeof of.outcome === 'string' ? of.outcome : undefined
  if (of.state === null) return <Unknown why="The source does not report it." />
  return <span class={`badge ${of.state}`}>{outcome ?? of.state}</span>
}

/** The choice with the largest score. */
function toLeading({ choices, scores }: Proposal): string | undefined {
  const most = Math.max(...scores)
  return most > 0 ? choices[scores.indexOf(most)] : undefined
}

const STATE: Column<Proposal> = {
  title: 'State',
  cell: (proposal) => <State of={proposal} />,
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
  { title: 'Leading', cell: (proposal) => toLeading(proposal) ?? <Unknown why="No votes counted yet." /> },
  VOTES,
  { title: 'Score', isNumber: true, cell: ({ scoresTotal }) => <Value of={scoresTotal} as="amount" /> },
  ENDS,
]

/** The API's limit of proposals. */
const MOST_ENDS = 1000

/** The ends of a DAO's votes until now, as events of a chart; none without a DAO. */
export function useVoteEnds(dao: string | undefined): readonly ChartEvent[] {
  const summary = useAnswer(dao === undefined ? undefined : toQuestion('/data/daos/governance/summary', { id: [dao] }))
  // The API has no list for a DAO without votes, which would be an error in the browser's console.
  const id = (summary.received?.data[0]?.proposals ?? 0) > 0 ? dao : undefined
  const fields = ['_id', 'title', 'endsAt'] as const
  const { received } = useAnswer(
    id === undefined
      ? undefined
      : toQuestion('/data/daos/governance/proposals', { id, limit: MOST_ENDS, fields: [...fields] }),
  )
  return useMemo(
    () =>
      (received?.data ?? []).flatMap(({ _id, title, endsAt }) => {
        const time = endsAt === null ? Number.NaN : Date.parse(endsAt) / 1000
        const text = `Vote ended: ${title || 'proposal without a title'}`
        return time * 1000 <= now.peek() ? [{ time, text, to: `daos/${dao}/proposals/${_id}` }] : []
      }),
    [received?.data, dao],
  )
}

export function Proposals({ id, limit = MOST }: { id: string; limit?: number }) {
  const question = toQuestion('/data/daos/governance/proposals', { id, limit })
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
      {/* Rows are keyed by position and have a fixed height, so another proposal does not change the layout. */}
      <RecordTable<Named>
        caption="Newest proposals"
        records={of}
        keyOf={(_proposal, place) => place}
        columns={[{ title: 'Proposal', cell: (proposal) => <Title of={proposal} /> }, DAO, STATE, VOTES, ENDS]}
        isSteady
      />
    </div>
  )
}

/** The DAO of a proposal in a table of several DAOs. */
const DAO: Column<Named> = {
  title: 'DAO',
  cell: ({ dao, name }) => (
    <a key={dao} href={`daos/${dao}`}>
      {name ?? '…'}
    </a>
  ),
}

const QUORUM: Column<Proposal> = {
  title: 'Quorum',
  cell: ({ quorum, scoresTotal }) => {
    if (quorum === null || quorum === 0) return <Unknown why="The source reports no quorum." />
    return scoresTotal !== null && scoresTotal >= quorum ? 'reached' : 'not reached'
  },
}

const ALL_COLUMNS: readonly Column<Named>[] = [
  { title: 'Proposal', cell: (proposal) => <Title of={proposal} /> },
  DAO,
  { title: 'Ends', cell: ({ endsAt }) => <Until at={endsAt} /> },
  { title: 'Leading', cell: (proposal) => toLeading(proposal) ?? <Unknown why="No votes counted yet." /> },
  VOTES,
  QUORUM,
]

const SOON_COLUMNS: readonly Column<Named>[] = [
  { title: 'Proposal', cell: (proposal) => <Title of={proposal} /> },
  DAO,
  { title: 'Ends', isNumber: true, cell: ({ endsAt }) => <Until at={endsAt} /> },
]

/** `endsBefore` selects proposals of all DAOs: every vote ends before this. */
const END_OF_TIME = '2100-01-01T00:00:00Z'

/** Proposals of all DAOs in a state, on Snapshot and on chains, in an order. */
function ProposalsOfAll(props: {
  title: string
  state: 'active' | 'closed'
  sort: string
  limit: number
  columns: readonly Column<Named>[]
  empty: string
  isSteady?: boolean
}) {
  const { title, state, sort, limit, isSteady = false } = props
  const question = toQuestion('/data/daos/governance/proposals', {
    ...{ endsBefore: END_OF_TIME, source: 'all', state, sort, limit },
  })
  const proposals = useAnswer(question)
  const ids = [...new Set(proposals.received?.data.map(({ dao }) => dao))]
  const names = useAnswer(ids.length === 0 ? undefined : toQuestion('/data/daos', { id: ids, limit: ids.length }))
  const nameById = new Map(names.received?.data.map(({ _id, name }) => [_id, name]))
  return (
    <Card title={title} question={question} facts={proposals.received?.facts}>
      <Shown of={proposals} what="proposals" isEmpty={(data) => data.length === 0} empty={props.empty} rows={5}>
        {(data) => (
          <RecordTable<Named>
            caption={title}
            records={data.map((proposal) => ({ ...proposal, name: nameById.get(proposal.dao) }))}
            keyOf={({ _id }) => _id}
            columns={props.columns}
            isSteady={isSteady}
          />
        )}
      </Shown>
    </Card>
  )
}

/** Every vote that is open now, the next deadline first. */
export const ActiveProposals = () => (
  <ProposalsOfAll
    {...{ title: 'Active votes', state: 'active', sort: 'endsAt', limit: 50 }}
    columns={ALL_COLUMNS}
    empty="No vote is open."
  />
)

/** The votes with the next deadlines. */
export const EndingSoon = () => (
  <ProposalsOfAll
    {...{ title: 'Votes ending soon', state: 'active', sort: 'endsAt', limit: MOST_OF_ALL }}
    columns={SOON_COLUMNS}
    empty="No vote is open."
    isSteady
  />
)

const RESULT_COLUMNS = ALL_COLUMNS.map((column): Column<Named> => {
  if (column.title === 'Ends') return { title: 'Ended', cell: ({ endsAt }) => <DayValue at={endsAt} /> }
  return column.title === 'Leading' ? { ...column, title: 'Result' } : column
})

/** The newest results. */
export const RecentResults = () => (
  <ProposalsOfAll
    {...{ title: 'Recent results', state: 'closed', sort: '-endsAt', limit: 12 }}
    columns={RESULT_COLUMNS}
    empty={NONE}
  />
)

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
