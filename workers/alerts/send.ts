import type { LookupAddress } from 'node:dns'
import { lookup } from 'node:dns'
import { type ClientRequest, request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { BlockList, connect, isIP, type LookupFunction, type Socket } from 'node:net'
import { createTransport } from 'nodemailer'
import { z } from 'zod'
import { toReason } from '../../shared/errors.ts'
import { toJson } from '../../shared/json.ts'
import type { OutgoingMail, OutgoingRequest } from './channels.ts'

/** The answer of a receiver, or the reason why there is none. */
export interface Outcome {
  readonly isDelivered: boolean
  /** Of HTTP or of SMTP. */
  readonly status: number | null
  readonly reason: string
  /** The wait that the receiver asked for. */
  readonly retryAfterMs: number | undefined
  /** Whether a repetition is useless: the receiver is gone or rejects the mail, or its address is refused. */
  readonly isPermanent: boolean
  /** The beginning of the answer. */
  readonly body: string
}

/** Addresses of this machine, of private networks and of protocols, by the registries of IANA (RFC 6890). */
const PRIVATE = [
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12', '192.0.0.0/24'],
  ...['192.0.2.0/24', '192.168.0.0/16', '198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24', '224.0.0.0/4'],
  ...['240.0.0.0/4', '::/128', '::1/128', '64:ff9b::/96', '64:ff9b:1::/48', '100::/64', '2001::/23', '2001:db8::/32'],
  ...['2002::/16', 'fc00::/7', 'fe80::/10', 'ff00::/8'],
]

function toBlockList(networks: readonly string[]): BlockList {
  const list = new BlockList()
  for (const network of networks) {
    const [address = '', bits] = network.split('/')
    const isV6 = isIP(address) === 6
    list.addSubnet(address, bits === undefined ? (isV6 ? 128 : 32) : Number(bits), isV6 ? 'ipv6' : 'ipv4')
  }
  return list
}

/** `::ffff:10.0.0.1` is 10.0.0.1. */
const toPlain = (address: string) => /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1] ?? address

/** Refuses private addresses, except those of the allowed networks. */
export function createAddressCheck(allowed: readonly string[]): (address: string) => boolean {
  const [refused, exempt] = [toBlockList(PRIVATE), toBlockList(allowed)]
  return (address) => {
    const plain = toPlain(address)
    const family = isIP(plain) === 6 ? 'ipv6' : 'ipv4'
    return exempt.check(plain, family) || !refused.check(plain, family)
  }
}

class RefusedAddress extends Error {
  constructor(host: string, address: string) {
    super(`${host} is the private address ${address}: ALERTS_PRIVATE_NETWORKS allows networks`)
    this.name = 'RefusedAddress'
  }
}

const TIMEOUT_MS = 15_000
/** Mail servers delay their answers to find senders of spam. */
const MAIL_TIMEOUT_MS = 60_000
/** Only the beginning of an answer is read. */
const MOST_BODY = 4_096

export type Send = (outgoing: OutgoingRequest | OutgoingMail, signal: AbortSignal) => Promise<Outcome>

/**
 * Sends requests and e-mails to the targets of operators. The address is checked when the connection is made, so a name that
 * resolves to another address later is checked as well. Redirects are not followed. Proxies are not used: behind a
 * proxy the address of a target is unknown.
 */
export function createSend(
  allowedNetworks: readonly string[],
  timeoutMs: number = TIMEOUT_MS,
  mailTimeoutMs: number = MAIL_TIMEOUT_MS,
): Send {
  const isAllowed = createAddressCheck(allowedNetworks)
  const resolveAllowed: LookupFunction = (host, options, done) => {
    lookup(host, { ...options, all: true }, (error, addresses: LookupAddress[] = []) => {
      const refused = addresses.find(({ address }) => !isAllowed(address))
      const failure = error ?? (refused && new RefusedAddress(host, refused.address))
      const [first] = addresses
      if (failure || first === undefined) return done(failure ?? new Error(`${host} has no address`), '', 0)
      if (options.all) return done(null, addresses)
      done(null, first.address, first.family)
    })
  }
  return async (outgoing, signal) => {
    const url = new URL(outgoing.url)
    const host = url.hostname.replace(/^\[|\]$/g, '')
    // A literal address is not looked up.
    if (isIP(host) !== 0 && !isAllowed(host)) return toRefusal(new RefusedAddress(host, host))
    try {
      const until = (ms: number) => AbortSignal.any([signal, AbortSignal.timeout(ms)])
      if ('mail' in outgoing) return await sendMail(url, outgoing, resolveAllowed, until(mailTimeoutMs))
      return await post(url, outgoing, resolveAllowed, until(timeoutMs))
    } catch (error) {
      signal.throwIfAborted()
      return toRefusal(error, url.host)
    }
  }
}

const toRefusal = (error: unknown, host = ''): Outcome => ({
  ...{ isDelivered: false, status: null, retryAfterMs: undefined, body: '' },
  ...{ reason: toFailureText(error, host), isPermanent: error instanceof RefusedAddress },
})

/** Node's codes of rejected certificates: those of OpenSSL, and that of another host's name. */
const CERTIFICATE = /CERT|^UNABLE_TO_|^INVALID_(CA|PURPOSE)$|^HOSTNAME_MISMATCH$/
/** Nodemailer replaces the code of the cause by its own. */
const coded = z.object({ code: z.string().optional(), originalCode: z.string().optional() })

function toFailureText(error: unknown, host: string): string {
  const { code = '', originalCode = code } = coded.safeParse(error).data ?? {}
  if (!CERTIFICATE.test(originalCode)) return toReason(error)
  return `the TLS certificate of ${host} is rejected: ${toReason(error)} (${originalCode}). NODE_EXTRA_CA_CERTS names the file of a private authority`
}

function post(
  url: URL,
  { headers, body }: OutgoingRequest,
  resolve: LookupFunction,
  signal: AbortSignal,
): Promise<Outcome> {
  return new Promise((settle, reject) => {
    const send = url.protocol === 'https:' ? httpsRequest : httpRequest
    const options = {
      method: 'POST',
      lookup: resolve,
      signal,
      headers: { ...headers, 'content-length': Buffer.byteLength(body) },
    }
    const request: ClientRequest = send(url, options, (response) => {
      const chunks: Buffer[] = []
      let size = 0
      const finish = () => {
        const text = Buffer.concat(chunks).toString('utf8').slice(0, MOST_BODY)
        settle(toOutcome(response.statusCode ?? 0, response.headers['retry-after'], text))
        response.destroy()
      }
      response.on('data', (chunk: Buffer) => {
        chunks.push(chunk)
        size += chunk.length
        if (size >= MOST_BODY) finish()
      })
      response.on('end', finish)
      // The status decides, also if the rest of the answer is missing.
      response.on('error', finish)
    })
    request.on('error', reject)
    request.end(body)
  })
}

function openSocket(host: string, port: number, lookup: LookupFunction, signal: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, lookup, signal })
    // Stays after the connection: an error without a listener would end the process.
    socket.on('error', reject)
    socket.once('connect', () => resolve(socket))
  })
}

/** SMTP's answer to a failed command. */
const rejection = z.object({ responseCode: z.int() })

/**
 * A password is sent with TLS only. An answer of 5xx is permanent (RFC 5321, section 4.2.1); others, and a failed
 * connection, are not.
 */
async function sendMail(
  url: URL,
  { auth, mail }: OutgoingMail,
  resolve: LookupFunction,
  signal: AbortSignal,
): Promise<Outcome> {
  const isSecure = url.protocol === 'smtps:'
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const port = Number(url.port || (isSecure ? 465 : 587))
  const connection = await openSocket(host, port, resolve, signal)
  const transport = createTransport({
    ...{ host, port, connection, secure: isSecure, requireTLS: auth !== undefined && !isSecure, auth },
    ...{ disableFileAccess: true, disableUrlAccess: true },
  })
  try {
    const { response } = await transport.sendMail({ ...mail, headers: { ...mail.headers }, signal })
    const status = Number(response.slice(0, 3))
    return { isDelivered: true, status, reason: '', retryAfterMs: undefined, isPermanent: false, body: response }
  } catch (error) {
    const status = rejection.safeParse(error).data?.responseCode ?? null
    return { ...toRefusal(error, url.host), status, isPermanent: status !== null && status >= 500 }
  } finally {
    transport.close()
    connection.destroy()
  }
}

/** Telegram and Discord write the wait into the body, in seconds. */
const wait = z.union([
  z.object({ retry_after: z.number() }),
  z.object({ parameters: z.object({ retry_after: z.number() }) }).transform(({ parameters }) => parameters),
])

function toRetryAfterMs(header: string | undefined, body: string): number | undefined {
  const seconds = header === undefined ? wait.safeParse(toJson(body)).data?.retry_after : Number(header)
  if (seconds !== undefined && seconds >= 0) return seconds * 1000
  const at = Date.parse(header ?? '')
  return Number.isNaN(at) ? undefined : Math.max(0, at - Date.now())
}

function toOutcome(status: number, retryAfter: string | undefined, body: string): Outcome {
  const isDelivered = status >= 200 && status < 300
  const moved = status >= 300 && status < 400 ? ': redirects are not followed' : ''
  return {
    ...{ isDelivered, status, body, reason: isDelivered ? '' : `status ${status}${moved}` },
    retryAfterMs: toRetryAfterMs(retryAfter, body),
    isPermanent: status === 410,
  }
}
