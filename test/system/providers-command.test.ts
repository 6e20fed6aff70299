import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { toProgram } from '../../tools/children.ts'
import { createDayLimit } from '../../workers/http/limits.ts'
import { createPipeline, type Pipeline } from '../support/pipeline.ts'
import { silent } from '../support/silent.ts'
import { toStoreSettings } from '../support/store-settings.ts'
import { toStandInSettings } from '../upstream/settings.ts'

let pipeline: Pipeline
beforeAll(async () => {
  pipeline = await createPipeline({ registry: loadRegistry() })
})
afterAll(() => pipeline?.close())

describe('npm run providers', () => {
  const command = (settings: Record<string, string>, ...args: string[]) => {
    const file = join(import.meta.dirname, '../../workers/commands/check-providers.ts')
    const own = { ...toStoreSettings(pipeline.config), ...toStandInSettings(pipeline.upstream.url), ...settings }
    const env = { ...process.env, ...own }
    return promisify(execFile)(process.execPath, [...toProgram(file), ...args], { env }).then(
      ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
      ({ code, stdout, stderr }) => ({ code, stdout, stderr }),
    )
  }

  it('exits with 1 and names the configured provider that does not respond', async () => {
    const { code, stdout } = await command({ SNAPSHOT_BASE_URL: 'http://127.0.0.1:9' }, '--short')
    expect(stdout).toMatch(/^snapshot +governance +now +no answer +\d+ +- +Uniswap +snapshot .*the connection failed/m)
    expect(code).toBe(1)
  })

  it("prints today's remaining quota of a plan that workers share", async () => {
    const { redis, config } = pipeline.context
    const sharedBy = { redis, prefix: config.redis.prefix, log: silent }
    const settings = { COINMARKETCAP_CREDITS_PER_MONTH: '10000', QUEUE_PREFIX: config.redis.prefix }
    await createDayLimit('coinmarketcap', 322, { sharedBy }).take(new AbortController().signal, 1, 22)
    expect((await command(settings, '--short')).stdout).toMatch(/^coinmarketcap +300 of 322 +1 credit per 100/m)
    const unavailable = await command({ ...settings, REDIS_URL: 'redis://127.0.0.1:9' }, '--short')
    expect(unavailable.stdout).toMatch(/^coinmarketcap +- +1 credit per 100/m)
    expect(unavailable.stderr).toMatch(/Redis is unavailable/)
  })

  it('names an invalid option', async () => {
    expect(await command({}, '--timeout', 'soon')).toMatchObject({
      code: 1,
      stderr: '--timeout: soon is no number of seconds\n',
    })
  })
})
