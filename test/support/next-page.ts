/** The query that a `Link` header names as that of the next page, with its question mark; undefined on the last page. */
export const toNext = (link: string | null | undefined): string | undefined =>
  /<(\?[^>]*)>; rel="next"/.exec(link ?? '')?.[1]
