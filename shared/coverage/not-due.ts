/** Why a bucket is pending that need not be stored yet: for no other reason is nothing missing. The page compares it. */
export const NOT_DUE = 'not due yet'
