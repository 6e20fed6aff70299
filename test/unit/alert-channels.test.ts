import { execFile, execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Webhook } from 'standardwebhooks'
import { afterAll, describe, expect, it } from 'vitest'
import { buildRequest, type Message } from '../../workers/alerts/channels.ts'
import type { Channel } from '../../workers/alerts/rules.ts'
import { createAddressCheck, createSend } from '../../workers/alerts/send.ts'
import type { StoredFiring } from '../../workers/alerts/state-rows.ts'
import { startReceiver } from '../support/alerts.ts'
import { startSmtpReceiver } from '../support/smtp.ts'

const FIRED_AT = Date.parse('2024-05-06T07:00:00Z')
const firing = (members: Partial<StoredFiring> = {}): StoredFiring => ({
  ...{
    rule: 'uni',
    id: 'a'.repeat(24),
    kind: 'level',
    firedAt: FIRED_AT,
    dueAt: FIRED_AT,
    channels: [],
    isDigest: false,
  },
  ...{ title: 'Uniswap: Price above $10', text: 'Price is $11.', entityType: 'token', entityId: 'b'.repeat(24) },
  ...{ entityName: 'Uniswap', observedAt: FIRED_AT, value: 11, before: null, threshold: 10, unit: 'USD' },
  ...{ page: '/tokens/x', request: '/data/tokens?id=x' },
  ...members,
})
const message = (firings: readonly StoredFiring[] = [firing()], type: Message['type'] = 'alert.fired'): Message => ({
  ...{ id: 'msg', type, rule: 'uni', firings },
})
const build = (channel: Exclude<Channel, { type: 'email' }>, one: Message, now = FIRED_AT) => {
  const { body, ...rest } = buildRequest(channel, one, { publicUrl: 'https://data.example.org', now })
  return { ...rest, body: JSON.parse(body), text: body }
}

describe('a webhook', () => {
  const [old, fresh] = [1, 2].map((byte) => `whsec_${Buffer.alloc(32, byte).toString('base64')}`) as [string, string]

  it('is verified by the official library with the new secret, and with the old one while both are set', () => {
    const channel: Channel = { type: 'webhook', url: 'https://example.org/', secrets: [fresh, old] }
    const { headers, text, body } = build(channel, message(), Date.now())
    expect(headers['webhook-id']).toBe('msg')
    for (const secret of [fresh, old]) expect(new Webhook(secret).verify(text, { ...headers })).toEqual(body)
    const other = `whsec_${Buffer.alloc(32, 3).toString('base64')}`
    expect(() => new Webhook(other).verify(text, { ...headers })).toThrow('No matching signature')
  })

  it('has the same body at every attempt', () => {
    const channel: Channel = { type: 'webhook', url: 'https://example.org/', secrets: [old] }
    expect(build(channel, message(), FIRED_AT + 1e6).text).toBe(build(channel, message()).text)
  })
})

describe('a message to Slack', () => {
  const channel: Channel = { type: 'slack', url: 'https://hooks.slack.com/services/T/B/X' }

  it('has a fallback text and a section with links, and escapes markup', () => {
    const { url, body } = build(channel, message([firing({ title: '<!channel> & co' })]))
    expect(url).toBe(channel.url)
    expect(body).toEqual({
      ...{ text: '&lt;!channel&gt; &amp; co', mrkdwn: false, parse: 'none', link_names: false },
      blocks: [
        {
          type: 'section',
          text: { type: 'plain_text', text: '&lt;!channel&gt; &amp; co\nPrice is $11.', emoji: false },
          fields: [
            {
              type: 'mrkdwn',
              text: '<https://data.example.org/tokens/x|Page> · <https://data.example.org/data/tokens?id=x|Data>',
              verbatim: true,
            },
          ],
        },
      ],
      ...{ unfurl_links: false, unfurl_media: false },
    })
  })

  it('has at most 50 blocks, and counts the other alerts of a digest', () => {
    const { body } = build(
      channel,
      message(
        Array.from({ length: 100 }, () => firing()),
        'alert.digest',
      ),
    )
    expect(body.text).toBe('uni: 100 alerts')
    expect(body.blocks).toHaveLength(49)
    expect(body.blocks.at(-1).text.text).toBe('… and 52 more')
  })
})

describe('a message to Discord', () => {
  const channel: Channel = { type: 'discord', url: 'https://discord.com/api/webhooks/1/token' }

  it('has an embed and mentions nobody', () => {
    expect(build(channel, message()).body).toEqual({
      embeds: [
        {
          title: 'Uniswap: Price above $10',
          description: 'Price is $11.\n[Data](https://data.example.org/data/tokens?id=x)',
          timestamp: '2024-05-06T07:00:00.000Z',
          url: 'https://data.example.org/tokens/x',
        },
      ],
      allowed_mentions: { parse: [] },
    })
  })

  it('has at most ten embeds and 6,000 characters', () => {
    const long = firing({ title: 't'.repeat(400), text: 'x'.repeat(5_000) })
    const { body } = build(
      channel,
      message(
        Array.from({ length: 12 }, () => long),
        'alert.digest',
      ),
    )
    expect(body.embeds).toHaveLength(10)
    expect(body.content).toBe('uni: 12 alerts … and 2 more')
    const length = body.embeds.reduce(
      (sum: number, one: { title: string; description: string }) => sum + one.title.length + one.description.length,
      0,
    )
    expect(length).toBeLessThanOrEqual(6_000)
  })
})

describe('a message to Telegram', () => {
  const channel: Channel = { type: 'telegram', token: '1:secret', chat: '-100', server: 'https://api.telegram.org/' }

  it('is HTML with escaped texts and without previews', () => {
    const { url, body } = build(channel, message([firing({ text: 'a < b' })]))
    expect(url).toBe('https://api.telegram.org/bot1:secret/sendMessage')
    expect(body).toEqual({
      chat_id: '-100',
      text: '<b>Uniswap: Price above $10</b>\na &lt; b\n<a href="https://data.example.org/tokens/x">Page</a> · <a href="https://data.example.org/data/tokens?id=x">Data</a>',
      parse_mode: 'HTML',
      link_preview_options: { is_disabled: true },
    })
  })

  it('has at most 4,096 characters', () => {
    const { body } = build(
      channel,
      message(
        Array.from({ length: 50 }, () => firing({ text: 'x'.repeat(450) })),
        'alert.digest',
      ),
    )
    expect(body.text.length).toBeLessThanOrEqual(4_096)
    expect(body.text).toMatch(/… and \d+ more$/)
  })
})

describe('an e-mail', () => {
  const channel: Channel = {
    ...{ type: 'email', url: 'smtp://mail.example.org', from: 'alerts@example.org', to: 'ops@example.org' },
  }
  const context = { publicUrl: 'https://data.example.org', now: FIRED_AT + 1e6 }
  const open = async (members: { user?: string; password?: string } = {}) => {
    const receiver = await startSmtpReceiver()
    const outgoing = (one: Message = message()) =>
      buildRequest({ ...channel, ...members, url: receiver.url }, one, context)
    const send = createSend(['127.0.0.0/8'])
    const signal = new AbortController().signal
    return { receiver, send: (one?: Message) => send(outgoing(one), signal) }
  }

  it('has a text and an HTML part, escapes markup, and has the id and the time of its message', async () => {
    const { receiver, send } = await open()
    expect(await send(message([firing({ title: 'a < b' })]))).toMatchObject({ isDelivered: true, status: 250 })
    await receiver.close()
    const [mail = ''] = receiver.mails
    expect(mail).toContain('Subject: a < b')
    expect(mail).toContain('From: alerts@example.org\nTo: ops@example.org')
    expect(mail).toContain('Message-ID: <msg@example.org>')
    expect(mail).toContain('Date: Mon, 06 May 2024 07:00:00 +0000')
    expect(mail).toContain('Auto-Submitted: auto-generated')
    expect(mail).toMatch(/text\/plain[\s\S]*a < b\nPrice is \$11\.\nPage: https:\/\/data\.example\.org\/tokens\/x/)
    expect(mail).toMatch(/text\/html[\s\S]*<b>a &lt; b<\/b>/)
  })

  it('has at most 200 alerts, and counts the others', () => {
    const digest = message(
      Array.from({ length: 203 }, () => firing()),
      'alert.digest',
    )
    const outgoing = buildRequest(channel, digest, context)
    const { subject, text } = 'mail' in outgoing ? outgoing.mail : expect.fail('no mail')
    expect(subject).toBe('uni: 203 alerts')
    expect(text.split('Price is $11.')).toHaveLength(201)
    expect(text).toContain('… and 3 more')
  })

  it.each([
    ['RCPT', '550 5.1.1 no such user', { status: 550, isPermanent: true }],
    ['RCPT', '451 4.7.1 greylisted', { status: 451, isPermanent: false }],
    ['.', '554 5.7.1 spam', { status: 554, isPermanent: true }],
    ['.', '452 4.3.1 disk full', { status: 452, isPermanent: false }],
    ['MAIL', '421 4.3.2 closing', { status: 421, isPermanent: false }],
  ])('reports the answer to %s: %s', async (command, answer, expected) => {
    const { receiver, send } = await open()
    receiver.reply = (received) => (received.startsWith(command) ? answer : undefined)
    const outcome = await send()
    await receiver.close()
    expect(outcome).toMatchObject({ ...expected, isDelivered: false, reason: expect.stringContaining(answer) })
  })

  it('is sent again if the server cannot be reached or does not answer', async () => {
    const { receiver, send } = await open()
    await receiver.close()
    expect(await send()).toMatchObject({
      status: null,
      isPermanent: false,
      reason: expect.stringContaining('ECONNREFUSED'),
    })
    const silent = await startSmtpReceiver()
    silent.reply = (command) => (command === '.' ? '' : undefined)
    const outgoing = buildRequest({ ...channel, url: silent.url }, message(), context)
    const outcome = await createSend(['127.0.0.0/8'], 50, 50)(outgoing, new AbortController().signal)
    await silent.close()
    expect(outcome).toMatchObject({ isDelivered: false, status: null, isPermanent: false })
  })

  it('does not send its password to a server without TLS', async () => {
    const { receiver, send } = await open({ user: 'alerts', password: 'a-long-password' })
    expect(await send()).toMatchObject({ isDelivered: false, reason: expect.stringContaining('STARTTLS') })
    await receiver.close()
    expect(receiver.commands.filter((command) => /^AUTH|^MAIL/.test(command))).toEqual([])
    expect(receiver.mails).toEqual([])
  })

  it.each(['smtp://127.0.0.1:9', 'smtps://[::1]:9', 'smtp://localhost:9'])(
    'is not sent to the private address %s',
    async (url) => {
      const outgoing = buildRequest({ ...channel, url }, message(), context)
      expect(await createSend([])(outgoing, new AbortController().signal)).toMatchObject({
        isPermanent: true,
        reason: expect.stringContaining('private address'),
      })
    },
  )
})

const canSign = spawnSync('openssl', ['version']).status === 0
if (!canSign) console.log('tests of certificates: skipped, there is no openssl')

describe.skipIf(!canSign)('an e-mail over TLS', () => {
  const dir = mkdtempSync(join(tmpdir(), 'dao-data-smtp-'))
  afterAll(() => rmSync(dir, { recursive: true, force: true }))

  /** Creates a certificate that is its own authority. */
  function sign(name: string, address: string) {
    const [cert, key] = [join(dir, `${name}.pem`), join(dir, `${name}.key`)]
    const subject = ['-subj', '/CN=test', '-addext', `subjectAltName=${address}`]
    const kind = ['-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2']
    execFileSync('openssl', ['req', ...kind, ...subject, '-keyout', key, '-out', cert], { stdio: 'ignore' })
    return { file: cert, cert: readFileSync(cert), key: readFileSync(key) }
  }
  const own = sign('own', 'IP:127.0.0.1')
  const foreign = sign('foreign', 'DNS:other.example.org')

  const toOutgoing = (url: string) => {
    const addresses = { from: 'alerts@example.org', to: 'ops@example.org' }
    const channel: Channel = { type: 'email', url, ...addresses, user: 'alerts', password: 'a-long-password' }
    return buildRequest(channel, message(), { publicUrl: 'https://data.example.org', now: FIRED_AT })
  }
  const send = (url: string) => createSend(['127.0.0.0/8'])(toOutgoing(url), new AbortController().signal)

  /** Sends from a process that trusts the certificate: Node reads trusted certificates only at process start. */
  async function sendTrusting(file: string, url: string): Promise<unknown> {
    const script = `import { createSend } from ${JSON.stringify(join(import.meta.dirname, '../../workers/alerts/send.ts'))}
const outgoing = ${JSON.stringify(toOutgoing(url))}
const mail = { ...outgoing.mail, date: new Date(outgoing.mail.date) }
const outcome = await createSend(['127.0.0.0/8'])({ ...outgoing, mail }, new AbortController().signal)
console.log(JSON.stringify(outcome))`
    const env = { ...process.env, NODE_EXTRA_CA_CERTS: file }
    const args = ['--import', 'tsx', '--input-type=module', '-e', script]
    const { stdout } = await promisify(execFile)(process.execPath, args, { env })
    return JSON.parse(stdout)
  }

  it.each(['beginning', 'starttls'] as const)('is sent with a login, with TLS from %s', async (from) => {
    const receiver = await startSmtpReceiver({ from, ...own })
    const outcome = await sendTrusting(own.file, receiver.url)
    await receiver.close()
    expect(outcome).toMatchObject({ isDelivered: true, status: 250 })
    expect(receiver.mails).toHaveLength(1)
    const login = Buffer.from('\0alerts\0a-long-password').toString('base64')
    expect(receiver.commands.filter((command) => command.startsWith('AUTH'))).toEqual([`AUTH PLAIN ${login}`])
    expect(receiver.commands.includes('STARTTLS')).toBe(from === 'starttls')
  })

  it.each([
    ['535 5.7.8 wrong password', { status: 535, isPermanent: true }],
    ['454 4.7.0 try later', { status: 454, isPermanent: false }],
  ])('is not sent if the login is refused: %s', async (answer, expected) => {
    const receiver = await startSmtpReceiver({ from: 'starttls', ...own })
    receiver.reply = (command) => (command.startsWith('AUTH') ? answer : undefined)
    const outcome = await sendTrusting(own.file, receiver.url)
    await receiver.close()
    expect(outcome).toMatchObject({ ...expected, isDelivered: false, reason: expect.stringContaining(answer) })
    expect(receiver.mails).toEqual([])
  })

  it.each(['beginning', 'starttls'] as const)(
    'names a certificate of an unknown authority, with TLS from %s, and sends no password',
    async (from) => {
      const receiver = await startSmtpReceiver({ from, ...own })
      const { reason, isPermanent } = await send(receiver.url)
      await receiver.close()
      expect(reason).toBe(
        `the TLS certificate of ${new URL(receiver.url).host} is rejected: self-signed certificate (DEPTH_ZERO_SELF_SIGNED_CERT). NODE_EXTRA_CA_CERTS names the file of a private authority`,
      )
      expect(isPermanent).toBe(false)
      expect(receiver.commands.filter((command) => command.startsWith('AUTH'))).toEqual([])
    },
  )

  it('names a certificate of another host', async () => {
    const receiver = await startSmtpReceiver({ from: 'beginning', ...foreign })
    const outcome = await sendTrusting(foreign.file, receiver.url)
    await receiver.close()
    expect(outcome).toMatchObject({
      isDelivered: false,
      reason: expect.stringMatching(/is rejected: .*IP: 127\.0\.0\.1.*\(ERR_TLS_CERT_ALTNAME_INVALID\)/),
    })
  })

  it('names the certificate of a webhook as well', async () => {
    const server = createServer({ key: own.key, cert: own.cert })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
    const request = { url: `https://${host}/`, headers: {}, body: '{}' }
    const { reason } = await createSend(['127.0.0.0/8'])(request, new AbortController().signal)
    server.close()
    expect(reason).toContain(`the TLS certificate of ${host} is rejected: self-signed certificate`)
  })
})

describe('createAddressCheck', () => {
  it.each([
    '127.0.0.1',
    '10.1.2.3',
    '192.168.0.1',
    '172.31.0.1',
    '169.254.169.254',
    '0.0.0.0',
    '100.64.0.1',
    '::1',
    'fd00::1',
    'fe80::1',
    '::ffff:10.0.0.1',
    '64:ff9b::a00:1',
    '64:ff9b::10.0.0.1',
    '64:ff9b:1::8.8.8.8',
    '::ffff:a00:1',
    '::ffff:0:10.0.0.1',
    '::10.0.0.1',
    '::',
    '2002:a00:1::1',
    '2002:7f00:1::',
    // Teredo: a private server, and a private client, whose address is inverted.
    '2001:0:a00:1::f5ff:fffe',
    '2001:0:808:808::f5ff:fffe',
    'fe80::1%eth0',
    '224.0.0.1',
  ])('refuses %s', (address) => expect(createAddressCheck([])(address)).toBe(false))

  it.each(['64:ff9b::a29f:8ae8', '64:ff9b::8.8.8.8', '::ffff:808:808', '2002:808:808::1', '2001:0:808:808::f7f7:f7f7'])(
    'accepts %s, which contains a public IPv4 address',
    (address) => expect(createAddressCheck([])(address)).toBe(true),
  )

  it('accepts private addresses of allowed networks in IPv6 addresses', () => {
    const isAllowed = createAddressCheck(['10.0.0.0/8'])
    expect(['64:ff9b::a00:1', '2002:a00:1::1', '64:ff9b::7f00:1'].map(isAllowed)).toEqual([true, true, false])
  })

  it('accepts public addresses and allowed networks', () => {
    const isAllowed = createAddressCheck(['10.0.0.0/8', '::1'])
    expect(['8.8.8.8', '2606:4700::1111', '10.1.2.3', '::1', '::ffff:10.0.0.1'].map(isAllowed)).toEqual([
      true,
      true,
      true,
      true,
      true,
    ])
    expect(isAllowed('127.0.0.1')).toBe(false)
  })
})

describe('createSend', () => {
  it('opens a connection for each message, because the receiver may close an idle one meanwhile', async () => {
    const server = createHttpServer((request, response) => request.resume().once('end', () => response.end()))
    let connections = 0
    server.on('connection', () => {
      connections += 1
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    try {
      const { port } = server.address() as AddressInfo
      const outgoing = { url: `http://127.0.0.1:${port}/`, headers: {}, body: '{}' }
      const send = createSend(['127.0.0.0/8'])
      for (let count = 0; count < 3; count += 1)
        expect(await send(outgoing, new AbortController().signal)).toMatchObject({ isDelivered: true })
      expect(connections).toBe(3)
    } finally {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    }
  })

  const toRequest = (url: string) => ({ url, headers: {}, body: '{}' })
  const signal = new AbortController().signal

  it('follows no redirect, and reads the requested wait (Retry-After) of each service', async () => {
    const receiver = await startReceiver()
    const send = createSend(['127.0.0.0/8'])
    receiver.reply = () => ({ status: 302, headers: { location: `${receiver.url}/other` } })
    expect(await send(toRequest(receiver.url), signal)).toMatchObject({
      isDelivered: false,
      reason: 'status 302: redirects are not followed',
    })
    expect(receiver.received).toHaveLength(1)
    receiver.reply = () => ({ status: 429, headers: { 'retry-after': '7' } })
    expect(await send(toRequest(receiver.url), signal)).toMatchObject({ retryAfterMs: 7_000, isPermanent: false })
    receiver.reply = () => ({ status: 429, body: '{"retry_after": 1.5}' })
    expect(await send(toRequest(receiver.url), signal)).toMatchObject({ retryAfterMs: 1_500 })
    receiver.reply = () => ({ status: 429, body: '{"ok":false,"parameters":{"retry_after":4}}' })
    expect(await send(toRequest(receiver.url), signal)).toMatchObject({ retryAfterMs: 4_000 })
    receiver.reply = () => ({ status: 410 })
    expect(await send(toRequest(receiver.url), signal)).toMatchObject({ isPermanent: true })
    await receiver.close()
  })

  it.each([
    [
      { status: 200, headers: { 'content-length': '100' }, body: 'ok', isReset: true },
      { isDelivered: true, body: 'ok' },
    ],
    [{ status: 204, headers: { 'transfer-encoding': 'chunked' }, body: '', isReset: true }, { isDelivered: true }],
    [
      { status: 503, headers: { 'content-length': '9', 'retry-after': '7' }, body: 'busy', isReset: true },
      { isDelivered: false, retryAfterMs: 7_000, isPermanent: false, reason: 'status 503: busy' },
    ],
    [{ status: 410, headers: { 'content-length': '9' }, body: 'gone', isReset: true }, { isPermanent: true }],
  ])('decides by the status if the connection is reset after it: %j', async (reply, expected) => {
    const receiver = await startReceiver()
    receiver.reply = () => reply
    expect(await createSend(['127.0.0.0/8'])(toRequest(receiver.url), signal)).toMatchObject({
      ...{ status: reply.status, ...expected },
    })
    await receiver.close()
  })

  it('decides by the status if the rest of the answer does not arrive in time', async () => {
    const receiver = await startReceiver()
    receiver.reply = () => ({ status: 200, headers: { 'content-length': '100' }, body: 'ok', isOpen: true })
    const outcome = await createSend(['127.0.0.0/8'], 200)(toRequest(receiver.url), signal)
    expect(outcome).toMatchObject({ isDelivered: true, status: 200, body: 'ok' })
    await receiver.close()
  })

  const migrated = JSON.stringify({
    ...{ ok: false, error_code: 400, description: 'Bad Request: group chat was upgraded to a supergroup chat' },
    parameters: { migrate_to_chat_id: -1001234567890 },
  })
  const notFound = '{"ok":false,"error_code":400,"description":"Bad Request: chat not found"}'
  it.each([
    ['telegram', 400, migrated, /^status 400: the chat has another id now: set chat to '-1001234567890': .*upgraded/],
    ['telegram', 400, notFound, /: set chat to the id of a chat that has the bot: .*chat not found/],
    ['telegram', 401, '{"description":"Unauthorized"}', /: telegram does not know the bot: set token: .*Unauthorized/],
    ['telegram', 403, '{"description":"Forbidden: bot was kicked"}', /: the bot may not write to the chat: .*kicked/],
    ['discord', 404, '{"message": "Unknown Webhook", "code": 10015}', /no such webhook.*set url: .*Unknown Webhook/],
    ['discord', 400, '{"message": "Invalid Form Body"}', /discord does not accept this message: .*Invalid Form Body/],
    ['slack', 404, 'no_service', /slack has no such webhook any more: create one and set url: no_service/],
    ['slack', 403, 'action_prohibited', /action_prohibited/],
    ['slack', 410, 'channel_is_archived', /channel_is_archived/],
  ] as const)('ends at a final answer of %s: %i %s', async (service, status, body, reason) => {
    const receiver = await startReceiver()
    receiver.reply = () => ({ status, body })
    const outcome = await createSend(['127.0.0.0/8'])({ ...toRequest(receiver.url), service }, signal)
    expect(outcome).toMatchObject({ isPermanent: true, reason: expect.stringMatching(reason) })
    await receiver.close()
  })

  it.each([
    ['telegram', 429],
    ['telegram', 502],
    ['discord', 429],
    ['slack', 500],
    [undefined, 400],
    [undefined, 404],
  ] as const)('does not end at a temporary answer, or one of a webhook: %s %i', async (service, status) => {
    const receiver = await startReceiver()
    receiver.reply = () => ({ status, body: 'later\r\n\u001b[31m' })
    const request = { ...toRequest(receiver.url), ...(service && { service }) }
    const outcome = await createSend(['127.0.0.0/8'])(request, signal)
    expect(outcome).toMatchObject({ isPermanent: false, reason: `status ${status}: later [31m` })
    await receiver.close()
  })

  it('ends a request to a receiver that does not answer', async () => {
    const receiver = await startReceiver()
    receiver.reply = () => 'hang'
    const outcome = await createSend(['127.0.0.0/8'], 50)(toRequest(receiver.url), signal)
    expect(outcome).toMatchObject({ isDelivered: false, status: null, isPermanent: false })
    await receiver.close()
  })

  it('refuses private addresses, by number and by name', async () => {
    const send = createSend([])
    for (const url of ['http://127.0.0.1:9', 'http://[::1]:9', 'http://localhost:9', 'http://2130706433:9'])
      expect(await send(toRequest(url), signal), url).toMatchObject({
        isPermanent: true,
        reason: expect.stringContaining('private address'),
      })
  })
})
