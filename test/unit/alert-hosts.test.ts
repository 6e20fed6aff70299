import { describe, expect, it } from 'vitest'
import { buildRequest } from '../../workers/alerts/channels.ts'
import { toMailName } from '../../workers/alerts/mail-name.ts'
import type { Channel } from '../../workers/alerts/rules.ts'
import { createSend } from '../../workers/alerts/send.ts'
import type { StoredFiring } from '../../workers/alerts/state-rows.ts'
import { startReceiver } from '../support/alerts.ts'
import { startSmtpReceiver } from '../support/smtp.ts'

const signal = new AbortController().signal
describe('a host with several addresses', () => {
  const sendTo = (port: string, names: readonly string[]) => {
    const addresses = names.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))
    const send = createSend(['127.0.0.0/8'], undefined, undefined, (_host, _options, done) => done(null, addresses))
    return send({ url: `http://hook.example.org:${port}/`, headers: {}, body: '{}' }, signal)
  }

  it.each([
    ['10.0.0.1', '127.0.0.1'],
    ['::1', '127.0.0.1'],
    ['127.0.0.1', 'fd00::1'],
  ])('is reached if one of them is allowed: %s, %s', async (...addresses) => {
    const receiver = await startReceiver()
    expect(await sendTo(new URL(receiver.url).port, addresses)).toMatchObject({ isDelivered: true })
    await receiver.close()
  })

  it('is refused if all of them are private', async () => {
    expect(await sendTo('9', ['10.0.0.1', 'fd00::1'])).toMatchObject({
      ...{ isDelivered: false, isPermanent: true },
      reason: expect.stringContaining('hook.example.org is the private address 10.0.0.1'),
    })
  })
})

describe('the name of this host for mail servers', () => {
  const url = 'http://127.0.0.1:3000'
  const from = 'alerts@example.org'

  it('is the setting, the name in PUBLIC_URL, that of the machine, or the domain of the sender', () => {
    expect(toMailName('relay.example.net', 'https://data.example.org', from)).toBe('relay.example.net')
    expect(toMailName(undefined, 'https://data.example.org:8443', from)).toBe('data.example.org')
    expect(toMailName(undefined, 'http://[::ffff:127.0.0.1]:3000', from, 'container')).toBe('example.org')
    expect(toMailName(undefined, 'http://localhost', 'a@localhost', 'container')).toBe('localhost')
    expect(toMailName(undefined, url, from, 'worker-1.example.com')).toBe('worker-1.example.com')
  })

  it.each([undefined, 'relay.example.net'])('is accepted by a relay that refuses short names: %s', async (smtpName) => {
    const receiver = await startSmtpReceiver()
    const isShort = (command: string) => /^(EHLO|HELO)/.test(command) && !/^\S+ [\w-]+(\.[\w-]+)+$/.test(command)
    receiver.reply = (command) => (isShort(command) ? '421 4.7.0 invalid HELO name' : undefined)
    const channel: Channel = { type: 'email', url: receiver.url, from, to: 'ops@example.org' }
    const firing: StoredFiring = {
      ...{ rule: 'uni', id: 'a', kind: 'level', firedAt: 0, dueAt: 0, channels: [], isDigest: false, title: 'Title' },
      ...{ text: 'Text', entityType: '', entityId: '', entityName: '', observedAt: null, value: null, before: null },
      ...{ threshold: null, unit: '', page: null, request: null },
    }
    const message = { id: 'm', type: 'alert.fired' as const, rule: 'uni', firings: [firing] }
    const outgoing = buildRequest(channel, message, { publicUrl: url, smtpName, now: 0 })
    expect(await createSend(['127.0.0.0/8'])(outgoing, signal)).toMatchObject({ isDelivered: true, status: 250 })
    await receiver.close()
    expect(receiver.commands[0]).toBe(`EHLO ${toMailName(smtpName, url, from)}`)
  })
})
