import type { Allowance } from '../../job/state.ts'
import type { Cursor, Pass, Progress } from '../contracts/governance.ts'
import type { Elements } from './client.ts'
import { readByCreation } from './pages-by-creation.ts'
import { MOST_SKIPPED, PAGE_SIZE, type Proposal } from './queries.ts'

/** Interval at which every proposal of a space is read: the maximum delay until an edit or a deletion is seen. */
const SWEEP_EVERY_MS = 24 * 3_600_000
/**
 * After a proposal's end, scores are computed and secret choices revealed. During this time it is read again in each
 * run.
 */
const SETTLING_SECONDS = 2 * 3600
/** A proposal that is not settled by then is read again only by sweeps. */
const LONGEST_SETTLING_SECONDS = 30 * 86_400
/** More than any space has at a time; some spaces have proposals that are never settled. */
const MOST_UNSETTLED = 200

const START: Cursor = { from: 0, skip: 0 }

/** Some pages of a space's proposals, with the resulting progress. */
export interface ProposalPages {
  readonly items: readonly Proposal[]
  readonly progress: Progress
  readonly isComplete: boolean
  /** Start slot of a sweep that is now complete. */
  readonly sweptAt: number | undefined
  /** Whether every proposal of the sweep was readable. */
  readonly isWhole: boolean
  readonly unreadable: readonly string[]
}

/** Reads new proposals and those that may have changed: unsettled ones in each run, and all of them once a day. */
export async function readProposals(options: {
  readonly fetchPage: (cursor: Cursor) => Promise<Elements<Proposal>>
  readonly progress: Progress
  /** In Unix milliseconds. */
  readonly slot: number
  readonly allowance: Pick<Allowance, 'take'>
}): Promise<ProposalPages> {
  const { fetchPage, progress, slot, allowance } = options
  const before = progress.pass ?? toPass(progress, slot)
  const start = progress.pass === null && before.isSweep ? START : progress.proposals
  const { items, cursor, isComplete, unreadable } = await readByCreation({
    ...{ fetchPage, start, allowance, latest: slot / 1000 },
    ...{ pageSize: PAGE_SIZE, mostSkipped: MOST_SKIPPED },
  })
  const open = oldest([before.open, ...items.filter((one) => isOpen(one, slot)).map(({ created }) => created)])
  const pass = { ...before, open, isWhole: before.isWhole && unreadable.from === undefined }
  const pages = { items, isComplete, isWhole: pass.isWhole, unreadable: unreadable.reasons }
  const next = {
    ...progress,
    votes: toVotesCursor(progress, items, slot),
    unsettled: toUnsettled(progress, items, slot),
  }
  if (!isComplete) return { ...pages, progress: { ...next, proposals: cursor, pass }, sweptAt: undefined }
  const swept = pass.isSweep ? pass.began : progress.swept
  const proposals = { from: Math.min(cursor.from, open ?? cursor.from), skip: 0 }
  return {
    ...pages,
    progress: { ...next, proposals, read: pass.began, swept, pass: null },
    sweptAt: pass.isSweep ? pass.began : undefined,
  }
}

function toPass({ swept }: Progress, slot: number): Pass {
  return { began: slot, isSweep: slot - swept >= SWEEP_EVERY_MS, open: null, isWhole: true }
}

const oldest = (times: readonly (number | null)[]): number | null => {
  const present = times.filter((time) => time !== null)
  return present.length === 0 ? null : Math.min(...present)
}

/**
 * Returns whether the vote ended long enough before `at` (Unix milliseconds) for a source that settles without delay.
 */
const isOver = ({ end }: Proposal, at: number, seconds = SETTLING_SECONDS) =>
  end === null || end === undefined || (end + seconds) * 1000 <= at

const isPending = ({ scores_state }: Proposal) => scores_state === 'pending'

/** Returns whether a proposal is read again in each run. */
const isOpen = (one: Proposal, slot: number) =>
  !isOver(one, slot) || (isPending(one) && !isOver(one, slot, LONGEST_SETTLING_SECONDS))

/** Returns whether a proposal is final according to the source. */
const isSettled = (one: Proposal, slot: number) => isOver(one, slot) && !isPending(one)

function toUnsettled({ unsettled }: Progress, items: readonly Proposal[], slot: number): string[] {
  const remaining = new Set(unsettled)
  for (const one of items) {
    if (isSettled(one, slot)) remaining.delete(one.id)
    else if (isOver(one, slot)) remaining.add(one.id)
  }
  return [...remaining].slice(-MOST_UNSETTLED)
}

/**
 * Votes on proposals settled since the last reading are read again from the start of the vote: secret choices and the
 * final voting power are known now.
 */
function toVotesCursor({ votes, read, unsettled }: Progress, items: readonly Proposal[], slot: number): Cursor {
  const unsettledIds = new Set(unsettled)
  const settled = items.filter((one) => isSettled(one, slot) && (unsettledIds.has(one.id) || !isOver(one, read)))
  const from = oldest(settled.map(({ start, created }) => start ?? created))
  return from === null || from >= votes.from ? votes : { from, skip: 0 }
}

/**
 * Updates the progress if votes on settled proposals still have secret choices: these proposals and their votes are
 * read again.
 * @param secret ids of proposals with such votes.
 */
export function withSecret(
  progress: Progress,
  items: readonly Proposal[],
  secret: ReadonlySet<string>,
  slot: number,
): Progress {
  const late = items.filter(
    (one) => secret.has(one.id) && isSettled(one, slot) && !isOver(one, slot, LONGEST_SETTLING_SECONDS),
  )
  if (late.length === 0) return progress
  const { unsettled, proposals, pass } = progress
  const open = oldest([pass?.open ?? null, ...late.map(({ created }) => created)])
  const ids = [...new Set([...unsettled, ...late.map(({ id }) => id)])].slice(-MOST_UNSETTLED)
  if (pass !== null) return { ...progress, unsettled: ids, pass: { ...pass, open } }
  return { ...progress, unsettled: ids, proposals: { from: Math.min(proposals.from, open ?? proposals.from), skip: 0 } }
}
