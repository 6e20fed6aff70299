/** Why a bucket is pending that need not be stored yet: for no other reason is nothing missing. */
export const NOT_DUE = 'not due yet'

/** What is due and not collected is a gap, also where somebody is going to collect it. */
export const isGap = ({ state, reason }: { readonly state: string; readonly reason: string | null }): boolean =>
  state !== 'covered' && !(state === 'pending' && reason === NOT_DUE)
