import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { readCommandLine } from '../../shared/command-line.ts'
import { refuseSwallowed } from '../../shared/config/swallowed-options.ts'
import { DataError } from '../../shared/errors.ts'

const read = (...args: string[]) =>
  readCommandLine({
    args,
    allowPositionals: true,
    options: {
      tokens: { type: 'string' },
      interval: { type: 'string', default: '1d' },
      json: { type: 'boolean', default: false },
    },
  })

afterEach(() => vi.unstubAllEnvs())

describe('readCommandLine', () => {
  it('parses options and positional arguments', () => {
    expect(read('prices', '--tokens', 'UNI', '--json', '--json')).toMatchObject({
      positionals: ['prices'],
      values: { tokens: 'UNI', interval: '1d', json: true },
    })
  })

  it.each([
    ['--tokens UNI --tokens=AAVE', '--tokens is set twice'],
    ['--interval 1d prices --interval 1h', '--interval is set twice'],
    ['--token UNI', "Unknown option '--token'"],
    ['--tokens', "Option '--tokens <value>' argument missing"],
  ])('rejects %s with the reason and a hint', (words, reason) => {
    vi.stubEnv('npm_lifecycle_event', 'backfill')
    const failed = () => read(...words.split(' '))
    expect(failed).toThrow(DataError)
    expect(failed).toThrow(reason)
    expect(failed).toThrow('See: npm run backfill -- --help')
  })
})

const ROOT = join(import.meta.dirname, '../..')
const isProgram = (path: string) => /\.ts$/.test(path) && !path.includes('node_modules') && !path.endsWith('.test.ts')
const readFiles = (folder: string) =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter(isProgram)
    .map((path) => readFileSync(join(ROOT, folder, path), 'utf8'))

it('refuseSwallowed detects every option of a command that npm consumed, except three npm options', () => {
  const sources = ['api', 'clickhouse', 'workers', 'test/bench', 'test/fuzz'].flatMap(readFiles)
  const declared = sources
    .filter((source) => /readCommandLine\(|RANGE_OPTIONS =/.test(source))
    .flatMap((source) => [...source.matchAll(/'?([\w-]+)'?: \{ type: '(?:string|boolean)'/g)].map(([, name]) => name))
  expect(declared.length).toBeGreaterThan(40)
  const isLookedUp = (name: string | undefined) => {
    try {
      refuseSwallowed({ npm_lifecycle_event: 'this', [`npm_config_${name?.replaceAll('-', '_')}`]: 'true' })
      return false
    } catch {
      return true
    }
  }
  const passed = new Set(declared.filter((name) => !isLookedUp(name)))
  expect([...passed].sort()).toEqual(['force', 'help', 'json'])
})

it('refuseSwallowed rejects options consumed by npm and explains the correct syntax', () => {
  const npm = { npm_lifecycle_event: 'rebuild' }
  expect(() => refuseSwallowed({ ...npm, npm_config_dry_run: 'true', npm_config_from: '2024-01-01' })).toThrow(
    'npm parsed --dry-run and --from as its own option: put -- before the options, as in npm run rebuild -- --dry-run',
  )
  expect(() => refuseSwallowed({ ...npm, npm_config_dry_run: '' })).not.toThrow()
  expect(() => refuseSwallowed({ npm_config_from: '2024-01-01' })).not.toThrow()
})
