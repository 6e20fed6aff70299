import { isDeepStrictEqual } from 'node:util'
import { toReason } from '../../shared/errors.ts'
import type { SlotPiece } from '../../shared/queue/queues.ts'
import { readFailingText, toFailingName, toFailingText } from '../../shared/store/failing-providers.ts'
import type { openState } from '../job/state.ts'
import type { ProviderFailure } from './collect.ts'

/**
 * Stores for `/data/status` which providers of a job failed in a slot, since which slot each has failed, and why: while
 * another provider answers, the data does not show it. Written only when it changes.
 */
export async function rememberFailing(
  state: ReturnType<typeof openState>,
  failures: readonly ProviderFailure[],
  slot: number,
  piece?: SlotPiece,
): Promise<void> {
  const name = toFailingName(piece?.index)
  const before = readFailingText(await state.get(name))
  const at = new Date(slot).toISOString()
  const failing = Object.fromEntries(
    failures.map(({ provider, reason }) => [
      provider,
      { since: before[provider]?.since ?? at, reason: toReason(reason) },
    ]),
  )
  if (isDeepStrictEqual(failing, before)) return
  state.set(name, toFailingText(failing))
  await state.store()
}
