import { computed, signal } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import { type Interval, type Range, toStart } from './ranges.ts'

/** Unix milliseconds, to half a minute: what says how long ago something was moves with it. It stands still while nobody looks. */
export const now = signal(Date.now())

function move(): void {
  if (document.visibilityState === 'visible') now.value = Date.now()
}
setInterval(move, 30_000)
document.addEventListener('visibilitychange', move)

/** Where a range begins by now. It moves on with its interval, so that a page that stays open looks back no further than it says. */
export const useStart = (range: Range, interval: Interval): string =>
  useMemo(() => computed(() => toStart(range, interval, now.value)), [range, interval]).value
