import { once } from 'node:events'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { startChild } from '../../tools/children.ts'
import prices from '../../workers/jobs/prices.ts'
import { createRunner } from '../../workers/run/runner.ts'
import { createPipeline, type Pipeline } from '../support/pipeline.ts'

let pipeline: Pipeline
beforeEach(async () => {
  pipeline = await createPipeline()
})
afterEach(() => pipeline.close())

it('the back-fill program ends when its parts are stored', async () => {
  const runner = createRunner(prices, pipeline.context, 'history')
  const { redis } = pipeline.config
  const args = ['prices', '--from', '2024-05-01', '--to', '2024-05-02', '--tokens', 'UNI']
  const file = join(import.meta.dirname, '../../workers/commands/backfill.ts')
  const child = startChild('back-fill', file, { REDIS_URL: redis.url, QUEUE_PREFIX: redis.prefix }, args)
  let output = ''
  child.process.stdout?.setEncoding('utf8').on('data', (text: string) => {
    output += text
  })
  expect(await once(child.process, 'exit')).toEqual([0, null])
  expect(output).toContain('288 rows')
  await runner.close()
})
