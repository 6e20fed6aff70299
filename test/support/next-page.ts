/** The query of the next page from a `Link` header, with its question mark; undefined on the last page. */
export const toNext = (link: string | null | undefined): string | undefined =>
  /<(\?[^>]*)>; rel="next"/.exec(link ?? '')?.[1]
