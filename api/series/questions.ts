import { z } from 'zod'
import { HISTORY_START, type Interval } from '../../shared/intervals.ts'
import { oneOf } from '../parameters/kinds.ts'
import { Problem } from '../problem/problem.ts'

const MOST_POINTS = 10_000

/** How a series may be asked for beyond its range (docs/contract.md, section 8). */
export interface SeriesQuestion {
  readonly order?: 'asc' | 'desc' | undefined
  readonly interval?: Interval | undefined
  readonly points?: number | undefined
  readonly fill?: 'null' | undefined
}

/** The parameter `order`; each route has an order of its own. */
export const order = (usual: 'asc' | 'desc') =>
  oneOf(['asc', 'desc'], `Oldest first or newest first; \`${usual}\` when it is not given.`, 'desc').optional()

const fill = oneOf(
  ['null'],
  'A row for every bucket of the range that is due: where nothing was observed its values are null.',
  'null',
).optional()

const POINTS_RULE = `must be a whole number, at least 2 and at most ${MOST_POINTS}`
const points = z
  .int(POINTS_RULE)
  .min(2, POINTS_RULE)
  .max(MOST_POINTS, POINTS_RULE)
  .optional()
  .meta({
    description: `Instead of \`interval\`: the coarsest interval that still gives at least so many points, at most ${MOST_POINTS}, where the range has them; else the finest. \`X-Series-Interval\` says which.`,
    examples: [100],
  })

/** The parameters of series of these intervals, the finest first, which is what they have unless they are asked for another one. */
export const seriesParameters = (intervals: readonly [Interval, ...Interval[]], usual: 'asc' | 'desc') => ({
  interval: oneOf(intervals, `Length of a bucket; ${intervals[0]} when it is not given.`, '1d').optional(),
  points,
  order: order(usual),
  fill,
})

/** The same for series whose interval has to be chosen, by itself or by the number of points. */
export const chosenParameters = (intervals: readonly [Interval, ...Interval[]]) => ({
  interval: oneOf(intervals, 'Length of a bucket; required unless `points` is given.', '1d').optional(),
  points,
  order: order('asc'),
  fill,
})

/** @throws Problem `invalid_parameter` where both an interval and a number of points are asked for. */
export function checkInterval({ interval, points: asked }: SeriesQuestion): void {
  if (interval === undefined || asked === undefined) return
  const detail = 'points stands instead of interval: give one of them, for example points=100.'
  throw new Problem('invalid_parameter', detail, { param: 'points' })
}

/** @throws Problem `invalid_parameter` where buckets are asked for of a time of which nothing is collected. */
export function checkFill({ fill: asked, start }: SeriesQuestion & { readonly start: number }): void {
  if (asked === undefined || start >= Date.parse(HISTORY_START)) return
  throw new Problem('invalid_parameter', `With fill, start must not be before ${HISTORY_START}.`, { param: 'start' })
}

/** @throws Problem as `checkInterval`, and `missing_parameter` where neither is given. */
export function checkChosen(question: SeriesQuestion, intervals: readonly Interval[]): void {
  checkInterval(question)
  if (question.interval !== undefined || question.points !== undefined) return
  const detail = 'interval is required, or points instead of it.'
  throw new Problem('missing_parameter', detail, { param: 'interval', allowed: intervals })
}

/** Whether a series is asked for as it is without a question, in its usual order and interval. */
export const isPlain = (question: SeriesQuestion, usual: 'asc' | 'desc', finest: Interval): boolean =>
  (question.order ?? usual) === usual &&
  (question.interval ?? finest) === finest &&
  question.points === undefined &&
  question.fill === undefined
