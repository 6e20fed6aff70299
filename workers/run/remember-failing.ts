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

/** What a run of a slot, or of a piece of it, says of its providers. */
export interface Told {
  readonly slot: number
  readonly piece: SlotPiece | undefined
  /** Whether everybody was asked for, not only those whom an earlier try or piece left. */
  readonly isWhole: boolean
  readonly failures: readonly ProviderFailure[]
  /** The providers that gave something. */
  readonly answered: readonly string[]
}

/** Stores what `toFailingTexts` says for `job`. */
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
 * Says for `/data/status` which providers of a job failed in a slot, since which slot each has failed, and why: while
 * another provider answers, the data does not show it. A run for those who are left says less of a provider: one that lacks
 * them does not fail, and one that was not asked may fail as before; but one that answers works again, and one that refuses
 * everybody fails. Nothing stays of pieces that slots no longer have.
 * @param texts what is remembered, by the index of the piece.
 * @returns what changes of that, by its name in the job's state.
 */
export function toFailingTexts(texts: ReadonlyMap<number, string>, told: Told): ReadonlyMap<string, string> {
  const { index, of } = told.piece ?? { index: 0, of: 1 }
  const text = texts.get(index)
  const stored = text === undefined ? {} : readFailingText(text)
  const before = stored ?? {}
  const failing = told.isWhole ? toFailing(before, told) : toFailingOfSome(before, told)
  const changed = new Map<string, string>()
  // Unequal to an unreadable text too, which is replaced.
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
