/** Reason of a pending bucket that need not be stored yet. Every other missing bucket is a gap. */
export const NOT_DUE = 'not due yet'

/** A due bucket that is not collected is a gap, even if its collection is planned. */
export const isGap = ({ state, reason }: { readonly state: string; readonly reason: string | null }): boolean =>
  state !== 'covered' && !(state === 'pending' && reason === NOT_DUE)
