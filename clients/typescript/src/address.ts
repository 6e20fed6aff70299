type Value = string | number | boolean | null | undefined

/** Parameters of an operation. */
export type Values = Readonly<Record<string, Value | readonly Value[]>>

/** The base URL of the service; paths are relative to it, with any path prefix of a proxy. */
export function toBase(url: string | URL): URL {
  const base = new URL(url)
  if (!base.pathname.endsWith('/')) base.pathname += '/'
  base.search = ''
  base.hash = ''
  return base
}

/**
 * The URL of a path with its parameters. Path parameters are filled in, the others go into the query. Lists are
 * repeated; undefined and null are omitted. An empty list is sent as an empty value, which the service rejects: without
 * the parameter, no ids would select everything.
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
