/** Who asks, and for what: those who wait take turns by client, and each client's requests by route. */
export interface Asker {
  readonly client: string
  readonly route: string
}

/** Who wait, each in the line of its client and route. */
export interface Lines<T> {
  readonly size: number
  add(asker: Asker, item: T): void
  remove(asker: Asker, item: T): void
  /** Takes out whose turn it is among the clients who may; undefined when none of them waits. */
  take(may: (client: string) => boolean): T | undefined
  /** How many of a client wait. */
  lengthOf(client: string): number
  /** About how many have their turn before somebody who comes now: of all, and of its own client. */
  ahead(asker: Asker): { readonly ofOwn: number; readonly ofAll: number }
  /**
   * Takes out who came last to the longest line, in favour of an asker whose own line is shorter; undefined where it
   * is not, so that the asker has to go.
   */
  giveWay(asker: Asker): T | undefined
}

type Routes<T> = Map<string, T[]>

const count = <T>(routes: Routes<T> | undefined): number =>
  routes === undefined ? 0 : [...routes.values()].reduce((sum, line) => sum + line.length, 0)

/** How many of these lines come before the next of a line that has so many: of each as many, and perhaps one more. */
const countBefore = (own: number, lines: readonly number[]): number =>
  lines.reduce((before, length) => before + Math.min(length, own + 1), 0)

type Length = readonly [name: string, length: number]

const toLongest = (lengths: readonly Length[]): Length | undefined =>
  lengths.toSorted(([, one], [, other]) => other - one)[0]

/** Lines that take turns: client after client, and of each client route after route. */
export function createLines<T>(): Lines<T> {
  // A map keeps the order in which its keys were set: whose turn was last is set anew, behind all others.
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
