/** The slot that ends its process, as memory that runs out does. */
export const POISON_SLOT = Date.parse('2024-05-06T07:00:00Z')

/** The slot that takes until its parent lets it go on, and tells when it begins. */
export const LONG_SLOT = Date.parse('2024-05-06T08:00:00Z')
