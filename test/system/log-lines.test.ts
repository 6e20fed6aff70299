import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as wait } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { startChild, untilReady } from '../../tools/children.ts'
import { createTestConfig, createTestDatabase } from '../support/database.ts'
import { toStoreSettings } from '../support/store-settings.ts'

const SCHEDULER = join(import.meta.dirname, '../../workers/programs/scheduler.ts')
/** Its ticks are five seconds apart: the scheduler misses at least one of them. */
const HELD_MS = 11_000

it('scheduler logs every line as JSON, also those of missed ticks', async () => {
  const config = createTestConfig()
  const database = await createTestDatabase(config)
  const settings = { ...toStoreSettings(config), LOG_LEVEL: 'debug', SCHEDULER_OPS_PORT: '0' }
  const scheduler = startChild('scheduler', SCHEDULER, settings, [], { keepsOutput: true })
  const lines: string[] = []
  for (const input of [scheduler.process.stdout, scheduler.process.stderr]) {
    if (input === null) throw new Error('the scheduler was started without its outputs')
    createInterface({ input }).on('line', (line) => lines.push(line))
  }
  await untilReady(scheduler)
  scheduler.process.kill('SIGSTOP')
  await wait(HELD_MS)
  scheduler.process.kill('SIGCONT')
  await expect.poll(() => lines.some((line) => line.includes('the process was held up'))).toBe(true)
  await scheduler.stop()
  for (const line of lines) expect(() => JSON.parse(line), line).not.toThrow()
  await database.drop()
})
