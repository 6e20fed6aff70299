import type { IncomingMessage } from 'node:http'
import { BlockList, isIP } from 'node:net'

/**
 * Who asks, as limits, places and turns count: the address that a request comes from, of IPv6 a network of 64 bits, which
 * is what one customer has at least. Empty once its connection is gone.
 */
export type ToClient = (request: IncomingMessage) => string

const familyOf = (address: string) => (isIP(address) === 6 ? 'ipv6' : 'ipv4')

/** An IPv4 address as sockets for both families write it is that address. */
const toPlain = (address: string) => address.trim().replace(/^::ffff:(?=\d+\.)/i, '')

/** Addresses, or networks such as `10.0.0.0/8`, as a list that can be asked. */
function toNetworks(listed: readonly string[]): BlockList {
  const networks = new BlockList()
  for (const one of listed) {
    const [address = '', bits] = one.split('/')
    if (bits === undefined) networks.addAddress(address, familyOf(address))
    else networks.addSubnet(address, Number(bits), familyOf(address))
  }
  return networks
}

/**
 * Finds who asks behind proxies. Each proxy adds to `X-Forwarded-For` whom it was asked by, so the header is read from its
 * end, for as long as the one that added to it is trusted. What stands further in front anybody could have written.
 */
export function createToClient(trusted: readonly string[]): ToClient {
  const direct = ({ socket }: IncomingMessage) => toPlain(socket.remoteAddress ?? '')
  if (trusted.length === 0) return (request) => toNetwork(direct(request))
  const networks = toNetworks(trusted)
  const isTrusted = (address: string) => isIP(address) !== 0 && networks.check(address, familyOf(address))
  return (request) => {
    let address = direct(request)
    if (!isTrusted(address)) return toNetwork(address)
    // Hop by hop from its end: whoever asks may have put a quarter of a megabyte in front.
    const header = String(request.headers['x-forwarded-for'] ?? '')
    for (let end = header.length; end >= 0 && isTrusted(address); ) {
      const comma = end === 0 ? -1 : header.lastIndexOf(',', end - 1)
      const before = toPlain(header.slice(comma + 1, end))
      if (isIP(before) === 0) break
      address = before
      end = comma
    }
    return toNetwork(address)
  }
}

/** An IPv4 address as it is, of an IPv6 one its network. */
function toNetwork(address: string): string {
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
