/** The result of a proposal, as far as it is known. */
export type Result =
  /** Nothing yet: no votes, or the choices are not known. */
  | { readonly kind: 'unknown' }
  /** The vote is open, or not counted completely: the choice that leads. */
  | { readonly kind: 'leading'; readonly choice: string }
  /** The result of a vote about For and Against. */
  | { readonly kind: 'passed' | 'failed' }
  | { readonly kind: 'canceled' }
  /** Less power than the quorum, whatever the votes count as. */
  | { readonly kind: 'noQuorum' }
  /** A choice of several, or one of For and Against whose quorum is not known. */
  | { readonly kind: 'chosen'; readonly choice: string; readonly isQuorumKnown: boolean }

/** The members of a proposal that decide its result. */
interface Voted {
  readonly choices: readonly string[]
  readonly scores: readonly number[]
  readonly scoresTotal: number | null
  readonly quorum: number | null
  readonly state: string | null
  readonly source?: string
  readonly outcome?: string | null
}

const [FOR, AGAINST] = [
  ['for', 'yes', 'yae', 'yea', 'aye', 'support', 'in favor', 'in favour', 'approve'],
  ['against', 'no', 'nay', 'oppose', 'reject'],
]

/** The places of the choices For and Against, if a vote is about nothing else but Abstain. */
function findBallot(choices: readonly string[]): { readonly yes: number; readonly no: number } | undefined {
  const words = choices.map((choice) => choice.trim().toLowerCase())
  const [yes, no] = [FOR, AGAINST].map((accepted) => words.findIndex((word) => accepted?.includes(word)))
  const isOther = words.some((word, at) => at !== yes && at !== no && word !== 'abstain')
  return yes === undefined || no === undefined || yes < 0 || no < 0 || isOther ? undefined : { yes, no }
}

/**
 * Whether the quorum is reached; undefined if it is not known. A governor may count only the votes For. All votes together are
 * the most that any rule counts, and the votes For are the least.
 */
function findReached({ quorum, scoresTotal, source }: Voted, yes: number): boolean | undefined {
  if (quorum === null || scoresTotal === null) return undefined
  if (quorum === 0) return source === 'governor' ? undefined : true
  if (scoresTotal < quorum) return false
  return source !== 'governor' || yes >= quorum ? true : undefined
}

/** The result of a proposal, as far as its data has it. The outcome on a chain decides before the scores do. */
export function toResult(proposal: Voted): Result {
  const { choices, scores, state, outcome } = proposal
  if (outcome === 'canceled') return { kind: 'canceled' }
  if (outcome === 'queued' || outcome === 'executed' || outcome === 'expired') return { kind: 'passed' }
  const most = Math.max(0, ...scores)
  const choice = choices[scores.indexOf(most)]
  if (most === 0 || choice === undefined) return { kind: 'unknown' }
  if (state !== 'closed') return { kind: 'leading', choice }
  const ballot = findBallot(choices)
  const yes = ballot === undefined ? most : (scores[ballot.yes] ?? 0)
  const isReached = findReached(proposal, yes)
  if (isReached === false) return { kind: 'noQuorum' }
  if (ballot === undefined) return { kind: 'chosen', choice, isQuorumKnown: isReached !== undefined }
  if (yes <= (scores[ballot.no] ?? 0)) return { kind: 'failed' }
  return isReached ? { kind: 'passed' } : { kind: 'chosen', choice: choices[ballot.yes] ?? '', isQuorumKnown: false }
}
