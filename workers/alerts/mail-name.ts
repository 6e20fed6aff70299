import { isIP } from 'node:net'
import { hostname } from 'node:os'

/** A name that a mail server can look up: with a dot, and not an address. */
const isFull = (name: string) => name.includes('.') && !name.endsWith('.local') && isIP(name) === 0

/**
 * The name of this host for EHLO (RFC 5321, section 4.1.1.1): the setting, the name in PUBLIC_URL, that of the machine,
 * or the domain of the sender. Relays refuse names without a dot, such as those of containers, and addresses.
 */
export function toMailName(
  setting: string | undefined,
  publicUrl: string,
  from: string,
  machine: string = hostname(),
): string {
  const names = [new URL(publicUrl).hostname, machine, from.slice(from.lastIndexOf('@') + 1)]
  return setting ?? names.find(isFull) ?? 'localhost'
}
