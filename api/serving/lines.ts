/** Fair-queue key: one queue per client and route. Clients take turns, and so do the routes of each client. */
export interface Asker {
  readonly client: string
  readonly route: string
}

/** A fair queue: waiting items in one line per client and route. */
export interface Lines<T> {
  readonly size: number
  add(asker: Asker, item: T): void
  remove(asker: Asker, item: T): void
  /** Removes and returns the next item of a client that `may` admits; undefined if there is none. */
  take(may: (client: string) => boolean): T | undefined
  /** Number of a client's waiting items. */
  lengthOf(client: string): number
  /** Estimated number of items that would be served before a new one: of its own client, and of all clients. */
  ahead(asker: Asker): { readonly ofOwn: number; readonly ofAll: number }
  /**
   * Removes and returns the newest item of the longest line, in favour of a client key with a shorter line. Returns
   * undefined if its line is not shorter; the new item must then be rejected.
   */
  giveWay(asker: Asker): T | undefined
}

type Routes<T> = Map<string, T[]>

const count = <T>(routes: Routes<T> | undefined): number =>
  routes === undefined ? 0 : [...routes.values()].reduce((sum, line) => sum + line.length, 0)

/** Number of items served before the next item of a line with `own` items: at most `own + 1` of each other line. */
const countBefore = (own: number, lines: readonly number[]): number =>
  lines.reduce((before, length) => before + Math.min(length, own + 1), 0)

type Length = readonly [name: string, length: number]

const toLongest = (lengths: readonly Length[]): Length | undefined =>
  lengths.toSorted(([, one], [, other]) => other - one)[0]

/** Creates a fair queue: round-robin over clients, and over the routes of each client. */
export function createLines<T>(): Lines<T> {
  // A map keeps insertion order. After its turn a key is deleted and inserted again, behind all others.
  const clients = new Map<string, Routes<T>>()
  let size = 0

  const lengthsOf = (client: string): Length[] =>
    [...(clients.get(client) ?? [])].map(([route, line]) => [route, line.length])
  const drop = ({ client, route }: Asker) => {
    const routes = clients.get(client)
    if (routes?.get(route)?.length === 0) routes.delete(route)
    if (routes?.size === 0) clients.delete(client)
  }
  const takeLast = (asker: Asker): T | undefined => {
    const item = clients.get(asker.client)?.get(asker.route)?.pop()
    if (item !== undefined) size -= 1
    drop(asker)
    return item
  }
  return {
    get size() {
      return size
    },
    add: ({ client, route }, item) => {
      const routes: Routes<T> = clients.get(client) ?? new Map()
      clients.set(client, routes)
      const line = routes.get(route) ?? []
      routes.set(route, line)
      line.push(item)
      size += 1
    },
    remove: (asker, item) => {
      const line = clients.get(asker.client)?.get(asker.route)
      const at = line?.indexOf(item) ?? -1
      if (line === undefined || at === -1) return
      line.splice(at, 1)
      size -= 1
      drop(asker)
    },
    take: (may) => {
      for (const [client, routes] of clients) {
        if (!may(client)) continue
        for (const [route, line] of routes) {
          const item = line.shift()
          size -= 1
          routes.delete(route)
          if (line.length > 0) routes.set(route, line)
          clients.delete(client)
          if (routes.size > 0) clients.set(client, routes)
          return item
        }
      }
      return undefined
    },
    lengthOf: (client) => count(clients.get(client)),
    ahead: ({ client, route }) => {
      const own = lengthsOf(client)
      const ofRoute = clients.get(client)?.get(route)?.length ?? 0
      const inClient = countBefore(
        ofRoute,
        own.map(([, length]) => length),
      )
      const others = [...clients].flatMap(([name, routes]) => (name === client ? [] : [count(routes)]))
      return { ofOwn: inClient, ofAll: inClient + countBefore(inClient, others) }
    },
    giveWay: ({ client, route }) => {
      const totals = [...clients].map(([name, routes]): Length => [name, count(routes)])
      const [longest, length] = toLongest(totals) ?? [client, 0]
      const isOther = longest !== client && length > count(clients.get(client)) + 1
      const from = isOther ? longest : client
      const [busiest, inRoute] = toLongest(lengthsOf(from)) ?? [route, 0]
      const ofRoute = clients.get(client)?.get(route)?.length ?? 0
      if (!isOther && (busiest === route || inRoute <= ofRoute + 1)) return undefined
      return takeLast({ client: from, route: busiest })
    },
  }
}
