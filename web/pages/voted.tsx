import type { Answer } from '../interface.ts'
import { Unknown, Value } from '../parts/value.tsx'
import { toResult } from './result.ts'

export type Proposal = Answer<'/data/daos/governance/proposals'>[number]

const NO_QUORUM_KNOWN = 'The source does not report the quorum, or which votes count for it.'

/** The result of a vote: passed, failed, no quorum, the chosen one of several, or the leading choice of an open vote. */
export function VoteResult({ of }: { of: Proposal }) {
  const result = toResult(of)
  if (result.kind === 'unknown') return <Unknown why="No votes counted yet." />
  if (result.kind === 'leading')
    return (
      <>
        {result.choice} <small>leads</small>
      </>
    )
  if (result.kind === 'chosen')
    return (
      <>
        {result.choice}
        {!result.isQuorumKnown && <small title={NO_QUORUM_KNOWN}>, quorum not known</small>}
      </>
    )
  const text = { passed: 'Passed', failed: 'Failed', canceled: 'Canceled', noQuorum: 'No quorum' }[result.kind]
  return <span class={{ passed: 'up', failed: 'down', canceled: '', noQuorum: 'down' }[result.kind]}>{text}</span>
}

/** The quorum of a vote in a table. */
export function QuorumText({ of: { quorum, scoresTotal } }: { of: Proposal }) {
  if (quorum === null) return <Unknown why="The source reports no quorum." />
  if (quorum === 0) return <>none set</>
  return <Value of={scoresTotal === null ? null : scoresTotal / quorum} as="share" why="No votes counted yet." />
}

const COUNTED = {
  for: 'Only votes For count.',
  'for+abstain': 'Votes For and abstentions count.',
  all: 'All votes count.',
  'larger+abstain': 'The larger one of For and Against counts, and abstentions.',
}

/** Which votes count for the quorum, in words. */
function describeCounted(of: Proposal) {
  const state = 'quorumState' in of ? of.quorumState : undefined
  if (state?.counted) return `${COUNTED[state.counted]}${state.live ? ' The quorum may change until the end.' : ''}`
  return 'source' in of && of.source === 'governor'
    ? 'All votes together; some governors count only the votes For.'
    : ''
}

/** How far the votes that count are from the quorum; all votes if it is not known which count. */
export function QuorumProgress({ of }: { of: Proposal }) {
  const { quorum, scoresTotal } = of
  if (quorum === null || quorum === 0)
    return <p class="note">{quorum === null ? 'The source reports no quorum.' : 'The space has set no quorum.'}</p>
  const cast = ('quorumState' in of ? of.quorumState?.power : undefined) ?? scoresTotal ?? 0
  const missing = quorum - cast
  return (
    <div class="quorum">
      <p>
        <span>Quorum</span>
        <span>
          <Value of={cast} as="amount" /> of <Value of={quorum} as="amount" />
        </span>
        <b>
          <Value of={cast / quorum} as="share" />
        </b>
      </p>
      <progress max="1" value={Math.min(1, cast / quorum)} aria-label="Share of the quorum" />
      <p class="note">
        {missing > 0 && (
          <>
            <Value of={missing} as="amount" /> {of.state === 'active' ? 'more would reach it.' : 'were missing.'}{' '}
          </>
        )}
        {describeCounted(of)}
      </p>
    </div>
  )
}
