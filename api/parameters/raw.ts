import { Problem } from '../problem/problem.ts'

/** The values of each parameter as they came, in order, decoded. `bracketed` are those written as `name[]`. */
export interface RawParameters {
  readonly values: ReadonlyMap<string, readonly string[]>
  readonly bracketed: ReadonlySet<string>
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch (cause) {
    throw new Problem('invalid_parameter', 'The query has a malformed percent-encoding.', { cause })
  }
}

/** The parameters in the query of a request's URL. A malformed percent-encoding is `invalid_parameter`. */
export function readQuery(url: string): RawParameters {
  const mark = url.indexOf('?')
  const query = mark < 0 ? '' : url.slice(mark + 1)
  const values = new Map<string, string[]>()
  const bracketed = new Set<string>()
  for (const pair of query.split('&')) {
    if (pair === '') continue
    const equals = pair.indexOf('=')
    const written = decode(equals < 0 ? pair : pair.slice(0, equals))
    const name = written.endsWith('[]') ? written.slice(0, -2) : written
    if (name !== written) bracketed.add(name)
    const list = values.get(name)
    const value = equals < 0 ? '' : decode(pair.slice(equals + 1))
    if (list) list.push(value)
    else values.set(name, [value])
  }
  return { values, bracketed }
}
