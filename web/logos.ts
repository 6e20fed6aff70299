/** The version of the logos, which is in their URLs; undefined if the service has none. */
export const logos = document.querySelector<HTMLMetaElement>('meta[name="logos"]')?.content
