import { isDeepStrictEqual } from 'node:util'
import { toReason } from '../../shared/errors.ts'
import { FAILING_PROVIDERS, readFailingText, toFailingText } from '../../shared/store/failing-providers.ts'
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
): Promise<void> {
  const before = readFailingText(await state.get(FAILING_PROVIDERS))
  const at = new Date(slot).toISOString()
  const failing = Object.fromEntries(
    failures.map(({ provider, reason }) => [
      provider,
      { since: before[provider]?.since ?? at, reason: toReason(reason) },
    ]),
  )
  if (isDeepStrictEqual(failing, before)) return
  state.set(FAILING_PROVIDERS, toFailingText(failing))
  await state.store()
}
