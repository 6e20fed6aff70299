import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { createInterface } from 'node:readline'

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
  [/^EHLO/i, '250-localhost\r\n250 8BITMIME'],
  [/^(HELO|MAIL|RCPT|RSET|NOOP)/i, '250 2.0.0 OK'],
  [/^DATA/i, '354 End with a dot'],
  [/^QUIT/i, '221 2.0.0 Bye'],
  [/^\.$/, '250 2.0.0 queued'],
]

/** A local mail server without TLS that records every mail. */
export async function startSmtpReceiver(): Promise<SmtpReceiver> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket)).on('error', () => {})
    let mail: string[] | undefined
    const answer = (command: string) => {
      receiver.commands.push(command)
      const [, usual = '502 5.5.2 unknown command'] = ANSWERS.find(([pattern]) => pattern.test(command)) ?? []
      const text = receiver.reply(command) ?? usual
      socket.write(`${text}\r\n`)
      return text
    }
    socket.write('220 localhost ESMTP\r\n')
    createInterface(socket).on('line', (line) => {
      if (mail === undefined) {
        if (answer(line).startsWith('354')) mail = []
      } else if (line === '.') {
        if (answer(line).startsWith('250')) receiver.mails.push(mail.join('\n'))
        mail = undefined
      } else mail.push(line.startsWith('..') ? line.slice(1) : line)
    })
  })
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
  return Object.assign(receiver, { url: `smtp://127.0.0.1:${(server.address() as AddressInfo).port}` })
}
