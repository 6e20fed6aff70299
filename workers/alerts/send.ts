import { type LookupAddress, type LookupAllOptions, lookup } from 'node:dns'
import { type ClientRequest, request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { connect, isIP, type LookupFunction, type Socket } from 'node:net'
import { createTransport } from 'nodemailer'
import { z } from 'zod'
import { toReason } from '../../shared/errors.ts'
import { createAddressCheck } from './addresses.ts'
import type { OutgoingMail, OutgoingRequest } from './channels.ts'
import { type Outcome, toOutcome } from './outcome.ts'

export { createAddressCheck }

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

/** All addresses of a host, like `lookup` of `node:dns`. */
type FindAddresses = (
  host: string,
  options: LookupAllOptions,
  done: (error: NodeJS.ErrnoException | null, addresses?: LookupAddress[]) => void,
) => void

/**
 * Sends requests and e-mails to the targets of operators. The address is checked when the connection is made, so a name that
 * resolves to another address later is checked as well. Redirects are not followed. Proxies are not used: behind a
 * proxy the address of a target is unknown.
 */
export function createSend(
  allowedNetworks: readonly string[],
  timeoutMs: number = TIMEOUT_MS,
  mailTimeoutMs: number = MAIL_TIMEOUT_MS,
  findAddresses: FindAddresses = lookup,
): Send {
  const isAllowed = createAddressCheck(allowedNetworks)
  const resolveAllowed: LookupFunction = (host, options, done) => {
    findAddresses(host, { ...options, all: true }, (error, addresses = []) => {
      // One refused address of several refuses only itself.
      const usable = addresses.filter(({ address }) => isAllowed(address))
      const [[any], [first]] = [addresses, usable]
      const refusal = any === undefined ? new Error(`${host} has no address`) : new RefusedAddress(host, any.address)
      if (error || first === undefined) return done(error ?? refusal, '', 0)
      if (options.all) return done(null, usable)
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

/** Once the receiver has sent a status, that decides, whatever happens to the rest of its answer. */
function post(
  url: URL,
  { service, headers, body }: OutgoingRequest,
  resolve: LookupFunction,
  signal: AbortSignal,
): Promise<Outcome> {
  return new Promise((settle, reject) => {
    const send = url.protocol === 'https:' ? httpsRequest : httpRequest
    const options = {
      method: 'POST',
      lookup: resolve,
      signal,
      // A receiver may close an idle connection just when the next message is written to it, which would be a failure.
      agent: false,
      headers: { ...headers, 'content-length': Buffer.byteLength(body) },
    }
    let failed: (error: Error) => void = reject
    const request: ClientRequest = send(url, options, (response) => {
      const chunks: Buffer[] = []
      let size = 0
      const finish = () => {
        const text = Buffer.concat(chunks).toString('utf8').slice(0, MOST_BODY)
        const { statusCode = 0, headers: received } = response
        settle(toOutcome({ service, status: statusCode, retryAfter: received['retry-after'], body: text }))
        response.destroy()
      }
      // A reset connection is an error of the request, too.
      failed = finish
      response.on('data', (chunk: Buffer) => {
        chunks.push(chunk)
        size += chunk.length
        if (size >= MOST_BODY) finish()
      })
      response.on('error', finish).on('close', finish)
    })
    request.on('error', (error) => failed(error))
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
  { name, auth, mail }: OutgoingMail,
  resolve: LookupFunction,
  signal: AbortSignal,
): Promise<Outcome> {
  const isSecure = url.protocol === 'smtps:'
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const port = Number(url.port || (isSecure ? 465 : 587))
  const connection = await openSocket(host, port, resolve, signal)
  const transport = createTransport({
    ...{ name, host, port, connection, secure: isSecure, requireTLS: auth !== undefined && !isSecure, auth },
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
