import { useMemo } from 'preact/hooks'
import { useAnswer } from '../answers.ts'
import { END_OF_TIME, now } from '../clock.ts'
import { toQuestion } from '../interface.ts'
import { Card } from '../parts/card.tsx'
import type { ChartEvent } from '../parts/drawing.ts'
import { type Column, RecordTable } from '../parts/record-table.tsx'
import { Shown, withNames } from '../parts/shown.tsx'
import { DayValue, TimeValue, Unknown, Until, Value } from '../parts/value.tsx'
import { type Proposal, QuorumText, VoteResult } from './voted.tsx'

const NONE = 'No proposals yet.'
const NO_SPACES = 'No proposals of any DAO were read yet.'
const MOST = 10
const MOST_OF_ALL = 5
/** Rows of two lines, as high as five rows of one line. */
const MOST_ENDING = 4

/** Only web addresses become links: the provider's text may be anything. */
export const isWeb = (url: string | null): url is string => url !== null && /^https?:\/\//.test(url)

/** The mark of a proposal that Snapshot flagged. */
export const Flagged = ({ of }: { of: object }) =>
  'flagged' in of && of.flagged === true ? (
    <>
      <span class="badge flagged" title="Snapshot flagged it as spam or a scam.">
        flagged
      </span>{' '}
    </>
  ) : null

const Title = ({ of }: { of: Proposal }) => (
  <a key={of._id} href={`daos/${of.dao}/proposals/${of._id}`} title={of.title}>
    <Flagged of={of} />
    {of.title || 'Proposal without a title'}
  </a>
)

/** The state of a proposal, and its outcome on the chain if there is one. */
export function State({ of }: { of: Proposal }) {
  const outcome = 'outcome' in of && typeof of.outcome === 'string' ? of.outcome : undefined
  if (of.state === null) return <Unknown why="The source does not report it." />
  return <span class={`badge ${of.state}`}>{outcome ?? of.state}</span>
}

const STATE: Column<Proposal> = {
  title: 'State',
  isWide: true,
  cell: (proposal) => <State of={proposal} />,
}
const VOTES: Column<Proposal> = {
  title: 'Votes',
  isNumber: true,
  cell: ({ votes }) => <Value of={votes} as="count" />,
}
const RESULT: Column<Proposal> = { title: 'Result', isWide: true, cell: (proposal) => <VoteResult of={proposal} /> }
const ENDS: Column<Proposal> = { title: 'Ends', cell: ({ endsAt }) => <Until at={endsAt} /> }
const ENDS_AT_RIGHT = { ...ENDS, isNumber: true }

/** A title in full, and the cells of other columns below it: always, or on a phone, which hides those columns. */
const titled = <T extends Proposal>(below: readonly Column<T>[], isAlways = false): Column<T> => ({
  title: 'Proposal',
  cell: (proposal) => (
    <span class="titled">
      <Title of={proposal} />
      <small class={isAlways ? undefined : 'narrow'}>
        {below.map(({ title, cell }) => (
          <span key={title}>{cell(proposal)} </span>
        ))}
      </small>
    </span>
  ),
})

/** Where the votes are: on Snapshot, or on a contract of the DAO. */
const SOURCE: Column<Proposal> = {
  title: 'Voted on',
  cell: (proposal) => ('source' in proposal && proposal.source === 'governor' ? 'governor' : 'Snapshot'),
}

const COLUMNS: readonly Column<Proposal>[] = [
  titled([STATE, RESULT]),
  STATE,
  RESULT,
  VOTES,
  { title: 'Voting power', isNumber: true, cell: ({ scoresTotal }) => <Value of={scoresTotal} as="amount" /> },
  { title: 'Ends', cell: ({ endsAt }) => <TimeValue at={endsAt} /> },
  SOURCE,
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
      : toQuestion('/data/daos/governance/proposals', { id, source: 'all', limit: MOST_ENDS, fields: [...fields] }),
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
  const question = toQuestion('/data/daos/governance/proposals', { id, source: 'all', limit })
  const proposals = useAnswer(question)
  return (
    <Card title="Newest proposals" question={question} facts={proposals.received?.facts}>
      <Shown of={proposals} what="proposals" isEmpty={(data) => data.length === 0} empty={NONE}>
        {(data) => <RecordTable caption="Newest proposals" columns={COLUMNS} records={data} keyOf={({ _id }) => _id} />}
      </Shown>
    </Card>
  )
}

/** A proposal with the name of its DAO. */
type Named = Proposal & { readonly name: string | undefined }

const DaoLink = ({ of: { dao, name } }: { of: Named }) => (
  <a key={dao} href={`daos/${dao}`}>
    {name ?? '…'}
  </a>
)

/** The DAO of a proposal in a table of several DAOs. */
const DAO: Column<Named> = { title: 'DAO', isWide: true, cell: (proposal) => <DaoLink of={proposal} /> }

const QUORUM: Column<Proposal> = {
  title: 'Of the quorum',
  isNumber: true,
  cell: (proposal) => <QuorumText of={proposal} />,
}

const ALL_COLUMNS: readonly Column<Named>[] = [titled([DAO, RESULT]), DAO, ENDS, RESULT, VOTES, QUORUM]

const SOON_COLUMNS: readonly Column<Named>[] = [titled([DAO], true), ENDS_AT_RIGHT]

const NEWEST_COLUMNS: readonly Column<Named>[] = [
  titled([DAO, STATE]),
  DAO,
  STATE,
  { ...VOTES, isWide: true },
  ENDS_AT_RIGHT,
]

/** The request, which is a cache key, changes once in this time. */
const FIVE_MINUTES_MS = 300_000

/** Proposals of all DAOs, on Snapshot and on chains, in an order. */
function ProposalsOfAll(props: {
  title: string
  state?: 'active' | 'closed'
  endsBefore?: string
  sort: string
  limit: number
  columns: readonly Column<Named>[]
  empty: string
  isSteady?: boolean
  /** The height to reserve, in rows of one line. */
  rows?: number
}) {
  const { title, state, endsBefore = END_OF_TIME, sort, limit, isSteady = false, rows = 5 } = props
  const question = toQuestion('/data/daos/governance/proposals', {
    ...{ endsBefore, source: 'all', sort, limit },
    ...(state === undefined ? {} : { state }),
  })
  const proposals = useAnswer(question)
  const ids = [...new Set(proposals.received?.data.map(({ dao }) => dao))]
  const names = useAnswer(ids.length === 0 ? undefined : toQuestion('/data/daos', { id: ids, limit: ids.length }))
  const nameById = new Map(names.received?.data.map(({ _id, name }) => [_id, name]))
  return (
    <Card title={title} question={question} facts={proposals.received?.facts}>
      <Shown
        of={withNames(proposals, ids.length === 0 ? undefined : names)}
        what="proposals"
        isEmpty={(data) => data.length === 0}
        empty={props.empty}
        rows={rows}
      >
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
    {...{ title: 'Votes ending soon', state: 'active', sort: 'endsAt', limit: MOST_ENDING, rows: 6 }}
    columns={SOON_COLUMNS}
    empty="No vote is open."
    isSteady
  />
)

const RESULT_COLUMNS = ALL_COLUMNS.map(
  (column): Column<Named> =>
    column === ENDS ? { title: 'Ended', cell: ({ endsAt }) => <DayValue at={endsAt} /> } : column,
)

/** The newest results. A canceled vote may end in the future, and has none. */
export const RecentResults = () => {
  const endsBefore = new Date(now.value - (now.value % FIVE_MINUTES_MS)).toISOString()
  return (
    <ProposalsOfAll
      {...{ title: 'Recent results', state: 'closed', sort: '-endsAt', limit: 12, endsBefore }}
      columns={RESULT_COLUMNS}
      empty={NONE}
    />
  )
}

/** The newest proposals of all DAOs. */
export const NewestProposals = () => (
  <ProposalsOfAll
    {...{ title: 'Newest proposals', sort: '-createdAt', limit: MOST_OF_ALL }}
    columns={NEWEST_COLUMNS}
    empty={NO_SPACES}
    isSteady
  />
)
