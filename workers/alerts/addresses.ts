import { BlockList, isIP } from 'node:net'

/** Addresses of this machine, of private networks and of protocols, by the registries of IANA (RFC 6890). */
const PRIVATE = [
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12', '192.0.0.0/24'],
  ...['192.0.2.0/24', '192.88.99.0/24', '192.168.0.0/16', '198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24'],
  ...['224.0.0.0/4', '240.0.0.0/4', '64:ff9b:1::/48', '100::/64', '2001::/23', '2001:db8::/32', '3fff::/20'],
  ...['5f00::/16', 'fc00::/7', 'fe80::/10', 'fec0::/10', 'ff00::/8'],
]

/**
 * IPv6 addresses that contain IPv4 addresses, with the positions of those in bytes: IPv4-compatible (RFC 4291) and with
 * it `::` and `::1`, IPv4-mapped, IPv4-translated (RFC 2765), NAT64 (RFC 6052), 6to4 (RFC 3056).
 */
const EMBEDDING: readonly (readonly [network: string, bits: number, at: number])[] = [
  ['::', 96, 12],
  ['::ffff:0:0', 96, 12],
  ['::ffff:0:0:0', 96, 12],
  ['64:ff9b::', 96, 12],
  ['2002::', 16, 2],
]

/** The bytes of an IPv6 address; `URL` writes it without a dotted end. */
function toBytes(address: string): Uint8Array {
  const { hostname } = new URL(`http://[${address.split('%', 1)[0]}]`)
  const [head = '', tail = ''] = hostname.slice(1, -1).split('::')
  const toGroups = (part: string) => (part === '' ? [] : part.split(':'))
  const [first, last] = [toGroups(head), toGroups(tail)]
  const zeros = Array.from({ length: 8 - first.length - last.length }, () => '0')
  return Buffer.from([...first, ...zeros, ...last].map((group) => group.padStart(4, '0')).join(''), 'hex')
}

const startsWith = (bytes: Uint8Array, network: Uint8Array, bits: number) =>
  network.subarray(0, bits / 8).every((byte, at) => bytes[at] === byte)

/** The IPv4 addresses that packets to an address may reach. */
function findEmbedded(address: string): readonly string[] {
  if (isIP(address) !== 6) return []
  const bytes = toBytes(address)
  const read = (at: number) => bytes.subarray(at, at + 4).join('.')
  // Teredo (RFC 4380): the server, and the inverted address of the client.
  if (startsWith(bytes, toBytes('2001::'), 32))
    return [
      read(4),
      bytes
        .subarray(12)
        .map((byte) => 255 - byte)
        .join('.'),
    ]
  const found = EMBEDDING.find(([network, bits]) => startsWith(bytes, toBytes(network), bits))
  return found === undefined ? [] : [read(found[2])]
}

function toBlockList(networks: readonly string[]): BlockList {
  const list = new BlockList()
  for (const network of networks) {
    const [address = '', bits] = network.split('/')
    const isV6 = isIP(address) === 6
    list.addSubnet(address, bits === undefined ? (isV6 ? 128 : 32) : Number(bits), isV6 ? 'ipv6' : 'ipv4')
  }
  return list
}

/**
 * Refuses private addresses, except those of the allowed networks. An IPv6 address with an IPv4 address in it is judged
 * by that: networks without IPv4 reach every IPv4 host by such an address.
 */
export function createAddressCheck(allowed: readonly string[]): (address: string) => boolean {
  const [refused, exempt] = [toBlockList(PRIVATE), toBlockList(allowed)]
  const familyOf = (address: string) => (isIP(address) === 6 ? 'ipv6' : 'ipv4')
  const isExempt = (address: string) => exempt.check(address, familyOf(address))
  return (address) => {
    if (isExempt(address)) return true
    const embedded = findEmbedded(address)
    if (embedded.length === 0) return !refused.check(address, familyOf(address))
    return embedded.every((one) => isExempt(one) || !refused.check(one, 'ipv4'))
  }
}
