import type { IncomingMessage } from 'node:http'
import { BlockList, isIP } from 'node:net'

/**
 * Returns the client key of a request for limits and queues: its address. For IPv6 it is the /64 network, because each
 * customer has at least one. Empty if the connection has ended.
 */
export type ToClient = (request: IncomingMessage) => string

const familyOf = (address: string) => (isIP(address) === 6 ? 'ipv6' : 'ipv4')

/** Dual-stack sockets write an IPv4 address as `::ffff:192.0.2.1`. */
const toPlain = (address: string) => address.replace(/^::ffff:(?=\d+\.)/i, '')

/** Returns whether an address is one of these addresses, or in one of these networks, such as `10.0.0.0/8`. */
export function createIsTrusted(listed: readonly string[]): (address: string) => boolean {
  const networks = new BlockList()
  for (const one of listed) {
    const [address = '', bits] = one.split('/')
    if (bits === undefined) networks.addAddress(address, familyOf(address))
    else networks.addSubnet(address, Number(bits), familyOf(address))
  }
  return (address) => {
    const plain = toPlain(address)
    return isIP(plain) !== 0 && networks.check(plain, familyOf(plain))
  }
}

/** More than any chain of proxies has. Further elements are not read. */
const MAX_HOPS = 16
/** Longer than an address, its port and the other parameters of an element. */
const MAX_ELEMENT_LENGTH = 500

const PORT = String.raw`(?::(?:\d{1,5}|_[\w.-]+))?`
const IPV4 = new RegExp(String.raw`^(\d{1,3}(?:\.\d{1,3}){3})${PORT}$`)
const IPV6 = new RegExp(String.raw`^\[([\da-f:.]+)(?:%[\w.-]+)?\]${PORT}$`, 'i')

/** Parses an address with or without a port (RFC 7239, section 6; proxies use the same form in `X-Forwarded-For`). */
function parseNode(text: string): string | undefined {
  const address = IPV4.exec(text)?.[1] ?? IPV6.exec(text)?.[1] ?? text.split('%', 1)[0] ?? ''
  return isIP(address) === 0 ? undefined : toPlain(address)
}

/** The parameter `for` of an element of `Forwarded` (RFC 7239, section 4). */
const FOR = /(?:^|;)\s*for\s*=\s*(?:"([^"]*)"|([^\s;"]*))\s*(?:;|$)/i

/** The proxy headers, and how to extract an address from one of their elements. */
const FORWARDED_HEADERS = [
  ['x-forwarded-for', (element: string) => element],
  ['forwarded', (element: string) => FOR.exec(element)?.slice(1).find(Boolean) ?? ''],
] as const

/** The last address of a header that a trusted proxy wrote; the peer's if there is none. */
function readForwarded(
  peer: string,
  header: string,
  toText: (element: string) => string,
  isTrusted: (address: string) => boolean,
): string {
  let address = peer
  let end = header.length
  for (let hops = 0; hops < MAX_HOPS && end >= 0 && isTrusted(address); hops += 1) {
    const comma = end === 0 ? -1 : header.lastIndexOf(',', end - 1)
    if (end - comma > MAX_ELEMENT_LENGTH) break
    const before = parseNode(toText(header.slice(comma + 1, end).trim()))
    if (before === undefined) break
    address = before
    end = comma
  }
  return address
}

/**
 * Finds the client behind proxies. Each proxy appends the address of its peer to `X-Forwarded-For` or `Forwarded`, so
 * the header is read from its end while the proxy that wrote the element is trusted: the client may have written the
 * rest. If a request has both headers and they differ, the client may have written one of them, and neither counts.
 */
export function createToClient(trusted: readonly string[]): ToClient {
  const isTrusted = createIsTrusted(trusted)
  return ({ socket, headers }) => {
    const peer = toPlain(socket.remoteAddress ?? '')
    if (trusted.length === 0 || !isTrusted(peer)) return toNetwork(peer)
    const found = FORWARDED_HEADERS.flatMap(([name, toText]) => {
      const header = headers[name]
      return header === undefined ? [] : [readForwarded(peer, String(header), toText, isTrusted)]
    })
    const [client = peer, second = client] = found
    return toNetwork(client === second ? client : peer)
  }
}

/** Returns an IPv4 address unchanged, and the network of an IPv6 address. */
export function toNetwork(text: string): string {
  const address = toPlain(text)
  if (isIP(address) !== 6) return address
  const [front = '', back] = address.split('::')
  const groups = front === '' ? [] : front.split(':')
  const missing = back === undefined ? 0 : 8 - groups.length - (back === '' ? 0 : back.split(':').length)
  const all = [...groups, ...Array<string>(missing).fill('0'), ...(back ? back.split(':') : [])]
  return `${all
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')}::/64`
}
