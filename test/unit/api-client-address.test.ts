import type { IncomingMessage } from 'node:http'
import { describe, expect, it } from 'vitest'
import { createToClient } from '../../api/http/client-address.ts'

const request = (remoteAddress: string, forwardedFor?: string, forwarded?: string) =>
  ({ socket: { remoteAddress }, headers: { 'x-forwarded-for': forwardedFor, forwarded } }) as unknown as IncomingMessage

describe('createToClient', () => {
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
    ['10.0.0.1', '203.0.113.5:17085', '203.0.113.5'],
    ['10.0.0.1', '203.0.113.5:17085, 10.0.0.2:80', '203.0.113.5'],
    ['10.0.0.1', '[2001:db8::1]:443', '2001:db8:0:0::/64'],
    ['10.0.0.1', '[2001:db8::1]', '2001:db8:0:0::/64'],
    ['10.0.0.1', '[::ffff:192.0.2.1]:443', '192.0.2.1'],
    ['10.0.0.1', 'fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['10.0.0.1', '203.0.113.5:port', '10.0.0.1'],
    ['10.0.0.1', '203.0.113.500', '10.0.0.1'],
    ['10.0.0.1', '[203.0.113.5]:80:80', '10.0.0.1'],
  ])('returns for peer %s with X-Forwarded-For %j the address %s', (peer, forwarded, address) => {
    expect(toClient(request(peer, forwarded))).toBe(address)
  })

  it.each([
    ['for=192.0.2.43', '192.0.2.43'],
    ['For="192.0.2.43:47011"', '192.0.2.43'],
    ['for="[2001:db8:cafe::17]:4711";proto=https;by=203.0.113.43', '2001:db8:cafe:0::/64'],
    ['proto=https; for=192.0.2.43 ; host=a.test', '192.0.2.43'],
    ['for=198.51.100.17, for=192.0.2.43', '192.0.2.43'],
    ['for=192.0.2.43, for=10.0.0.2;proto=http', '192.0.2.43'],
    ['for="unclosed, for=192.0.2.43', '192.0.2.43'],
    ['for=192.0.2.43:_port', '192.0.2.43'],
    ['for=unknown', '10.0.0.1'],
    ['for=_hidden', '10.0.0.1'],
    ['for=192.0.2.43, proto=https', '10.0.0.1'],
    ['xfor=192.0.2.43', '10.0.0.1'],
    ['', '10.0.0.1'],
  ])('returns for Forwarded %j the address %s', (forwarded, address) => {
    expect(toClient(request('10.0.0.1', undefined, forwarded))).toBe(address)
  })

  it('returns the peer if the two headers differ, because the client may have written one of them', () => {
    expect(toClient(request('10.0.0.1', '192.0.2.1', 'for=192.0.2.1'))).toBe('192.0.2.1')
    expect(toClient(request('10.0.0.1', '192.0.2.1', 'for=192.0.2.2'))).toBe('10.0.0.1')
    expect(toClient(request('10.0.0.1', '192.0.2.1', 'for=unknown'))).toBe('10.0.0.1')
  })

  it('reads at most 16 hops', () => {
    const hops = (count: number) => ['192.0.2.1', ...Array(count).fill('10.0.0.2')].join()
    expect(toClient(request('10.0.0.1', hops(15)))).toBe('192.0.2.1')
    expect(toClient(request('10.0.0.1', hops(16)))).toBe('10.0.0.2')
    expect(toClient(request('10.0.0.1', hops(22_000)))).toBe('10.0.0.2')
  })

  it('ignores an element that is too long to be an address', () => {
    expect(toClient(request('10.0.0.1', '1'.repeat(30_000)))).toBe('10.0.0.1')
  })

  it('reads no header of an untrusted peer', () => {
    const headers = new Proxy({}, { get: () => expect.unreachable('the header was read') })
    expect(toClient({ socket: { remoteAddress: '192.0.2.9' }, headers } as unknown as IncomingMessage)).toBe(
      '192.0.2.9',
    )
  })
})
