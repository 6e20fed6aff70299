import { DataError } from '../../shared/errors.ts'

const checks = new WeakMap<AbortSignal, () => void>()

/**
 * Returns a signal that is aborted with its parent, and when the clock `now` reaches `endsAt` (both in Unix milliseconds). Its
 * timer alone fires too late in a process that was frozen, which may read an answer first: `requireInTime` reads the clock.
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
 * Called before a provider is asked and when its answer was read.
 * @throws the signal's reason when it is aborted or its deadline has passed.
 */
export function requireInTime(signal: AbortSignal): void {
  checks.get(signal)?.()
  signal.throwIfAborted()
}
