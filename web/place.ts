import { computed, signal } from '@preact/signals'

/** Where the page is served: everything is beside it, whatever path a proxy puts before. */
export const BASE = new URL(document.baseURI)
// The element's own address is relative to the first page's and must not move with the next ones.
for (const element of document.querySelectorAll('base')) element.href = BASE.href

const href = signal(location.href)
let isReturn = false
addEventListener('popstate', () => {
  isReturn = true
  href.value = location.href
})

/** Whether the reader came by the browser's own buttons, which bring back the place on the page as well. */
export const isReturning = () => isReturn

const toPath = (address: string) => {
  const { pathname } = new URL(address)
  return pathname.startsWith(BASE.pathname) ? pathname.slice(BASE.pathname.length) : pathname
}

/** The path of the page shown, from where it is served, without a slash before: `tokens`. */
export const path = computed(() => toPath(href.value))

/** The page's query: filters, ranges, columns. */
export const query = computed(() => new URL(href.value).searchParams)

/** An address beside the page: `data/tokens` as an absolute URL. */
export const toAbsolute = (relative: string) => new URL(relative, BASE).href

/** Goes to an address beside the page. The reader's place is kept when only the query changes. */
export function go(to: string, options: { replaces?: boolean } = {}): void {
  const before = path.peek()
  isReturn = false
  if (options.replaces) history.replaceState(null, '', toAbsolute(to))
  else history.pushState(null, '', toAbsolute(to))
  href.value = location.href
  if (path.peek() !== before) scrollTo(0, 0)
}

/** The same page with other values in its query; an empty one goes. */
export function withQuery(changes: Readonly<Record<string, string | undefined>>): string {
  const next = new URLSearchParams(query.value)
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined || value === '') next.delete(name)
    else next.set(name, value)
  }
  const text = next.toString()
  return text === '' ? path.value || './' : `${path.value}?${text}`
}

/** Links to the page's own addresses change what is shown; all others are the browser's. */
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
