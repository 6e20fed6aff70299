import { describe, expect, it } from 'vitest'
import { parseConfig } from '../../shared/config/config.ts'
import { createRedactor, findSecrets, toUrlSecrets } from '../../shared/config/secrets.ts'
import { toTarget } from '../../workers/http/call.ts'

describe('toUrlSecrets', () => {
  it.each([
    ['https://host/v2/0123456789abcdefg', ['0123456789abcdefg']],
    ['https://host/api/v2.2/latest-and-greatest?apikey=12345678&page=1', ['12345678']],
    ['https://name:p%40ssword@host/', ['p%40ssword', 'p@ssword']],
    ['redis://:password-of-redis@127.0.0.1:6379', ['password-of-redis', 'password-of-redis']],
    ['https://host/100%25?key=100%2', []],
    ['C:\\ratings.csv?token=0123456789', []],
  ])('finds the secrets of %s', (url, secrets) => {
    expect(toUrlSecrets(url)).toEqual(expect.arrayContaining(secrets))
    expect(new Set(toUrlSecrets(url))).toEqual(new Set(secrets))
  })
})

describe('findSecrets', () => {
  it('finds secrets by setting name and in URLs, but not words', () => {
    const config = parseConfig({
      COINGECKO_API_KEY: 'demo',
      X_BEARER_TOKEN: 'token-of-x',
      OPS_TOKEN: 'token-of-ops',
      CLICKHOUSE_PASSWORD: 'password-of-clickhouse',
      REDIS_URL: 'redis://:password-of-redis@127.0.0.1',
      RPC_URLS: 'ethereum=https://host/v2/key-of-a-node-0123',
    })
    expect(new Set(findSecrets(config))).toEqual(
      new Set(['token-of-x', 'token-of-ops', 'password-of-clickhouse', 'password-of-redis', 'key-of-a-node-0123']),
    )
  })

  it('createRedactor() replaces secrets, also if one contains another', () => {
    expect(createRedactor(['12345678', '12345678-9'])('a 12345678-9 b 12345678')).toBe('a [redacted] b [redacted]')
  })
})

describe('toTarget', () => {
  it('moves the credentials of a URL to a header, and redacts them in messages', () => {
    const headers = new Headers()
    const { url, excerpt } = toTarget({ baseUrl: 'https://somebody:pass%40word@host/v1', path: '/path', headers })
    expect(url.href).toBe('https://host/v1/path')
    expect(headers.get('authorization')).toBe(`Basic ${Buffer.from('somebody:pass@word').toString('base64')}`)
    expect(excerpt('somebody has pass@word')).not.toMatch(/somebody|pass@word/)
  })
})
