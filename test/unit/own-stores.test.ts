import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  type ClickHouseAccess,
  clickhouseDir,
  createPassword,
  readClickHouseAccess,
  redisDir,
  withOwnStores,
  writeAccess,
} from '../../shared/config/own-stores.ts'

const ACCESS: ClickHouseAccess = {
  url: 'http://127.0.0.1:8123',
  writer: { name: 'writer', password: 'of the writer' },
  reader: { name: 'reader', password: 'of the reader' },
}
const CLICKHOUSE = {
  CLICKHOUSE_URL: 'http://127.0.0.1:8123',
  CLICKHOUSE_USER: 'writer',
  CLICKHOUSE_PASSWORD: 'of the writer',
  CLICKHOUSE_READ_USER: 'reader',
  CLICKHOUSE_READ_PASSWORD: 'of the reader',
}
const REDIS = { REDIS_URL: 'redis://:secret@127.0.0.1:6380' }

let DATA_DIR: string

beforeEach(() => {
  DATA_DIR = mkdtempSync(join(tmpdir(), 'dao-data-own-stores-'))
})
afterEach(() => rmSync(DATA_DIR, { recursive: true }))

const complete = (env: Record<string, string> = {}) => {
  const { DATA_DIR: _, ...settings } = withOwnStores({ DATA_DIR, ...env })
  return settings
}

describe('withOwnStores with the stores of a data folder', () => {
  beforeEach(() => {
    writeAccess(clickhouseDir(DATA_DIR), ACCESS)
    writeAccess(redisDir(DATA_DIR), { url: REDIS.REDIS_URL, password: 'secret' })
  })

  it('uses them if the environment names no stores', () => {
    expect(complete()).toEqual({ ...CLICKHOUSE, ...REDIS })
    expect(complete({ CLICKHOUSE_URL: '', REDIS_URL: '', CLICKHOUSE_PASSWORD: '' })).toEqual({
      ...CLICKHOUSE,
      ...REDIS,
    })
  })

  it('keeps settings of the environment', () => {
    const input = { CLICKHOUSE_READ_USER: 'another', CLICKHOUSE_READ_PASSWORD: 'of another' }
    expect(complete(input)).toEqual({ ...CLICKHOUSE, ...REDIS, ...input })
  })

  it('adds the passwords if the environment names their address', () => {
    expect(complete({ CLICKHOUSE_URL: CLICKHOUSE.CLICKHOUSE_URL })).toEqual({ ...CLICKHOUSE, ...REDIS })
  })

  it.each([{ CLICKHOUSE_URL: 'https://clickhouse.example' }, { CLICKHOUSE_URL_FILE: '/run/secrets/url' }])(
    'adds no password for another server: %j',
    (input) => {
      expect(complete(input)).toEqual({ ...REDIS, ...input })
    },
  )

  it('keeps a secret that is given as a file', () => {
    const { CLICKHOUSE_PASSWORD: _, ...rest } = CLICKHOUSE
    const input = { CLICKHOUSE_PASSWORD_FILE: '/run/secrets/password' }
    expect(complete(input)).toEqual({ ...rest, ...REDIS, ...input })
    expect(complete({ REDIS_URL_FILE: '/run/secrets/redis' })).not.toHaveProperty('REDIS_URL')
  })
})

describe('data folder', () => {
  const file = () => join(clickhouseDir(DATA_DIR), 'access.json')

  it('adds no settings without stores', () => {
    expect(complete({ LOG_LEVEL: 'info' })).toEqual({ LOG_LEVEL: 'info' })
  })

  it('adds no settings before a store was ready', () => {
    const { url: _, ...unknown } = ACCESS
    writeAccess(clickhouseDir(DATA_DIR), unknown)
    expect(complete()).toEqual({})
    expect(readClickHouseAccess(clickhouseDir(DATA_DIR))).toEqual(unknown)
  })

  it('stores passwords readable only by its owner', () => {
    writeAccess(clickhouseDir(DATA_DIR), ACCESS)
    writeAccess(clickhouseDir(DATA_DIR), { ...ACCESS, url: 'http://127.0.0.1:1' })
    expect(statSync(file()).mode & 0o777).toBe(0o600)
    expect(readClickHouseAccess(clickhouseDir(DATA_DIR))?.url).toBe('http://127.0.0.1:1')
  })

  it.each([
    ['{"writer": {"password": "hunter2"', 'invalid JSON'],
    [
      '{"writer": {"name": "writer", "password": ""}, "reader": {"name": 7, "password": "hunter2"}}',
      'writer.password: ',
    ],
  ])('is rejected with the access file %j, in one line that names the file and no password', (text, reason) => {
    mkdirSync(clickhouseDir(DATA_DIR))
    writeFileSync(file(), text)
    const oneLine = new RegExp(`^${file()}: ${reason}(?!.*hunter2).*$`)
    expect(() => complete()).toThrow(
      expect.objectContaining({ code: 'config', message: expect.stringMatching(oneLine) }),
    )
  })

  it('is rejected with the path of an unreadable access file', () => {
    mkdirSync(file(), { recursive: true })
    expect(() => complete()).toThrow(`${file()}: EISDIR`)
  })
})

it('createPassword returns a different long password each time', () => {
  expect(createPassword()).toMatch(/^[\w-]{32}$/)
  expect(createPassword()).not.toBe(createPassword())
})
