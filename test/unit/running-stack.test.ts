import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { removeRunning, toHint, withRunningStack, writeRunning } from '../../shared/config/running-stack.ts'

const LIVE = { CLICKHOUSE_DATABASE: 'dao_data', QUEUE_PREFIX: 'dao-data' }
const DEMO = { CLICKHOUSE_DATABASE: 'dao_data_demo', QUEUE_PREFIX: 'dao-data-demo' }

let folder: string
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'dao-data-running-')))
  vi.spyOn(process, 'cwd').mockReturnValue(folder)
})
afterEach(() => {
  vi.restoreAllMocks()
  rmSync(folder, { recursive: true })
})

const live = () => join(folder, '.data')
const demo = () => join(folder, '.data/demo')
const startLive = (pid = process.pid) => writeRunning(live(), { pid, mode: 'live', settings: LIVE })
const startDemo = () => writeRunning(demo(), { pid: process.pid, mode: 'demo', settings: DEMO })

function complete(env: Record<string, string> = {}) {
  const said: string[] = []
  return { env: withRunningStack(env, (line) => said.push(line)), said }
}

describe('withRunningStack', () => {
  it('uses the running system', () => {
    startLive()
    expect(complete()).toEqual({ env: { DATA_DIR: live(), ...LIVE }, said: [] })
    removeRunning(live())
    startDemo()
    const said = ['using the demo system over .data/demo']
    expect(complete()).toEqual({ env: { DATA_DIR: demo(), ...DEMO }, said })
  })

  it('prefers the live system over the demo, logs it, and accepts the folder of the other', () => {
    startLive()
    startDemo()
    const said = ['using the live system over .data; to use the demo system, set DATA_DIR=.data/demo']
    expect(complete()).toEqual({ env: { DATA_DIR: live(), ...LIVE }, said })
    expect(complete({ DATA_DIR: '.data/demo' })).toEqual({ env: { DATA_DIR: '.data/demo', ...DEMO }, said: [] })
  })

  it('keeps explicit settings', () => {
    startDemo()
    const stores = { CLICKHOUSE_URL: 'http://a', REDIS_URL: 'redis://b' }
    expect(complete(stores)).toEqual({ env: stores, said: [] })
    const elsewhere = { DATA_DIR: join(folder, 'elsewhere') }
    expect(complete(elsewhere)).toEqual({ env: elsewhere, said: [] })
    expect(complete({ QUEUE_PREFIX: 'mine' }).env).toMatchObject({ ...DEMO, QUEUE_PREFIX: 'mine' })
  })

  it('ignores a system that was killed', () => {
    const { pid } = spawnSync('true')
    startLive(pid)
    expect(complete().env).toEqual({})
  })

  it('reports an invalid state file with its path', () => {
    mkdirSync(live())
    writeFileSync(join(live(), 'stack.json'), '{"pid":')
    expect(() => complete()).toThrow(`${join(live(), 'stack.json')} is malformed`)
  })
})

describe('toHint', () => {
  it('names the searched folders and the missing settings, and returns undefined if stores are set or run', () => {
    expect(toHint({})).toBe(
      'no npm start or npm run live runs over .data or .data/demo, and CLICKHOUSE_URL and REDIS_URL are not set',
    )
    expect(toHint({ DATA_DIR: 'mine', REDIS_URL_FILE: '/run/url' })).toBe(
      'no npm start or npm run live runs over mine, and CLICKHOUSE_URL is not set',
    )
    expect(toHint({ CLICKHOUSE_URL: 'http://a', REDIS_URL: 'redis://b' })).toBeUndefined()
    startDemo()
    expect(toHint({})).toBeUndefined()
  })
})
