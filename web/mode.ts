/**
 * Whether all numbers are simulated. The document itself contains the mode, so that it is known before any number and
 * while the service is unavailable.
 */
export const isDemo = document.querySelector<HTMLMetaElement>('meta[name="mode"]')?.content !== 'live'
