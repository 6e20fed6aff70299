/**
 * The two lanes of a dataset that has history, each a queue with places of its own at the workers: `live` takes slots, `history` takes
 * ranges (back-fills, repairs, what was missed, computations of days again). So history never delays the newest data.
 */
export const LANES = ['live', 'history'] as const
export type Lane = (typeof LANES)[number]
