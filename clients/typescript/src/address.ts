type Value = string | number | boolean | null | undefined

/** What an operation is asked with. */
export type Values = Readonly<Record<string, Value | readonly Value[]>>

/** Where the service is; its paths are beside this, whatever path a proxy puts before them. */
export function toBase(url: string | URL): URL {
  const base = new URL(url)
  if (!base.pathname.endsWith('/')) base.pathname += '/'
  base.search = ''
  base.hash = ''
  return base
}

/**
 * The address of a path with its values. Those that the path names go into it, the others into the query; lists are repeated,
 * and what is undefined or null is left out. An empty list is asked with nothing in it, which the service refuses: left out,
 * no ids would select everything.
 */
export function toUrl(base: URL, path: string, values: Values = {}): string {
  const search = new URLSearchParams()
  let filled = path
  for (const [name, value] of Object.entries(values)) {
    for (const one of Array.isArray(value) && value.length === 0 ? [''] : [value].flat()) {
      if (one === undefined || one === null) continue
      const before = filled
      filled = filled.replace(`{${name}}`, encodeURIComponent(String(one)))
      if (filled === before) search.append(name, String(one))
    }
  }
  const url = new URL(filled.slice(1), base)
  url.search = search.toString()
  return url.href
}
