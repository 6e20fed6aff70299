import type { DatasetFacts } from '../../shared/datasets/list.ts'
import { type Cadence, INTERVAL_SECONDS } from '../../shared/intervals.ts'
import { STALE_AFTER_CADENCES } from '../../shared/store/freshness.ts'

/** A tenth of the cadence, yet never so long that a correction of daily data stays unseen for hours. */
const MAX_AGE_SECONDS: Readonly<Record<Cadence, number>> = { '5m': 30, '1h': 300, '1d': 900 }

/** How long answers without collected data hold: they change with a release only. */
const FIXED_MAX_AGE_SECONDS = 3600

/**
 * `Cache-Control` true to how often the data changes: the most frequent dataset decides, and `seconds`, how long the
 * answer holds at all, bounds it. While a cache asks again it may serve what it has for as long once more.
 */
export function toCacheControl(datasets: readonly DatasetFacts[], seconds = Number.POSITIVE_INFINITY): string {
  const ages = datasets.map((dataset) => MAX_AGE_SECONDS[dataset.cadence])
  const maxAge = Math.max(1, Math.floor(Math.min(FIXED_MAX_AGE_SECONDS, seconds, ...ages)))
  return `public, max-age=${maxAge}, stale-while-revalidate=${2 * maxAge}`
}

/** From when on data of a time counts as stale, in Unix milliseconds. */
export function toStaleAt(asOf: number, dataset: DatasetFacts): number {
  return asOf + STALE_AFTER_CADENCES * INTERVAL_SECONDS[dataset.cadence] * 1000
}
