import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { createServer as createTlsServer, TLSSocket } from 'node:tls'

export interface SmtpReceiver {
  readonly url: string
  /** The source of each accepted mail. */
  readonly mails: string[]
  /** The commands of all clients, without the mails. */
  readonly commands: string[]
  /** Replaces the answer to a command, `.` for the end of a mail. Undefined keeps the answer. */
  reply: (command: string) => string | undefined
  close(): Promise<void>
}

const ANSWERS: readonly (readonly [RegExp, string])[] = [
  [/^(HELO|MAIL|RCPT|RSET|NOOP)/i, '250 2.0.0 OK'],
  [/^DATA/i, '354 End with a dot'],
  [/^QUIT/i, '221 2.0.0 Bye'],
  [/^AUTH PLAIN/i, '235 2.7.0 Accepted'],
  [/^\.$/, '250 2.0.0 queued'],
]

/** How a mail server uses TLS: from the beginning of a connection, or after STARTTLS. */
export interface SmtpTls {
  readonly from: 'beginning' | 'starttls'
  readonly key: Buffer
  readonly cert: Buffer
}

/** RFC 5321, section 4.5.3.1.6, without the line break. */
const MOST_LINE = 998

/**
 * A local mail server that records every mail. With TLS, the server accepts logins. Lines of a mail that are too long
 * are refused.
 */
export async function startSmtpReceiver(tls?: SmtpTls): Promise<SmtpReceiver> {
  const sockets = new Set<Socket>()
  const serve = (socket: Socket, isSecure: boolean) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket)).on('error', () => {})
    const extensions = isSecure ? ['AUTH PLAIN', '8BITMIME'] : [...(tls === undefined ? [] : ['STARTTLS']), '8BITMIME']
    const hello = ['localhost', ...extensions].map((line, at, all) => `250${at < all.length - 1 ? '-' : ' '}${line}`)
    const isUpgrade = (command: string) => tls?.from === 'starttls' && !isSecure && /^STARTTLS/i.test(command)
    let mail: string[] | undefined
    const answer = (command: string) => {
      receiver.commands.push(command)
      const [, usual = '502 5.5.2 unknown command'] = ANSWERS.find(([pattern]) => pattern.test(command)) ?? []
      const own = /^EHLO/i.test(command) ? hello.join('\r\n') : isUpgrade(command) ? '220 2.0.0 Ready' : usual
      const text = receiver.reply(command) ?? own
      socket.write(`${text}\r\n`)
      return text
    }
    if (!isSecure || tls?.from === 'beginning') socket.write('220 localhost ESMTP\r\n')
    const lines = createInterface(socket).on('line', (line) => {
      if (isUpgrade(line)) {
        answer(line)
        lines.close()
        return serve(new TLSSocket(socket, { ...tls, isServer: true }), true)
      }
      if (mail === undefined) {
        if (answer(line).startsWith('354')) mail = []
      } else if (line === '.') {
        const isTooLong = mail.some((one) => Buffer.byteLength(one) > MOST_LINE)
        if (isTooLong) socket.write('500 5.2.3 line too long\r\n')
        else if (answer(line).startsWith('250')) receiver.mails.push(mail.join('\n'))
        mail = undefined
      } else mail.push(line.startsWith('..') ? line.slice(1) : line)
    })
  }
  const server =
    tls?.from === 'beginning'
      ? createTlsServer({ key: tls.key, cert: tls.cert }, (socket) => serve(socket, true)).on(
          'tlsClientError',
          () => {},
        )
      : createServer((socket) => serve(socket, false))
  const receiver: SmtpReceiver = {
    ...{ url: '', mails: [], commands: [], reply: () => undefined },
    close: async () => {
      server.close()
      for (const socket of sockets) socket.destroy()
      await once(server, 'close')
    },
  }
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const scheme = tls?.from === 'beginning' ? 'smtps' : 'smtp'
  return Object.assign(receiver, { url: `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}` })
}
