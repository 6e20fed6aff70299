/** The relative path from a page to the service's root: `./`, or `../` for each folder. */
export function toRoot(path: string): string {
  const depth = path.split('/').length - 2
  return depth === 0 ? './' : '../'.repeat(depth)
}

/**
 * Makes links within the service relative to the page's path, so that the page works behind a proxy with any path
 * prefix, without configuration.
 */
export const withRelativeLinks = (html: string, path: string): string =>
  html.replaceAll(/<[^<>]+>/g, (tag) =>
    tag.replaceAll(/( (?:href|src|action|data-path)=")\/(?!\/)/g, `$1${toRoot(path)}`),
  )

/** Makes links within the service absolute: a copy of the Markdown has no other base. */
export const withAbsoluteLinks = (markdown: string, base: string): string => markdown.replaceAll('](/', `](${base}/`)
