import type { Allowance } from '../../job/allowance.ts'
import type { Cursor, Pass, Progress } from '../contracts/governance.ts'
import type { Elements } from './client.ts'
import { readByCreation } from './pages-by-creation.ts'
import { MOST_SKIPPED, PAGE_SIZE, type Proposal } from './queries.ts'

/** Every proposal of a space is read this often: an edit or a deletion is seen this late at the latest. */
const SWEEP_EVERY_MS = 24 * 3_600_000
/** After its end a proposal's scores are computed, and secret choices revealed; for this long it is read again each time. */
const SETTLING_SECONDS = 2 * 3600
/** A proposal that the source has not settled by then is read again by each sweep only. */
const LONGEST_SETTLING_SECONDS = 30 * 86_400
/** More than any space has at a time; some spaces hold proposals that are never settled. */
const MOST_UNSETTLED = 200

const START: Cursor = { from: 0, skip: 0 }

/** A piece of a space's proposals, and what follows from it for what is read next. */
export interface ProposalPages {
  readonly items: readonly Proposal[]
  readonly progress: Progress
  readonly isComplete: boolean
  /** The slot in which a sweep began that is complete now. */
  readonly sweptAt: number | undefined
  /** Whether the sweep could read every proposal. */
  readonly isWhole: boolean
  readonly unreadable: readonly string[]
}

/** Reads new proposals and those that may have changed: unsettled ones each time, and all of them once a day. */
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
  const known = times.filter((time) => time !== null)
  return known.length === 0 ? null : Math.min(...known)
}

/** Whether the vote ended long enough before `at` (Unix milliseconds) for a source that settles at once. */
const isOver = ({ end }: Proposal, at: number, seconds = SETTLING_SECONDS) =>
  end === null || end === undefined || (end + seconds) * 1000 <= at

const isPending = ({ scores_state }: Proposal) => scores_state === 'pending'

/** Whether a proposal is read again each time. */
const isOpen = (one: Proposal, slot: number) =>
  !isOver(one, slot) || (isPending(one) && !isOver(one, slot, LONGEST_SETTLING_SECONDS))

/** Whether nothing about a proposal changes any more, as far as the source says. */
const isSettled = (one: Proposal, slot: number) => isOver(one, slot) && !isPending(one)

function toUnsettled({ unsettled }: Progress, items: readonly Proposal[], slot: number): string[] {
  const left = new Set(unsettled)
  for (const one of items) {
    if (isSettled(one, slot)) left.delete(one.id)
    else if (isOver(one, slot)) left.add(one.id)
  }
  return [...left].slice(-MOST_UNSETTLED)
}

/**
 * Votes on what was settled since the last reading are read once more, from the beginning of the vote: choices that were
 * secret are known now, and so is the power that counted in the end.
 */
function toVotesCursor({ votes, read, unsettled }: Progress, items: readonly Proposal[], slot: number): Cursor {
  const known = new Set(unsettled)
  const settled = items.filter((one) => isSettled(one, slot) && (known.has(one.id) || !isOver(one, read)))
  const from = oldest(settled.map(({ start, created }) => start ?? created))
  return from === null || from >= votes.from ? votes : { from, skip: 0 }
}

/**
 * The progress when votes on settled proposals still have secret choices: these proposals and their votes are read again.
 * @param secret ids of proposals that such votes are on.
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
