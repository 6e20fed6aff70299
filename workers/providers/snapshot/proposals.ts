import type { Allowance } from '../../job/allowance.ts'
import type { Cursor, Pass, Progress } from '../contracts/governance.ts'
import { readByCreation } from './pages-by-creation.ts'
import { MOST_SKIPPED, PAGE_SIZE, type Proposal } from './queries.ts'

/** So often every proposal of a space is read: an edit and a deletion are seen that late, at the latest. */
const SWEEP_EVERY_MS = 24 * 3_600_000
/** After its end a proposal's scores are computed, and hidden votes uncovered; for so long it is read again each time. */
const SETTLING_SECONDS = 2 * 3600

const START: Cursor = { from: 0, skip: 0 }

/** A piece of a space's proposals, and what follows from it for what is read next. */
export interface ProposalPages {
  readonly items: readonly Proposal[]
  readonly progress: Progress
  readonly isComplete: boolean
  /** The slot in which a sweep began that is complete now. */
  readonly sweptAt: number | undefined
}

/** What is new among the proposals, and what may have changed: those that are not settled, and once a day all. */
export async function readProposals(options: {
  readonly fetchPage: (cursor: Cursor) => Promise<readonly Proposal[]>
  readonly progress: Progress
  /** In Unix milliseconds. */
  readonly slot: number
  readonly allowance: Pick<Allowance, 'take'>
}): Promise<ProposalPages> {
  const { fetchPage, progress, slot, allowance } = options
  const pass = progress.pass ?? toPass(progress, slot)
  const start = progress.pass === null && pass.isSweep ? START : progress.proposals
  const { items, cursor, isComplete } = await readByCreation({
    ...{ fetchPage, start, allowance },
    ...{ pageSize: PAGE_SIZE, mostSkipped: MOST_SKIPPED },
  })
  const open = oldest([pass.open, ...items.filter((one) => !isSettled(one, slot)).map(({ created }) => created)])
  const votes = toVotesCursor(progress, items, slot)
  const next = { ...progress, votes }
  if (!isComplete)
    return { items, progress: { ...next, proposals: cursor, pass: { ...pass, open } }, isComplete, sweptAt: undefined }
  const from = Math.min(cursor.from, open ?? cursor.from)
  return {
    items,
    progress: {
      ...next,
      proposals: { from, skip: 0 },
      read: pass.began,
      swept: pass.isSweep ? pass.began : progress.swept,
      pass: null,
    },
    isComplete,
    sweptAt: pass.isSweep ? pass.began : undefined,
  }
}

function toPass({ swept }: Progress, slot: number): Pass {
  return { began: slot, isSweep: slot - swept >= SWEEP_EVERY_MS, open: null }
}

const oldest = (times: readonly (number | null)[]): number | null => {
  const known = times.filter((time) => time !== null)
  return known.length === 0 ? null : Math.min(...known)
}

const isSettled = ({ end }: Proposal, slot: number) =>
  end === null || end === undefined || (end + SETTLING_SECONDS) * 1000 <= slot

/**
 * Votes on what was settled since the last reading are read once more, from the beginning of the vote: choices that were
 * hidden are known now, and so is the power that counted in the end.
 */
function toVotesCursor({ votes, read }: Progress, items: readonly Proposal[], slot: number): Cursor {
  const settled = items.filter((one) => isSettled(one, slot) && !isSettled(one, read))
  const from = oldest(settled.map(({ start, created }) => start ?? created))
  return from === null || from >= votes.from ? votes : { from, skip: 0 }
}
