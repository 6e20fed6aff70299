import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { findFreePort } from '../../shared/free-port.ts'
import { createQueue } from '../../shared/queue/queues.ts'
import { createRedis } from '../../shared/queue/redis.ts'
import { startChild } from '../../tools/children.ts'
import { startRedis } from '../../tools/redis-server.ts'
import prices from '../../workers/jobs/prices.ts'
import { createRunner } from '../../workers/run/runner.ts'
import { createPipeline, type Pipeline } from '../support/pipeline.ts'
import { silent } from '../support/silent.ts'
import { toStoreSettings } from '../support/store-settings.ts'

let pipeline: Pipeline
afterEach(() => pipeline.close())

/** The back-fill program with its output so far. */
function startBackfill(tokens: string) {
  const args = ['prices', '--from', '2024-05-01', '--to', '2024-05-02', '--tokens', tokens]
  const file = join(import.meta.dirname, '../../workers/commands/backfill.ts')
  const child = startChild('back-fill', file, toStoreSettings(pipeline.config), args, { keepsOutput: true })
  let output = ''
  for (const stream of [child.process.stdout, child.process.stderr])
    stream?.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
  return { process: child.process, ended: once(child.process, 'exit'), output: () => output }
}

it('npm run backfill exits when every requested bucket has an outcome', async () => {
  pipeline = await createPipeline()
  const runner = createRunner(prices, pipeline.context, 'history')
  const { ended, output } = startBackfill('UNI')
  expect(await ended).toEqual([0, null])
  expect(output()).toMatch(/prices 5m +288 \(1\) +0 +0 +0 +0 +0$/m)
  await runner.close()
})

it('npm run backfill reports on Ctrl-C that the queued chunks continue', async () => {
  pipeline = await createPipeline()
  const { process, ended, output } = startBackfill('UNI')
  await expect.poll(output).toContain('no worker serves')
  process.kill('SIGINT')
  expect(await ended).toEqual([130, null])
  expect(output()).toContain('Workers continue the queued jobs')
})

it.each(['empty', 'as it was'])('npm run backfill survives a restart of Redis whose data is %s', async (how) => {
  const dir = mkdtempSync(join(tmpdir(), 'backfill-redis-'))
  const port = await findFreePort()
  const settings = { appendonly: how === 'empty' ? 'no' : 'yes', appendfsync: 'always' }
  const first = await startRedis(dir, { port, settings })
  pipeline = await createPipeline({ settings: { REDIS_URL: first.url } })
  const { ended, output } = startBackfill('UNI,AAVE')
  const redis = createRedis(first.url, silent)
  const queue = createQueue('prices', redis, pipeline.config.redis.prefix, 'history')
  await expect.poll(() => queue.getJobCountByTypes('prioritized', 'waiting')).toBeGreaterThan(0)
  await first.stop()
  await expect.poll(output).toContain('waiting for the stores')
  const second = await startRedis(dir, { port, settings })
  await expect.poll(output).toContain('the stores are back')
  if (how === 'empty') await expect.poll(output).toContain('1 jobs were lost')
  const runner = createRunner(prices, pipeline.context, 'history')
  expect(await ended).toEqual([0, null])
  expect(output()).toMatch(/prices 5m +576 \(2\)/)
  await runner.close()
  await queue.close()
  redis.disconnect()
  await pipeline.close()
  pipeline = await createPipeline()
  await second.stop()
  rmSync(dir, { recursive: true, force: true })
})
