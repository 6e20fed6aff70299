/**
 * The two queue classes of a dataset with history, with separate concurrency in the workers. `live` has slot jobs;
 * `history` has ranges (back-fills, repairs, missed data, recomputed days). So history never delays the newest data.
 */
export const QUEUE_CLASSES = ['live', 'history'] as const
export type QueueClass = (typeof QUEUE_CLASSES)[number]
