/** The slot whose job kills its process, like an out-of-memory kill. The clock of the workers shows its start. */
export const POISON_SLOT = Date.parse('2024-05-06T07:00:00Z')

/**
 * The slot of a job that reports its start and runs until its parent continues it. The slot has begun and is not over.
 */
export const LONG_SLOT = Date.parse('2024-05-06T06:30:00Z')

/** The slot of a job without work. The slot has begun and is not over. */
export const SECOND_SLOT = Date.parse('2024-05-06T06:45:00Z')
