import { isDeepStrictEqual } from 'node:util'
import { FAILING_PROVIDERS, readFailingText, toFailingText } from '../../shared/store/failing-providers.ts'
import type { openState } from '../job/state.ts'

/**
 * Stores for `/data/status` which providers of a job failed in a slot, and since which slot each has failed: while
 * another provider answers, the data does not show it. Written only when it changes.
 */
export async function rememberFailing(
  state: ReturnType<typeof openState>,
  failed: readonly string[],
  slot: number,
): Promise<void> {
  const before = readFailingText(await state.get(FAILING_PROVIDERS))
  const at = new Date(slot).toISOString()
  const failing = Object.fromEntries(failed.map((provider) => [provider, before[provider] ?? at]))
  if (isDeepStrictEqual(failing, before)) return
  state.set(FAILING_PROVIDERS, toFailingText(failing))
  await state.store()
}
