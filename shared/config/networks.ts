import { isIP } from 'node:net'
import { z } from 'zod'

/** Whether a text is an address, or a network such as `10.0.0.0/8`. */
function isNetwork(text: string): boolean {
  const [address = '', bits, ...more] = text.split('/')
  const most = isIP(address) === 6 ? 128 : 32
  const isSize = bits === undefined || (/^\d+$/.test(bits) && Number(bits) <= most)
  return isIP(address) !== 0 && more.length === 0 && isSize
}

/** A comma-separated list of addresses and networks. */
export const networks = z
  .string()
  .transform((list) => list.split(',').map((one) => one.trim()))
  .refine((list) => list.every(isNetwork), 'must be addresses or networks, such as 10.0.0.0/8, separated by commas')

/** The host as written in a URL: an IPv6 address has brackets. */
export const toUrlHost = (host: string): string => (host.includes(':') && !host.startsWith('[') ? `[${host}]` : host)

/** The URL of a server by the host and port that it listens on. */
export const toHttpUrl = (host: string, port: number): string => `http://${toUrlHost(host)}:${port}`

/** A comma-separated list of host names, as written in URLs. */
export const hostnames = z
  .string()
  .transform((list) => list.split(',').map((one) => one.trim().toLowerCase()))
  .refine(
    (list) => list.every((one) => URL.canParse(`http://${one}`) && new URL(`http://${one}`).hostname === one),
    'must be host names without ports, such as data.example.org, separated by commas',
  )
