import { setTimeout } from 'node:timers/promises'
import { HOUR_MS } from '../../shared/intervals.ts'

const CLOSE_MS = 60_000

/** Waits if the hour is about to end: a process uses the real clock, and does not collect a slot after its hour. */
export async function untilHourIsYoung(): Promise<void> {
  const remainingMs = HOUR_MS - (Date.now() % HOUR_MS)
  if (remainingMs < CLOSE_MS) await setTimeout(remainingMs)
}
