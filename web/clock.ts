import { computed, signal } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import { type Interval, type Range, toStart } from './ranges.ts'

/** Every vote ends before this: `endsBefore` selects the proposals of all DAOs. */
export const END_OF_TIME = '2100-01-01T00:00:00Z'

/** Unix milliseconds, updated every 30 seconds for relative times; not updated while the page is hidden. */
export const now = signal(Date.now())

function move(): void {
  if (document.visibilityState === 'visible') now.value = Date.now()
}
setInterval(move, 30_000)
document.addEventListener('visibilitychange', move)

/**
 * The current start of a range. The start advances by one interval at a time, so that a page that is open for a long
 * time does not show more than the range.
 */
export const useStart = (range: Range, interval: Interval): string =>
  useMemo(() => computed(() => toStart(range, interval, now.value)), [range, interval]).value
