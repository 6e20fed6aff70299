import { DataError } from '../../shared/errors.ts'

const checks = new WeakMap<AbortSignal, () => void>()

/**
 * Returns a signal that is aborted with its parent, and when the clock `now` reaches `endsAt` (both in Unix
 * milliseconds). The timer alone is not enough: in a process that was frozen it fires late, possibly after a response
 * is read. `requireInTime` therefore reads the clock.
 */
export function withDeadline(
  parent: AbortSignal,
  { endsAt, now }: { readonly endsAt: number; readonly now: () => number },
): AbortSignal {
  const over = new AbortController()
  const check = () => {
    if (over.signal.aborted || now() < endsAt) return
    const reason = `no answer before the slot ended at ${new Date(endsAt).toISOString()}: a later one is of the next slot`
    over.abort(new DataError('provider_unavailable', reason))
  }
  const signal = AbortSignal.any([parent, over.signal])
  checks.set(signal, check)
  setTimeout(check, Math.max(0, endsAt - now())).unref()
  return signal
}

/**
 * Call before querying a provider and after reading the response.
 * @throws the signal's reason if it is aborted or its deadline has passed.
 */
export function requireInTime(signal: AbortSignal): void {
  checks.get(signal)?.()
  signal.throwIfAborted()
}
