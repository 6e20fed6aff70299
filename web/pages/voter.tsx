import { useAnswer } from '../answers.ts'
import { toShort, toText } from '../format.ts'
import { type Answer, toQuestion } from '../interface.ts'
import { Card } from '../parts/card.tsx'
import { RecordTable } from '../parts/record-table.tsx'
import { Shown, withNames } from '../parts/shown.tsx'
import { useTitle } from '../parts/title.ts'
import { TimeValue, Unknown, Value } from '../parts/value.tsx'
import { go, query, withQuery } from '../place.ts'
import { Flagged } from './proposals.tsx'
import { VotingRecord } from './voter-record.tsx'

type Membership = Answer<'/data/voters'>[number]

/** Shown votes; the export has up to the API's limit. */
const [MOST_SHOWN, MOST_EXPORTED] = [100, 10_000]
/** The API's limit of proposals. */
const MOST_PROPOSALS = 1000

/** The votes of an address in one DAO, newest first. */
function Votes({ address, of, all }: { address: string; of: Membership; all: readonly Membership[] }) {
  const id = of.dao
  const cursor = query.value.get('cursor') ?? ''
  const votesOf = (limit: number, more: { cursor?: string } = {}) =>
    toQuestion('/data/daos/governance/votes', {
      ...{ id, source: 'all', filter: [`voter=${address}`], include: ['choiceText'], limit },
      ...more,
    })
  const votes = useAnswer(votesOf(MOST_SHOWN, cursor === '' ? {} : { cursor }))
  const fields = ['_id' as const, 'title' as const, 'flagged' as const]
  const titled = { id, source: 'all', limit: MOST_PROPOSALS, sort: '-createdAt', fields } as const
  const titles = useAnswer(toQuestion('/data/daos/governance/proposals', titled))
  const proposals = titles.received?.data
  const byId = new Map(proposals?.map((proposal) => [proposal._id, proposal]))
  const titleOf = (proposal: string) =>
    proposals === undefined ? '…' : byId.get(proposal)?.title || 'Proposal without a title'
  const controls = all.length > 1 && (
    <div class="filters">
      <label>
        DAO
        <select
          value={id}
          onChange={({ currentTarget }) => go(withQuery({ dao: currentTarget.value, cursor: undefined }))}
        >
          {all.map(({ dao, name, votes: count }) => (
            <option key={dao} value={dao}>
              {name} ({toText(count, 'count')})
            </option>
          ))}
        </select>
      </label>
    </div>
  )
  const empty = 'No votes in this DAO: the address has only delegated power there.'
  return (
    <Card
      title={`Votes in ${of.name}`}
      question={votesOf(MOST_EXPORTED)}
      facts={votes.received?.facts}
      controls={controls || undefined}
    >
      <Shown of={withNames(votes, titles)} what="votes" isEmpty={(data) => data.length === 0} empty={empty} rows={10}>
        {(data, { total, next }) => (
          <>
            <RecordTable
              caption={`Votes in ${of.name}, newest first`}
              records={data}
              keyOf={({ _id }) => _id}
              place={{ list: `${address} ${id}`, page: cursor }}
              columns={[
                {
                  title: 'Proposal',
                  cell: ({ proposal }) => (
                    <span class="titled">
                      <span>
                        <Flagged of={byId.get(proposal) ?? {}} />
                        <a href={`daos/${id}/proposals/${proposal}`}>{titleOf(proposal)}</a>
                      </span>
                    </span>
                  ),
                },
                {
                  title: 'Choice',
                  cell: (vote) => (
                    <span class="text short">
                      {('choiceText' in vote && vote.choiceText) || <Unknown why="The choice is secret or unknown." />}
                    </span>
                  ),
                },
                { title: 'Power', isNumber: true, cell: ({ votingPower }) => <Value of={votingPower} as="amount" /> },
                { title: 'Voted', cell: ({ createdAt }) => <TimeValue at={createdAt} /> },
                {
                  title: 'On',
                  cell: (vote) => ('source' in vote && vote.source === 'governor' ? 'governor' : 'Snapshot'),
                },
              ]}
            />
            <p class="pages">
              <span role="status">{`${data.length} of ${total ?? data.length} votes`}</span>
              {next !== undefined && <a href={withQuery({ cursor: next })}>Earlier votes</a>}
              {cursor !== '' && <a href={withQuery({ cursor: undefined })}>Newest votes</a>}
            </p>
          </>
        )}
      </Shown>
    </Card>
  )
}

const NOT_READ = 'Delegations of this DAO are not collected, or were not read to their end yet.'

/** The page of an address: its votes and delegated power in every DAO. */
export function VoterPage({ address }: { address: string }) {
  const question = toQuestion('/data/voters', { address: address.toLowerCase() })
  const daos = useAnswer(question)
  const all = daos.received?.data ?? []
  const chosen = all.find(({ dao }) => dao === query.value.get('dao')) ?? all[0]
  useTitle([{ name: `Voter ${toShort(address)}` }])
  return (
    <div class="column">
      <nav class="crumbs" aria-label="Breadcrumb">
        <a href="governance">Governance</a> / Voters
      </nav>
      <div class="about">
        <h1>Voter {toShort(address)}</h1>
        <p>
          <code class="curl">{address}</code>
        </p>
      </div>
      <Card title="DAOs" question={question} facts={daos.received?.facts}>
        <Shown
          of={daos}
          what="votes"
          isEmpty={(data) => data.length === 0}
          empty="This address has not voted in a known DAO, and has no delegated power."
        >
          {(data) => (
            <RecordTable
              caption="DAOs"
              records={data}
              keyOf={({ dao }) => dao}
              columns={[
                { title: 'DAO', cell: ({ dao, name }) => <a href={`daos/${dao}?tab=governance`}>{name}</a> },
                { title: 'Votes', isNumber: true, cell: ({ votes }) => <Value of={votes} as="count" /> },
                { title: 'Power', isNumber: true, cell: ({ votingPower }) => <Value of={votingPower} as="amount" /> },
                {
                  title: 'Delegators',
                  isNumber: true,
                  cell: ({ delegators }) => <Value of={delegators} as="count" why={NOT_READ} />,
                },
                { title: 'First vote', cell: ({ firstVoteAt }) => <VoteTime at={firstVoteAt} /> },
                { title: 'Latest vote', cell: ({ lastVoteAt }) => <VoteTime at={lastVoteAt} /> },
              ]}
            />
          )}
        </Shown>
        <p class="note">
          Votes are proposals that the address voted on, on Snapshot and on governors. Power is what is delegated to it
          now; in DAOs without collected delegations, the power of its latest vote.
        </p>
      </Card>
      {chosen !== undefined && (
        <VotingRecord
          key={`record ${chosen.dao}`}
          address={address.toLowerCase()}
          dao={chosen.dao}
          name={chosen.name}
        />
      )}
      {chosen !== undefined && <Votes key={chosen.dao} address={address.toLowerCase()} of={chosen} all={all} />}
    </div>
  )
}

const VoteTime = ({ at }: { at: string | null }) =>
  at === null ? <span title="It has only delegated power here.">no vote</span> : <TimeValue at={at} />
