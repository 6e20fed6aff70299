/** The way from a page to where the service begins, by the page's path: `./` beside it, or `../` for each folder. */
export function toRoot(path: string): string {
  const depth = path.split('/').length - 2
  return depth === 0 ? './' : '../'.repeat(depth)
}

/**
 * HTML whose links within the service are relative to the path of its page, so that it works behind a proxy that serves
 * it under a path of its own, without being told that path.
 */
export const withRelativeLinks = (html: string, path: string): string =>
  html.replaceAll(/<[^<>]+>/g, (tag) =>
    tag.replaceAll(/( (?:href|src|action|data-path)=")\/(?!\/)/g, `$1${toRoot(path)}`),
  )

/** Markdown whose links within the service begin with its public address: a copy of it has no other. */
export const withWholeLinks = (markdown: string, base: string): string => markdown.replaceAll('](/', `](${base}/`)
