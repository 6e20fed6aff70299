import { isDeepStrictEqual } from 'node:util'
import { isAboutProvider, toReason } from '../../shared/errors.ts'
import type { SlotPiece } from '../../shared/queue/queues.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import {
  type FailingProviders,
  readFailingText,
  readFailingTexts,
  toFailingName,
  toFailingText,
} from '../../shared/store/failing-providers.ts'
import { openState } from '../job/state.ts'
import type { ProviderFailure } from './collect.ts'

/** Provider results of one slot, or of one piece of a slot. */
export interface Told {
  readonly slot: number
  readonly piece: SlotPiece | undefined
  /** Whether all entities were requested, not only those left by an earlier attempt or piece. */
  readonly isWhole: boolean
  readonly failures: readonly ProviderFailure[]
  /** The providers that returned data. */
  readonly answered: readonly string[]
}

/** Stores the result of `toFailingTexts` for `job`. */
export async function rememberFailing(
  { db, now }: { readonly db: Database; readonly now: () => number },
  job: string,
  told: Told,
): Promise<void> {
  const state = openState(db, job, now)
  for (const [name, text] of toFailingTexts(await readFailingTexts(db, job), told)) state.set(name, text)
  await state.store()
}

/**
 * Tracks, for `/data/status`, the providers of a job that failed in a slot, with the start and the reason of the
 * failure. The data does not show such failures while another provider answers.
 * A run for the remaining entities has limited evidence. A provider that lacks those entities does not count as failed,
 * and a provider that was not queried keeps its state. A provider that answers has recovered, and one that refuses all
 * of them has failed. State of pieces that no longer exist is cleared.
 * @param texts the stored state, by the index of the piece.
 * @returns the changed values, by their name in the job's state.
 */
export function toFailingTexts(texts: ReadonlyMap<number, string>, told: Told): ReadonlyMap<string, string> {
  const { index, of } = told.piece ?? { index: 0, of: 1 }
  const text = texts.get(index)
  const stored = text === undefined ? {} : readFailingText(text)
  const before = stored ?? {}
  const failing = told.isWhole ? toFailing(before, told) : toFailingOfSome(before, told)
  const changed = new Map<string, string>()
  // An unreadable stored text also differs, and is replaced.
  if (!isDeepStrictEqual(failing, stored)) changed.set(toFailingName(index), toFailingText(failing))
  for (const [other, text] of texts) {
    if (other >= of && text !== NONE) changed.set(toFailingName(other), NONE)
  }
  return changed
}

const NONE = toFailingText({})

function toFailing(before: FailingProviders, { failures, slot }: Told): FailingProviders {
  const at = new Date(slot).toISOString()
  return Object.fromEntries(
    failures.map(({ provider, reason }) => [
      provider,
      { since: before[provider]?.since ?? at, reason: toReason(reason) },
    ]),
  )
}

function toFailingOfSome(before: FailingProviders, told: Told): FailingProviders {
  const failures = told.failures.filter(({ reason }) => isAboutProvider(reason))
  const still = Object.entries(before).filter(([provider]) => !told.answered.includes(provider))
  return { ...Object.fromEntries(still), ...toFailing(before, { ...told, failures }) }
}
