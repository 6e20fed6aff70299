import { useState } from 'preact/hooks'
import { useAnswer } from '../answers.ts'
import { describeChoice, toText } from '../format.ts'
import { toQuestion } from '../interface.ts'
import { Card, Stat, Stats } from '../parts/card.tsx'
import { Choice, chosen } from '../parts/choice.tsx'
import { Late } from '../parts/late.tsx'
import { RecordTable } from '../parts/record-table.tsx'
import { Shown } from '../parts/shown.tsx'
import { useTitle } from '../parts/title.ts'
import { TimeValue, Unknown, Value } from '../parts/value.tsx'
import { Flagged, isWeb, State } from './proposals.tsx'
import { type Proposal, QuorumProgress, VoteResult } from './voted.tsx'
import { Voter } from './voters.tsx'

const MOST_VOTES = 100
const SORTS = ['-votingPower', '-createdAt'] as const

/** The scores of the choices as bars. */
function Result({ of: { choices, scores, scoresTotal, state } }: { of: Proposal }) {
  const total = scoresTotal ?? 0
  const most = Math.max(0, ...scores)
  if (choices.length === 0) return <p class="state empty">The source reports no choices.</p>
  return (
    <>
      <ul class="result">
        {choices.map((choice, at) => {
          const score = scores[at]
          const share = score === undefined || total <= 0 ? null : score / total
          return (
            <li key={choice} class={score !== undefined && score > 0 && score === most ? 'leading' : undefined}>
              <span>{choice}</span>
              <Value of={share} as="share" why="No votes counted yet." />
              <Value of={score} as="amount" why="The source reports no score." />
              <progress max="1" value={share ?? 0} aria-label={`Share of ${choice}`} />
            </li>
          )
        })}
      </ul>
      {state === 'unsettled' && <p class="note">Not final: Snapshot has not counted all votes.</p>}
    </>
  )
}

function Votes({ id, of }: { id: string; of: Proposal }) {
  const sort = chosen('votes', SORTS, '-votingPower')
  const question = toQuestion('/data/daos/governance/votes', { proposal: id, sort, limit: MOST_VOTES })
  const votes = useAnswer(question)
  const total = of.scoresTotal ?? 0
  const controls = (
    <Choice
      name="votes"
      label="Order of the votes"
      options={[
        { value: '-votingPower', text: 'Most power' },
        { value: '-createdAt', text: 'Newest' },
      ]}
      value={sort}
    />
  )
  return (
    <Card title="Votes" question={question} facts={votes.received?.facts} controls={controls}>
      <Shown of={votes} what="votes" isEmpty={(data) => data.length === 0} empty="No votes yet." rows={10}>
        {(data, { total: count }) => (
          <>
            <RecordTable
              caption="Votes"
              records={data}
              keyOf={({ _id }) => _id}
              columns={[
                { title: 'Voter', cell: ({ voter }) => <Voter address={voter} /> },
                {
                  title: 'Choice',
                  cell: ({ choice }) => (
                    <span class="text">
                      {describeChoice(choice, of.choices) ?? <Unknown why="The choice was not collected." />}
                    </span>
                  ),
                },
                { title: 'Power', isNumber: true, cell: ({ votingPower }) => <Value of={votingPower} as="amount" /> },
                {
                  title: 'Share',
                  isNumber: true,
                  cell: ({ votingPower }) => (
                    <Value of={votingPower === null || total <= 0 ? null : votingPower / total} as="share" />
                  ),
                },
                { title: 'Time', cell: ({ createdAt }) => <TimeValue at={createdAt} /> },
              ]}
            />
            {count !== undefined && count > data.length && (
              <p class="note">
                {data.length} of {toText(count, 'count')} votes. “Open as” has all.
              </p>
            )}
          </>
        )}
      </Shown>
    </Card>
  )
}

/** Longer texts are shown in part until the reader opens them. */
const SHORT = 1500
const loadMarkdown = async () => (await import('../parts/markdown.ts')).fromMarkdown

/** The text of a proposal in Markdown of any author. The HTML of `fromMarkdown` is safe. */
function Written({ text }: { text: string }) {
  const [isOpen, setOpen] = useState(text.length <= SHORT)
  const open = () => setOpen(true)
  return (
    <Late what="text" load={loadMarkdown} loading={<p class="state loading">Loading the text …</p>}>
      {(fromMarkdown) => (
        <>
          <div
            class={isOpen ? 'written' : 'written partial'}
            onFocusCapture={open}
            dangerouslySetInnerHTML={{ __html: fromMarkdown(text) }}
          />
          {!isOpen && (
            <button type="button" onClick={open}>
              Show the whole text
            </button>
          )}
        </>
      )}
    </Late>
  )
}

/** The text of a proposal, or why there is none, with a link to the source. */
function Body({ of }: { of: Proposal }) {
  const { url } = of
  const body = 'body' in of ? of.body : undefined
  return (
    <Card title="Text">
      {typeof body === 'string' && body !== '' && <Written key={body} text={body} />}
      <p class="note">
        {body === '' && 'The proposal has no text. '}
        {typeof body !== 'string' && 'The text was not collected yet. '}
        {isWeb(url) && (
          <a href={url} target="_blank" rel="noreferrer nofollow">
            Read it at the source
          </a>
        )}
      </p>
    </Card>
  )
}

/** The page of a proposal: result, dates, text and votes. */
export function ProposalPage({ dao, id }: { dao: string; id: string }) {
  const question = toQuestion('/data/daos/governance/proposals', {
    ...{ id: dao, source: 'all', include: ['body', 'quorum'] },
    filter: [`_id=${id}`],
  })
  const proposals = useAnswer(question)
  const daos = useAnswer(toQuestion('/data/daos', { id: [dao] }))
  const name = daos.received?.data[0]?.name
  useTitle(proposals.received?.data.map(({ title }) => ({ name: title || 'Proposal' })))
  return (
    <Shown of={proposals} what="the proposal" isEmpty={(data) => data.length === 0} empty="No proposal has this id.">
      {([proposal], facts) =>
        proposal !== undefined && (
          <div class="column">
            <nav class="crumbs" aria-label="Breadcrumb">
              <a href="governance">Governance</a> / <a href={`daos/${dao}?tab=governance`}>{name ?? 'DAO'}</a>
            </nav>
            <div class="title">
              <h1>{proposal.title || 'Proposal without a title'}</h1>
              <State of={proposal} />
              <Flagged of={proposal} />
            </div>
            <div class="grid">
              <Card title="Result" question={question} facts={facts}>
                <Result of={proposal} />
                <QuorumProgress of={proposal} />
              </Card>
              <Card title="Details">
                <Stats>
                  <Stat name="Votes">
                    <Value of={proposal.votes} as="count" />
                  </Stat>
                  <Stat name="Voting power">
                    <Value of={proposal.scoresTotal} as="amount" />
                  </Stat>
                  <Stat name="Result">
                    <VoteResult of={proposal} />
                  </Stat>
                  <Stat name="Author">
                    <Voter address={proposal.author} />
                  </Stat>
                  <Stat name="Start">
                    <TimeValue at={proposal.startsAt} />
                  </Stat>
                  <Stat name="End">
                    <TimeValue at={proposal.endsAt} />
                  </Stat>
                </Stats>
              </Card>
            </div>
            <Body of={proposal} />
            <Votes id={id} of={proposal} />
          </div>
        )
      }
    </Shown>
  )
}
