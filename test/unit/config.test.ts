import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { parseConfig, provideSettings, settings, TRACING_VARIABLES } from '../../shared/config/config.ts'
import { DataError } from '../../shared/errors.ts'

const failure = (env: Record<string, string>): DataError => {
  try {
    parseConfig(env)
  } catch (error) {
    if (error instanceof DataError) return error
    throw error
  }
  throw new Error('the configuration was accepted')
}

describe('parseConfig', () => {
  it('has a default for every optional setting', () => {
    const config = parseConfig({})
    expect(config.mode).toBe('live')
    expect(config.providers.coinmarketcap.apiKey).toBeUndefined()
  })

  it('names all invalid settings in one error', () => {
    const error = failure({ API_PORT: '70000', REDIS_URL: 'http://x', LOG_LEVEL: 'loud' })
    expect(error.code).toBe('config')
    for (const name of ['API_PORT', 'REDIS_URL', 'LOG_LEVEL']) expect(error.message).toContain(`- ${name}: `)
    expect(error.message).toContain('"70000"')
  })

  it('treats an empty value as unset', () => {
    expect(parseConfig({ API_PORT: '', COINMARKETCAP_API_KEY: '' }).api.port).toBe(3000)
  })

  it.each([' ', '0x10', '1e9', '1.5', '-1', 'ten'])('rejects %j as a number', (text) => {
    for (const name of ['API_PORT', 'API_CACHE_MB', 'WORKER_CONCURRENCY', 'PROVIDER_TIMEOUT_MS'])
      expect(failure({ [name]: text }).message).toContain(`${name}: must be a whole number`)
  })

  it('accepts numbers with surrounding spaces, and a fraction without a leading zero', () => {
    const { api, worker } = parseConfig({ API_PORT: ' 80 ', API_PROCESSES: '2', PROVIDER_HISTORY_SHARE: '.25' })
    expect([api.port, api.processes, worker.historyShare]).toEqual([80, 2, 0.25])
    expect(failure({ PROVIDER_HISTORY_SHARE: ' ' }).message).toContain('PROVIDER_HISTORY_SHARE: must be a number')
  })

  it.each(['http://admin:pw@h:8123', 'http://h:8123/otherdb', 'http://h:8123?database=x', 'http://admin@h:8123/'])(
    'rejects the ClickHouse URL %s, because user and database have separate settings',
    (url) => {
      expect(failure({ CLICKHOUSE_URL: url }).message).toContain('the database is CLICKHOUSE_DATABASE')
      expect(parseConfig({ CLICKHOUSE_URL: 'http://h:8123/' }).clickhouse.url).toBe('http://h:8123/')
    },
  )

  it('does not show URLs in errors, because they may contain a password', () => {
    const wrong = {
      CLICKHOUSE_URL: 'clickhouse://writer:topsecret99@h:9000',
      COINGECKO_BASE_URL: 'ftp://h/topsecret99',
      API_PORT: 'redis://:topsecret99@h',
    }
    expect(failure(wrong).message).not.toContain('topsecret99')
  })

  it('parses the datasets that are off, and lists the valid names for an unknown one', () => {
    expect(parseConfig({ DATASETS_OFF: 'twitter-sentiment, tvl' }).datasetsOff).toEqual(['twitter-sentiment', 'tvl'])
    expect(parseConfig({}).datasetsOff).toEqual([])
    expect(failure({ DATASETS_OFF: 'tvl,weather' }).message).toMatch(
      /unknown dataset weather; the datasets are prices, /,
    )
  })

  it.each([
    ['127.0.0.1', 'http://127.0.0.1:3000'],
    ['data.example', 'http://data.example:3000'],
    ['::', 'http://[::]:3000'],
    ['::1', 'http://[::1]:3000'],
  ])('derives the public URL from the host %s', (host, url) => {
    expect(parseConfig({ API_HOST: host }).api.publicUrl).toBe(url)
  })

  it('reads secrets from files and does not show them', () => {
    const file = join(mkdtempSync(join(tmpdir(), 'dao-data-config-')), 'key')
    writeFileSync(file, 'from-a-file\n')
    expect(parseConfig({ COINMARKETCAP_API_KEY_FILE: file }).providers.coinmarketcap.apiKey).toBe('from-a-file')
    expect(failure({ COINMARKETCAP_API_KEY_FILE: '/nowhere/key' }).message).toContain('COINMARKETCAP_API_KEY_FILE')
    writeFileSync(file, '\n')
    expect(failure({ OPS_TOKEN_FILE: file }).message).toContain(`OPS_TOKEN_FILE: ${file} is empty: write the value`)
    const both = failure({ COINMARKETCAP_API_KEY: 'secret-one', COINMARKETCAP_API_KEY_FILE: file })
    expect(both.message).toContain('remove one')
    expect(both.message).not.toContain('secret-one')
  })

  it('parses the node URL of each chain, and reports all errors without URLs', () => {
    const urls = 'ethereum=https://host/v3/secret?a=b, base=http://127.0.0.1:8545'
    expect(parseConfig({ RPC_URLS: urls }).providers.rpc.urls).toEqual({
      ethereum: 'https://host/v3/secret?a=b',
      base: 'http://127.0.0.1:8545',
    })
    expect(parseConfig({}).providers.rpc.urls).toEqual({})
    const wrong = [
      'https://host/secret',
      'nowhere=https://host/secret',
      'solana=https://host/secret',
      'base=ftp://secret',
      'base=https://',
      'base=https://host/secret,base=https://host/secret',
    ]
    for (const text of wrong) {
      expect(failure({ RPC_URLS: text }).message).toContain('RPC_URLS: ')
      expect(failure({ RPC_URLS: text }).message).not.toContain('secret')
    }
    const both = failure({ RPC_URLS: 'nowhere=https://host/secret,base=secret' }).message
    expect(both).toContain('no EVM chain has the slug nowhere')
    expect(both).toContain('the URL of base must be')
  })

  it.each([
    [{}, false],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: '' }, false],
    [{ OTEL_SERVICE_NAME: 'x' }, false],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318' }, true],
    [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://127.0.0.1:4318/v1/traces' }, true],
    [{ OTEL_TRACES_EXPORTER: 'otlp' }, true],
    [{ OTEL_TRACES_EXPORTER: 'none', OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318' }, false],
    [{ OTEL_SDK_DISABLED: 'True', OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318' }, false],
    [{ OTEL_SDK_DISABLED: 'false', OTEL_TRACES_EXPORTER: 'console' }, true],
  ])('enables tracing as %j requires', (env, expected) => {
    expect(parseConfig(env).tracing.wanted).toBe(expected)
  })

  it.each(['.env.example', 'docs/settings.md'])('documents every setting in %s', (file) => {
    const described = readFileSync(join(import.meta.dirname, '../..', file), 'utf8')
    const missing = [...Object.keys(settings.shape), ...TRACING_VARIABLES].filter(
      (name) => !new RegExp(`\\b${name}\\b`).test(described),
    )
    expect(missing).toEqual([])
  })
})

describe('provideSettings', () => {
  afterEach(() => vi.unstubAllEnvs())

  it('does not overwrite settings given directly or by a file', () => {
    vi.stubEnv('API_PORT', '')
    vi.stubEnv('REDIS_URL', undefined)
    vi.stubEnv('REDIS_URL_FILE', '/run/secrets/redis')
    vi.stubEnv('CLICKHOUSE_URL', 'http://given')
    provideSettings({ API_PORT: '1', REDIS_URL: 'redis://private', CLICKHOUSE_URL: 'http://private' })
    const { API_PORT, REDIS_URL, CLICKHOUSE_URL } = process.env
    expect([API_PORT, REDIS_URL, CLICKHOUSE_URL]).toEqual(['1', undefined, 'http://given'])
  })
})
