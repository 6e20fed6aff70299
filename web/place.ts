import { computed, signal } from '@preact/signals'

/** The base URL of the page; all paths are relative to it, with any path prefix of a proxy. */
export const BASE = new URL(document.baseURI)
// The element's own URL is relative to the first page and must not change on navigation.
for (const element of document.querySelectorAll('base')) element.href = BASE.href

const href = signal(location.href)
let isReturn = false
addEventListener('popstate', () => {
  isReturn = true
  href.value = location.href
})

/** Whether the last navigation used the browser's back or forward button, which also restores the scroll position. */
export const isReturning = () => isReturn

const toPath = (address: string) => {
  const { pathname } = new URL(address)
  return pathname.startsWith(BASE.pathname) ? pathname.slice(BASE.pathname.length) : pathname
}

/** The path of the shown page, relative to the base and without a leading slash: `tokens`. */
export const path = computed(() => toPath(href.value))

/** Whether this is a chart inside a page of another site. */
export const isEmbed = path.peek().startsWith('embed/')

/** The page's query: filters, ranges, columns. */
export const query = computed(() => new URL(href.value).searchParams)

/** Resolves a relative address: `data/tokens` as an absolute URL. */
export const toAbsolute = (relative: string) => new URL(relative, BASE).href

/** Navigates to a relative address. The scroll position is kept if only the query changes. */
export function go(to: string, options: { replaces?: boolean } = {}): void {
  const before = path.peek()
  isReturn = false
  if (options.replaces) history.replaceState(null, '', toAbsolute(to))
  else history.pushState(null, '', toAbsolute(to))
  href.value = location.href
  if (path.peek() !== before) scrollTo(0, 0)
}

/** The address of the same page with changed query values; empty values are removed. */
export function withQuery(changes: Readonly<Record<string, string | undefined>>): string {
  const next = new URLSearchParams(query.value)
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined || value === '') next.delete(name)
    else next.set(name, value)
  }
  const text = next.toString()
  return text === '' ? path.value || './' : `${path.value}?${text}`
}

/** Handles links to the page's own addresses; the browser handles all others. */
export function followLinks(isOwn: (path: string) => boolean): void {
  document.addEventListener('click', (event) => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return
    const link = event.target instanceof Element ? event.target.closest('a') : null
    if (link === null || link.target !== '' || link.hasAttribute('download')) return
    if (!link.href.startsWith(BASE.href) || !isOwn(toPath(link.href))) return
    event.preventDefault()
    go(link.href)
  })
}
