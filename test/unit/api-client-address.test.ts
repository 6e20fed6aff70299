import type { IncomingMessage } from 'node:http'
import { describe, expect, it } from 'vitest'
import { createToClient } from '../../api/http/client-address.ts'

const request = (remoteAddress: string, forwarded?: string) =>
  ({ socket: { remoteAddress }, headers: { 'x-forwarded-for': forwarded } }) as unknown as IncomingMessage

describe('who asks', () => {
  const toClient = createToClient(['10.0.0.0/8', '::1'])

  it.each([
    ['10.0.0.1', undefined, '10.0.0.1'],
    ['10.0.0.1', '', '10.0.0.1'],
    ['10.0.0.1', '192.0.2.1', '192.0.2.1'],
    ['::1', '2001:db8::1', '2001:db8:0:0::/64'],
    ['::1', '2001:db8:0:0:ffff::2', '2001:db8:0:0::/64'],
    ['2001:db8:1:2:3:4:5:6', undefined, '2001:db8:1:2::/64'],
    ['::ffff:10.0.0.1', '198.51.100.1, ::ffff:192.0.2.1 ,10.0.0.2', '192.0.2.1'],
    ['10.0.0.1', '10.0.0.3,10.0.0.2', '10.0.0.3'],
    ['10.0.0.1', ',10.0.0.2', '10.0.0.2'],
    ['10.0.0.1', '192.0.2.1,', '10.0.0.1'],
    ['10.0.0.1', '192.0.2.1, unknown', '10.0.0.1'],
    ['192.0.2.9', '198.51.100.1', '192.0.2.9'],
  ])('from %s forwarded for %j is %s', (peer, forwarded, address) => {
    expect(toClient(request(peer, forwarded))).toBe(address)
  })

  it('needs no header of a peer that is not trusted', () => {
    const headers = new Proxy({}, { get: () => expect.unreachable('the header was read') })
    expect(toClient({ socket: { remoteAddress: '192.0.2.9' }, headers } as unknown as IncomingMessage)).toBe(
      '192.0.2.9',
    )
  })
})
