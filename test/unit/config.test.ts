import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parseConfig, settings } from '../../shared/config.ts'
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

describe('configuration', () => {
  it('has a default for everything that can have one', () => {
    const config = parseConfig({})
    expect(config.mode).toBe('live')
    expect(config.providers.coinmarketcap.apiKey).toBeUndefined()
  })

  it('names every wrong setting at once', () => {
    const error = failure({ API_PORT: '70000', REDIS_URL: 'http://x', LOG_LEVEL: 'loud' })
    expect(error.code).toBe('config')
    for (const name of ['API_PORT', 'REDIS_URL', 'LOG_LEVEL']) expect(error.message).toContain(`- ${name}: `)
    expect(error.message).toContain('"70000"')
  })

  it('takes an empty value for a setting that is not set', () => {
    expect(parseConfig({ API_PORT: '', COINMARKETCAP_API_KEY: '' }).api.port).toBe(3000)
  })

  it('reads secrets from files and does not show them', () => {
    const file = join(mkdtempSync(join(tmpdir(), 'dao-data-config-')), 'key')
    writeFileSync(file, 'from-a-file\n')
    expect(parseConfig({ COINMARKETCAP_API_KEY_FILE: file }).providers.coinmarketcap.apiKey).toBe('from-a-file')
    expect(failure({ COINMARKETCAP_API_KEY_FILE: '/nowhere/key' }).message).toContain('COINMARKETCAP_API_KEY_FILE')
    const both = failure({ COINMARKETCAP_API_KEY: 'secret-one', COINMARKETCAP_API_KEY_FILE: file })
    expect(both.message).toContain('keep one')
    expect(both.message).not.toContain('secret-one')
  })

  it.each(['.env.example', 'README.md'])('is described whole in %s', (file) => {
    const described = readFileSync(join(import.meta.dirname, '../..', file), 'utf8')
    const missing = Object.keys(settings.shape).filter((name) => !new RegExp(`\\b${name}\\b`).test(described))
    expect(missing).toEqual([])
  })
})
