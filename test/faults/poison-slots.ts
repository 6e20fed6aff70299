/** The slot whose job kills its process, like an out-of-memory kill. */
export const POISON_SLOT = Date.parse('2024-05-06T07:00:00Z')

/** The slot whose job runs until its parent continues it, and which reports its start. */
export const LONG_SLOT = Date.parse('2024-05-06T08:00:00Z')
