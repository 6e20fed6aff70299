/**
 * Whether all numbers are simulated. The service says so in the document itself: it is known before any number is, and stays
 * known while the service is away.
 */
export const isDemo = document.querySelector<HTMLMetaElement>('meta[name="mode"]')?.content !== 'live'
